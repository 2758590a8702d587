(** * S6: what the tokens that a rule lets pass may cost in log-loss. *)

From Coq Require Import Reals List Arith Lra Lia.
From Draftcert Require Statements.
From Draftcert Require Import Definitions Sums LogFacts StrictGreedy.
Import ListNotations.
Open Scope R_scope.

Lemma sum_two f : sum (seq 0 2) f = f 0%nat + f 1%nat.
Proof. unfold sum. cbn. lra. Qed.

Lemma three_mass_le_1 V p i j k : prob V p -> (i < V)%nat -> (j < V)%nat -> (k < V)%nat -> i <> j -> i <> k -> j <> k -> p i + p j + p k <= 1.
Proof.
  intros Hp Hi Hj Hk h1 h2 h3. rewrite <- (proj2 Hp). apply Rle_trans with (sum [i; j; k] p); [rewrite !sum_cons, sum_nil; lra|].
  apply sum_sub_le; auto using NoDup_seq.
  - repeat constructor; simpl; intuition congruence.
  - intros x [<-|[<-|[<-|[]]]]; now apply in_vocab.
  - intros x Hx. now apply Hp, in_vocab.
Qed.

Theorem log_loss : Statements.S6_log_loss.
Proof.
  intros V p k x Hp Hk Hx Hpx loss.
  assert (H : forall y z, 0 < z -> p k * z <= y * p x -> loss <= ln (y / z)).
  { intros y z Hz Hle. apply ln_nondecr; [apply Rdiv_lt_0_compat; lra|]. apply Rmult_le_reg_r with (p x * z); [apply Rmult_lt_0_compat; lra|].
    replace (p k / p x * (p x * z)) with (p k * z) by (field; lra). replace (y / z * (p x * z)) with (y * p x) by (field; lra). assumption. }
  split; [|split; [|split]].
  - intros theta Ht. apply H; [lra|]. apply Rmult_le_compat_l; lra.
  - intros alpha Ha Hle. apply H; lra.
  - intros t Ht Hle. apply H; [lra|]. apply Rmult_le_compat_l; lra.
  - intros Hxk tau Htau. pose proof (pair_mass_le_1 V k x p Hp Hk Hx ltac:(congruence)) as Hpair. split.
    + apply H; [lra|]. assert (p k * tau <= (1 - p x) * tau) by (apply Rmult_le_compat_r; lra).
      assert ((1 - p x) * tau <= (1 - tau) * p x) by lra. lra.
    + intros b g Hb Hbk Eb Hg Hmax. specialize (Hmax x Hx Hxk) as Hxb.
      assert (Hsecond : p x = p b -> loss <= ln ((g + tau) / tau)).
      { intros E. apply H; [lra|]. assert (p k = p x + g) by lra. rewrite H0.
        assert (0 <= g * (p x - tau)) by (apply Rmult_le_pos; lra). lra. }
      assert (Hthird : x <> b -> loss <= ln ((1 + g - p x) / (2 * p x)) /\ 3 * p x <= 1 - g).
      { intros h. pose proof (three_mass_le_1 V p k b x Hp Hk Hb Hx ltac:(congruence) ltac:(congruence) ltac:(congruence)) as h3.
        split; [|lra]. apply H; [lra|]. assert (0 <= (1 + g - p x - 2 * p k) * p x) by (apply Rmult_le_pos; lra). lra. }
      split; intros Hg3.
      * destruct (Nat.eq_dec x b) as [->|h].
        -- eapply Rle_trans; [now apply Hsecond|]. apply ln_nondecr; [apply Rdiv_lt_0_compat; lra|].
           apply Rmult_le_reg_r with (2 * tau); [lra|]. replace ((g + tau) / tau * (2 * tau)) with (2 * (g + tau)) by (field; lra).
           replace ((1 + g - tau) / (2 * tau) * (2 * tau)) with (1 + g - tau) by (field; lra). lra.
        -- destruct (Hthird h) as [k1 k2]. eapply Rle_trans; [exact k1|]. apply ln_nondecr; [apply Rdiv_lt_0_compat; lra|].
           apply Rmult_le_reg_r with (2 * p x * tau); [apply Rmult_lt_0_compat; lra|].
           replace ((1 + g - p x) / (2 * p x) * (2 * p x * tau)) with ((1 + g) * tau - p x * tau) by (field; lra).
           replace ((1 + g - tau) / (2 * tau) * (2 * p x * tau)) with ((1 + g) * p x - tau * p x) by (field; lra).
           assert (0 <= (1 + g) * (p x - tau)) by (apply Rmult_le_pos; lra). lra.
      * destruct (Nat.eq_dec x b) as [->|h]; [now apply Hsecond|]. destruct (Hthird h) as [_ k2].
        (* the third token is at [tau] too, and so is the second *)
        apply Hsecond. pose proof (three_mass_le_1 V p k b x Hp Hk Hb Hx ltac:(congruence) ltac:(congruence) ltac:(congruence)) as h3. lra.
Qed.

