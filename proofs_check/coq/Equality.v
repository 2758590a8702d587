(** * T0: the divergence without cancellation; T4: when the ceilings are attained. *)

From Coq Require Import Reals List Arith Lra Lia Psatz.
From Draftcert Require Statements.
From Draftcert Require Import Definitions Sums LogFacts Projection Competitors Ceilings StrictGreedy Margins Guarantee.
Open Scope R_scope.

Lemma bennett_term p q : 0 <= p -> 0 <= q -> (0 < p -> 0 < q) ->
  q * bennett ((p - q) / q) = p * ln (p / q) - p + q /\ 0 <= q * bennett ((p - q) / q).
Proof.
  intros Hp Hq Hf. assert (E : q * bennett ((p - q) / q) = p * ln (p / q) - p + q).
  { destruct Hq as [Hq|<-].
    - unfold bennett. replace (1 + (p - q) / q) with (p / q) by (field; lra). field. lra.
    - destruct Hp as [h|<-]; [specialize (Hf h); lra|lra]. }
  split; [assumption|]. rewrite E. pose proof (gibbs_term p q Hp Hq Hf). lra.
Qed.

Theorem no_cancellation : Statements.T0_no_cancellation.
Proof.
  intros V p q Hp Hq Hf. split; [|split].
  - rewrite (sum_ext _ (fun i => q i * bennett ((p i - q i) / q i)) (fun i => p i * ln (p i / q i) - p i + q i)).
    + rewrite (sum_plus _ (fun i => p i * ln (p i / q i) - p i) q), sum_minus, (proj2 Hp), (proj2 Hq). unfold KL. lra.
    + intros i Hi. apply in_vocab in Hi. apply bennett_term; [now apply Hp|now apply Hq|now apply Hf].
  - intros i Hi. apply bennett_term; [now apply Hp|now apply Hq|now apply Hf].
  - rewrite (sum_ext _ _ (fun i => p i * ln (p i / q i) - (if Rlt_dec 0 (p i) then 0 else q i) - p i + q i)).
    + rewrite (sum_plus _ (fun i => p i * ln (p i / q i) - (if Rlt_dec 0 (p i) then 0 else q i) - p i) q).
      rewrite (sum_minus _ (fun i => p i * ln (p i / q i) - (if Rlt_dec 0 (p i) then 0 else q i)) p), sum_minus.
      rewrite (proj2 Hp), (proj2 Hq). unfold KL. lra.
    + intros i Hi. apply in_vocab in Hi. destruct Rlt_dec as [h|h].
      * pose proof (Hf i Hi h) as h'. rewrite exp_Ropp, exp_ln by now apply Rdiv_lt_0_compat. field. lra.
      * pose proof (proj1 Hp i Hi). replace (p i) with 0 by lra. lra.
Qed.

(** The draft of T4: all of [M] raised by [p1], and renormalised. *)
Lemma raised V A M p p1 :
  prob V p -> NoDup M -> (forall i, In i M -> (i < V)%nat /\ ~ In i A) -> (forall a, In a A -> (a < V)%nat) ->
  (forall i, (i < V)%nat -> p i <= p1) -> 0 < p1 ->
  let D := 1 + INR (length M) * p1 in
  let q := fun i => (p i + (if mem M i then p1 else 0)) / D in
  prob V q /\ beats A M q /\ KL_finite V p q /\
  (forall i, (i < V)%nat -> p i * ln (p i / q i) <= ln D * p i) /\
  (forall i, In i M -> 0 < p i -> p i * ln (p i / q i) < ln D * p i).