Theorem log_loss_sharp : Statements.S6_sharp.
Proof.
  assert (Hpair : forall y, 0 <= y <= 1 -> prob 2 (fun i : nat => match i with O => 1 - y | _ => y end)).
  { intros y Hy. split; [intros [|i] _; lra|rewrite sum_two; lra]. }
  split; [|split; [|split; [|split]]].
  - intros alpha Ha. set (y := alpha / (1 + alpha)). assert (Ey : 1 - y = / (1 + alpha)) by (unfold y; field; lra).
    assert (Hi : 0 < / (1 + alpha)) by (apply Rinv_0_lt_compat; lra). assert (Hy : 0 < y) by (apply Rdiv_lt_0_compat; lra).
    exists (fun i : nat => match i with O => 1 - y | _ => y end). split; [apply Hpair; lra|]. rewrite Ey. split; [unfold y; field; lra|].
    f_equal. unfold y. field. lra.
  - intros t p1 Ht H1. set (w := 1 - (2 * p1 - t)). destruct (archimed_cor1 (p1 - t) ltac:(lra)) as (N & HN & HN0).
    assert (HNR : 0 < INR N) by now apply lt_0_INR. set (y := w / INR N). assert (Ey : INR N * y = w) by (unfold y; field; lra).
    assert (Hw : 0 <= w <= 1) by (unfold w; lra).
    assert (Hy : 0 <= y <= p1 - t).
    { split; [unfold y; apply Rmult_le_pos; [lra|left; now apply Rinv_0_lt_compat]|].
      apply Rle_trans with (/ INR N); [|lra]. unfold y, Rdiv. rewrite <- (Rmult_1_l (/ INR N)) at 2.
      apply Rmult_le_compat_r; [left; now apply Rinv_0_lt_compat|lra]. }
    exists (2 + N)%nat, (fun i : nat => match i with O => p1 | 1%nat => p1 - t | _ => y end).
    split; [|split; [reflexivity|split; [reflexivity|]]].
    + split; [intros [|[|i]] _; lra|]. cbn [Nat.add seq]. rewrite !sum_cons, (sum_ext _ _ (fun _ => y)).
      * rewrite sum_const, seq_length, Ey. unfold w. lra.
      * intros i Hi. apply in_seq in Hi. destruct i as [|[|i]]; (lia || reflexivity).
    + intros [|[|j]] Hj; (lia || lra).
  - intros L HL. pose proof (exp_pos (- L)) as He. set (y := exp (- L) / (1 + exp (- L))).
    assert (Ey : 1 - y = / (1 + exp (- L))) by (unfold y; field; lra). assert (Hi : 0 < / (1 + exp (- L))) by (apply Rinv_0_lt_compat; lra).
    assert (Hy : 0 < y) by (apply Rdiv_lt_0_compat; lra). assert (He1 : exp (- L) <= 1).
    { rewrite <- exp_0. destruct HL as [h|<-]; [left; apply exp_increasing; lra|rewrite Ropp_0; lra]. }
    exists (fun i : nat => match i with O => 1 - y | _ => y end). split; [apply Hpair; lra|]. rewrite Ey. split.
    + split; [assumption|]. unfold y, Rdiv. rewrite <- (Rmult_1_l (/ _)) at 2. apply Rmult_le_compat_r; lra.
    + replace (/ (1 + exp (- L)) / y) with (/ exp (- L)) by (unfold y; field; lra). rewrite ln_Rinv, ln_exp by assumption. ring.
  - intros tau Ht. exists (fun i : nat => match i with O => 1 - tau | _ => tau end). split; [apply Hpair; lra|]. split; reflexivity.
  - intros g tau Hg Ht Hm.
    destruct (Rle_dec (3 * tau) (1 - g)) as [h|h].
    + exists (fun i : nat => match i with O => (1 + g - tau) / 2 | 1%nat => (1 - g - tau) / 2 | _ => tau end).
      split; [split; [intros [|[|i]] _; lra|unfold sum; cbn; lra]|]. split; [lra|]. split; [lra|]. split; [|lra].
      intros _. split; [reflexivity|]. field. lra.
    + exists (fun i : nat => match i with O => g + tau | 1%nat => tau | _ => 1 - g - 2 * tau end).
      split; [split; [intros [|[|i]] _; lra|unfold sum; cbn; lra]|]. split; [lra|]. split; [lra|]. split; [lra|].
      intros _. split; reflexivity.
Qed.

Theorem log_loss_along_a_text : Statements.S6_along_a_text.
Proof.
  intros N V p k x theta H. apply sum_le. intros n Hn. apply in_vocab in Hn. destruct (H n Hn) as (Hp & Hk & Hx & Ht).
  pose proof (proj1 Hp _ Hk) as H0. destruct H0 as [h|<-]; [|unfold Rdiv; rewrite !Rmult_0_l; lra].
  apply ln_nondecr; [apply Rdiv_lt_0_compat; lra|]. unfold Rdiv. apply Rmult_le_compat_l; [lra|]. apply Rinv_le_contravar; lra.
Qed.