Proof.
  intros Hp HM HM' HA H1 Hp1 D q. assert (HD : 1 <= D) by (unfold D; pose proof (pos_INR (length M)); nra).
  assert (HiD : 0 < / D) by (apply Rinv_0_lt_compat; lra).
  assert (Hge : forall i, p i / D <= q i).
  { intros i. unfold q, Rdiv. apply Rmult_le_compat_r; [lra|]. destruct (mem M i); lra. }
  assert (Hf : KL_finite V p q).
  { intros i Hi h. apply Rlt_le_trans with (p i / D); [|auto]. apply Rdiv_lt_0_compat; lra. }
  assert (Hterm : forall i r, 0 < p i -> 0 < q i -> p i / q i <= r -> p i * ln (p i / q i) <= ln r * p i).
  { intros i r h1 h2 h3. rewrite (Rmult_comm (ln r)). apply Rmult_le_compat_l; [lra|].
    apply ln_nondecr; [now apply Rdiv_lt_0_compat|assumption]. }
  split; [split|split; [|split; [|split]]].
  - intros i Hi. apply Rle_trans with (p i / D); [|auto]. pose proof (proj1 Hp i Hi). unfold Rdiv. nra.
  - unfold q. rewrite (sum_ext _ _ (fun i => / D * (p i + (if mem M i then p1 else 0)))) by (intros; unfold Rdiv; ring).
    rewrite sum_scal, sum_plus, sum_indicator, sum_const, (proj2 Hp); auto using NoDup_seq.
    + fold D. field. lra.
    + intros i Hi. now apply in_vocab, HM'.
  - intros i a Hi Ha. unfold q, Rdiv. apply Rmult_le_compat_r; [lra|].
    rewrite (mem_in M i), (mem_out M a); [|intros h; now apply (HM' a h)|assumption].
    specialize (H1 a (HA a Ha)). pose proof (proj1 Hp i (proj1 (HM' i Hi))). lra.
  - assumption.
  - intros i Hi. destruct (proj1 Hp i Hi) as [h|<-]; [|lra]. apply Hterm; auto.
    apply Rmult_le_reg_r with (q i); [auto|]. unfold Rdiv at 1. rewrite Rmult_assoc, Rinv_l by (specialize (Hf i Hi h); lra).
    rewrite Rmult_1_r. apply Rle_trans with (D * (p i / D)); [right; field; lra|]. apply Rmult_le_compat_l; [lra|auto].
  - intros i HiM h. pose proof (Hf i (proj1 (HM' i HiM)) h) as hq. rewrite (Rmult_comm (ln D)).
    apply Rmult_lt_compat_l; [assumption|]. apply ln_increasing; [now apply Rdiv_lt_0_compat|].
    apply Rmult_lt_reg_r with (q i); [assumption|]. unfold Rdiv at 1. rewrite Rmult_assoc, Rinv_l, Rmult_1_r by lra.
    unfold q. rewrite mem_in by assumption. replace (D * ((p i + p1) / D)) with (p i + p1) by (field; lra). lra.
Qed.

Theorem ceiling_equality V A m p p1 x :
  prob V p -> NoDup A -> (forall a, In a A -> (a < V)%nat) -> (1 <= m)%nat ->
  (forall i, (i < V)%nat -> p i <= p1) -> (exists i, (i < V)%nat /\ p i = p1) -> certificate V A m p x ->
  (x = ln (1 + INR m * p1) <-> forall i, (i < V)%nat -> 0 < p i -> In i A /\ p i = p1).
Proof.
  intros Hp HA HA' Hm H1 (i1 & Hi1 & E1) Hx.
  assert (Hm1 : 1 <= INR m) by (change 1 with (INR 1); now apply le_INR).
  assert (Hp1 : 0 < p1).
  { apply Rnot_le_lt. intros h. pose proof (proj2 Hp) as hs. rewrite (sum_ext _ _ (fun _ => 0)), sum_zero in hs; [lra|].
    intros i Hi. apply in_vocab in Hi. pose proof (proj1 Hp i Hi). specialize (H1 i Hi). lra. }
  set (D := 1 + INR m * p1). assert (HD : 1 < D) by (unfold D; nra). split.
  - intros ->. destruct (most_likely p m (others V A) (others_NoDup V A)) as (M & h1 & h2 & h3 & h4).
    { pose proof (proj1 (certificate_exists V A m p Hp HA HA' Hm) (ex_intro _ _ Hx)). pose proof (others_length V A HA HA'). lia. }
    assert (HM' : forall i, In i M -> (i < V)%nat /\ ~ In i A) by (intros i Hi; apply in_others; auto).
    assert (Hd : disjoint_sets V A M) by (repeat split; auto; now apply HM').
    assert (Htop : top_rejected V A M p) by (intros i j Hi Hj HjA HjM; apply h4; auto; apply in_others; auto).
    assert (HM0 : M <> nil) by (intros ->; simpl in h2; lia).
    destruct (raised V A M p p1 Hp h1 HM' HA' H1 Hp1) as (k1 & k2 & k3 & k4 & k5). rewrite h2 in *. fold D in k1, k2, k3, k4, k5.
    set (q := fun i => (p i + (if mem M i then p1 else 0)) / D) in *.
    pose proof (certificate_is_least V A M m p _ Hp Hd HM0 h2 Htop Hx) as Hleast. fold D in Hleast.
    assert (Hup : KL V p q <= ln D).
    { replace (ln D) with (sum (seq 0 V) (fun i => ln D * p i)) by (rewrite sum_scal, (proj2 Hp); lra).
      apply sum_le. intros i Hi. now apply k4, in_vocab. }
    pose proof (proj2 Hleast q k1 k2 k3) as Hlow.
    assert (Hsupp : forall i, In i M -> p i = 0).
    { intros i Hi. destruct (HM' i Hi) as [HiV _]. destruct (proj1 Hp i HiV) as [h|h]; [exfalso|now symmetry].
      pose proof (k5 i Hi h) as hlt.
      pose proof (sum_le_eq (seq 0 V) (fun i => p i * ln (p i / q i)) (fun i => ln D * p i)) as he.
      rewrite (he) in hlt; [lra| | |now apply in_vocab].
      - intros j Hj. now apply k4, in_vocab.
      - rewrite sum_scal, (proj2 Hp). fold (KL V p q). lra. }
    destruct (level_exists V A M p Hp Hd) as (c & Hc & Hl).
    pose proof (least_unique V A M p _ _ Hleast (level_projection V A M p c Hp Hd HM0 (proj1 Hc) Hl)) as Ev.
    rewrite <- (levelled_value V A M p c Hd) in Ev.
    pose proof (levelled_unique V A M p c Hp Hd (proj1 Hc) Hl q HM0 k1 k2 k3 ltac:(lra)) as Hu.
    assert (HinA : forall i, (i < V)%nat -> 0 < p i -> In i A).
    { intros i Hi h. destruct (in_dec Nat.eq_dec i A) as [|hA]; [assumption|exfalso].
      destruct (in_dec Nat.eq_dec i M) as [hM|hM]; [rewrite (Hsupp i hM) in h; lra|].
      destruct M as [|k M]; [congruence|]. pose proof (Htop k i (or_introl eq_refl) Hi hA hM) as hk.
      rewrite (Hsupp k (or_introl eq_refl)) in hk. lra. }
    assert (Hval : forall i, (i < V)%nat -> 0 < p i -> p i = D * c).
    { intros i Hi h. pose proof (HinA i Hi h) as hA. specialize (Hu i Hi). unfold q in Hu.
      rewrite levelled_A, mem_out in Hu by (auto; intros hM; now apply (HM' i hM)). rewrite Rplus_0_r in Hu.
      assert (p i / D < p i).
      { apply Rmult_lt_reg_r with D; [lra|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l; nra. }
      unfold Rmin in Hu. destruct Rle_dec in Hu; [lra|]. rewrite <- Hu. field. lra. }
    intros i Hi h. split; [auto|]. rewrite (Hval i Hi h), <- E1. symmetry. apply Hval; [assumption|lra].
  - intros Hall. apply Rle_antisym; [now apply (ceiling V A m p p1)|].
    destruct Hx as [(q & Hq & (M & h1 & h2 & h3 & Hb) & Hf & <-) _].
    set (s := fun i => if Rlt_dec 0 (p i) then 1 else 0). set (Q := sum (seq 0 V) (fun i => s i * q i)).
    assert (Hs : forall i, (i < V)%nat -> p i = p1 * s i).
    { intros i Hi. unfold s. destruct Rlt_dec as [h|h]; [destruct (Hall i Hi h); lra|]. pose proof (proj1 Hp i Hi). lra. }
    assert (HsM : forall j, In j M -> s j = 0).
    { intros j Hj. destruct (h3 j Hj) as [HjV HjA]. unfold s. destruct Rlt_dec as [h|h]; [|reflexivity]. now destruct (Hall j HjV h). }
    assert (Hj : forall j, In j M -> p1 * Q <= q j).
    { intros j Hj. unfold Q. rewrite <- sum_scal.
      replace (q j) with (sum (seq 0 V) (fun i => q j * p i)) by (rewrite sum_scal, (proj2 Hp); lra).
      apply sum_le. intros i Hi. apply in_vocab in Hi. rewrite (Hs i Hi) at 1. unfold s. destruct Rlt_dec as [h|h]; [|lra].
      pose proof (Hb j i Hj (proj1 (Hall i Hi h))). nra. }
    assert (HQ : D * Q <= 1).
    { apply Rle_trans with (Q + sum M q).
      - assert (H : sum M (fun _ => p1 * Q) <= sum M q) by (apply sum_le; exact Hj). rewrite sum_const, h2 in H. unfold D. lra.
      - unfold Q. rewrite <- (sum_indicator M (seq 0 V)), <- sum_plus, <- (proj2 Hq); auto using NoDup_seq.
        + apply sum_le. intros i Hi. apply in_vocab in Hi. pose proof (proj1 Hq i Hi).
          destruct (mem M i) eqn:E; [apply mem_true in E; rewrite (HsM i E); lra|]. unfold s. destruct Rlt_dec; lra.
        + intros i Hi. now apply in_vocab, h3. }
    fold D. apply Rle_trans with (sum (seq 0 V) (fun i => ln D * p i + p i - D * (s i * q i))).
    + rewrite (sum_minus _ (fun i => ln D * p i + p i)), sum_plus, !sum_scal, (proj2 Hp). fold Q. lra.
    + apply sum_le. intros i Hi. apply in_vocab in Hi. unfold s. destruct Rlt_dec as [h|h].
      * pose proof (Hf i Hi h). pose proof (gibbs_shift (p i) (q i) (p i / D) ltac:(lra)) as hg.
        assert (0 < p i / D) by (apply Rdiv_lt_0_compat; lra).
        replace (p i / (p i / D)) with D in hg by (field; lra). specialize (hg ltac:(auto)). lra.
      * pose proof (proj1 Hp i Hi). replace (p i) with 0 by lra. lra.
Qed.

Theorem ceiling_log_equality V A m p x :
  prob V p -> NoDup A -> (forall a, In a A -> (a < V)%nat) -> (1 <= m)%nat -> certificate V A m p x ->
  (x = ln (INR m + 1) <-> forall i, (i < V)%nat -> 0 < p i -> In i A /\ p i = 1).
Proof.
  intros Hp HA HA' Hm Hx. assert (Hm1 : 1 <= INR m) by (change 1 with (INR 1); now apply le_INR).
  assert (HV : seq 0 V <> nil) by (destruct V; [destruct Hp as [_ h]; cbn in h; lra|discriminate]).
  destruct (list_min (seq 0 V) (fun i => - p i) HV) as (k & Hk & Hmax). apply in_vocab in Hk.
  assert (H1 : forall i, (i < V)%nat -> p i <= p k) by (intros i Hi; specialize (Hmax i (proj2 (in_vocab V i) Hi)); lra).
  pose proof (prob_le_1 V p k Hp Hk) as Hpk.
  pose proof (ceiling_equality V A m p (p k) x Hp HA HA' Hm H1 (ex_intro _ k (conj Hk eq_refl)) Hx) as Hiff. split.
  - intros E. pose proof (ceiling V A m p (p k) x Hp H1 Hx HA') as Hc. rewrite E in Hc.
    assert (E1 : p k = 1).
    { apply Rle_antisym; [lra|]. apply Rnot_lt_le. intros h.
      pose proof (ln_increasing (1 + INR m * p k) (INR m + 1) ltac:(nra) ltac:(nra)). lra. }
    rewrite E1 in Hiff. apply Hiff. rewrite E. f_equal. lra.
  - intros Hall. assert (E1 : p k = 1).
    { destruct (proj1 Hpk) as [h|h]; [now apply Hall|exfalso]. pose proof (proj2 Hp) as hs.
      rewrite (sum_ext _ _ (fun _ => 0)), sum_zero in hs; [lra|]. intros i Hi. apply in_vocab in Hi.
      pose proof (proj1 Hp i Hi). specialize (H1 i Hi). lra. }
    rewrite E1 in Hiff. rewrite (proj2 Hiff Hall). f_equal. lra.
Qed.
