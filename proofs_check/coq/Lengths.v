(** * How many tokens a pass yields: S5, from the acceptance of each; S7, from entropy. *)

From Coq Require Import Reals List Arith Lra Lia.
From Draftcert Require Statements.
From Draftcert Require Import Definitions Sums LogFacts Sampling.
Import ListNotations.
Open Scope R_scope.

Theorem expected_length : Statements.S5_expected_length.
Proof.
  intros V p q u v D n Huv El H a Ha tokenwise blockwise.
  assert (Hacc : forall s, a <= acceptance V 1 (p s) (q s)).
  { intros s. destruct (H s) as (Hp & Hq & Hf & HD). pose proof (least_acceptance V (p s) (q s) u v Hp Hq Hf Huv) as h.
    rewrite El in h. apply Rmult_le_reg_l with (v - u); [lra|]. unfold a.
    replace ((v - u) * ((1 - u + ln v - D) / (v - u))) with (1 - u + ln v - D) by (field; lra). lra. }
  assert (Hr : forall s x, In x (seq 0 V) -> 0 <= q s x /\ (0 < q s x -> 0 <= p s x / q s x)).
  { intros s x Hx. apply in_vocab in Hx. destruct (H s) as (Hp & Hq & _). split; [now apply Hq|]. intros h.
    apply Rmult_le_pos; [now apply Hp|left; now apply Rinv_0_lt_compat]. }
  unfold tokenwise, blockwise. split; apply sum_le; intros i _.
  - enough (G : forall P s, 0 <= P -> P * a ^ i <= kept (fun P r => P * Rmin 1 r) V p q i P s) by (specialize (G 1 nil); lra).
    induction i as [|i IH]; intros P s HP; cbn [kept pow]; [lra|].
    apply Rle_trans with (sum (seq 0 V) (fun x => P * a ^ i * Rmin (q s x) (p s x / 1))).
    + rewrite sum_scal. fold (acceptance V 1 (p s) (q s)).
      replace (P * (a * a ^ i)) with (P * a ^ i * a) by ring. apply Rmult_le_compat_l; [|apply Hacc].
      apply Rmult_le_pos; [assumption|now apply pow_le].
    + apply sum_le. intros x Hx. destruct (Hr s x Hx) as [[h|h] hr]; [specialize (hr h)|].
      * assert (E : q s x * Rmin 1 (p s x / q s x) = Rmin (q s x) (p s x / 1)).
        { unfold Rmin.
          assert (k : q s x * (p s x / q s x) = p s x) by (field; lra).
          destruct (Rle_dec 1 (p s x / q s x)) as [e|e], (Rle_dec (q s x) (p s x / 1)) as [e'|e']; nra. }
        assert (Hm : 0 <= Rmin 1 (p s x / q s x)) by (apply Rmin_glb; lra).
        rewrite <- E. pose proof (IH (P * Rmin 1 (p s x / q s x)) (x :: s) ltac:(now apply Rmult_le_pos)) as k.
        apply Rmult_le_compat_l with (r := q s x) in k; lra.
      * rewrite <- h. apply in_vocab in Hx. destruct (H s) as (Hp & _). pose proof (proj1 Hp x Hx). rewrite Rmin_left by lra. lra.
  - enough (G : forall P P' s, 0 <= P <= P' ->
      kept (fun P r => P * Rmin 1 r) V p q i P s <= kept (fun P r => Rmin 1 (P * r)) V p q i P' s \/ 1 < P') by
      (destruct (G 1 1 nil ltac:(lra)); lra).
    induction i as [|i IH]; intros P P' s HP; cbn [kept]; [lra|].
    destruct (Rlt_dec 1 P') as [h1|h1]; [now right|left]. apply sum_le. intros x Hx.
    destruct (Hr s x Hx) as [[h|h] hr]; [specialize (hr h)|rewrite <- h; lra]. apply Rmult_le_compat_l; [lra|].
    set (r := p s x / q s x) in *. assert (0 <= Rmin 1 r) by (apply Rmin_glb; lra). pose proof (Rmin_l 1 r). pose proof (Rmin_r 1 r).
    destruct (IH (P * Rmin 1 r) (Rmin 1 (P' * r)) (x :: s)) as [k|k]; [|exact k|pose proof (Rmin_l 1 (P' * r)); lra].
    split; [apply Rmult_le_pos; lra|apply Rmin_glb; nra].
Qed.

Lemma nodes_nonneg V node depth : forall s, 0 <= passed V (fun _ _ => 1) node (fun _ => 1) depth s.
Proof.
  induction depth as [|d IH]; intros s; cbn [passed]; [lra|]. destruct (node s); [|lra].
  assert (0 <= sum (seq 0 V) (fun x => 1 * passed V (fun _ _ => 1) node (fun _ => 1) d (x :: s))); [|lra].
  apply sum_nonneg. intros x _. specialize (IH (x :: s)). lra.
Qed.

(** A node adds its own entropy, and the words of a tree are those of its parts: the log-sum inequality. *)
Lemma entropy_of_pass V p node : (forall s, prob V (p s)) -> (1 <= V)%nat -> forall depth s,
  passed V p node (fun s => - sum (seq 0 V) (fun x => p s x * ln (p s x))) depth s <=
  ln (passed V (fun _ _ => 1) node (fun _ => 1) depth s * (INR V - 1) + 1).
Proof.
  intros Hp HV. assert (H1 : 1 <= INR V) by (apply (le_INR 1); lia). induction depth as [|d IH]; intros s; cbn [passed].
  { rewrite Rmult_0_l, Rplus_0_l, ln_1. lra. }
  destruct (node s); [|rewrite Rmult_0_l, Rplus_0_l, ln_1; lra].
  set (E := fun x => passed V p node (fun s => - sum (seq 0 V) (fun x => p s x * ln (p s x))) d (x :: s)).
  set (N := fun x => passed V (fun _ _ => 1) node (fun _ => 1) d (x :: s)).
  set (W := fun x => N x * (INR V - 1) + 1).
  assert (HW : forall x, 1 <= W x).
  { intros x. pose proof (nodes_nonneg V node d (x :: s) : 0 <= N x) as h. apply Rmult_le_pos with (r2 := INR V - 1) in h; unfold W; lra. }
  assert (EW : (1 + sum (seq 0 V) (fun x => 1 * N x)) * (INR V - 1) + 1 = sum (seq 0 V) W).
  { unfold W. rewrite sum_plus, sum_const, seq_length, (sum_ext _ (fun x => N x * _) (fun x => (INR V - 1) * N x)), !sum_scal by (intros; ring). ring. }
  change (- sum (seq 0 V) (fun x => p s x * ln (p s x)) + sum (seq 0 V) (fun x => p s x * E x) <=
    ln ((1 + sum (seq 0 V) (fun x => 1 * N x)) * (INR V - 1) + 1)).
  rewrite EW. set (S := sum (seq 0 V) W).
  assert (HS : 0 < S).
  { unfold S. apply Rlt_le_trans with (sum (seq 0 V) (fun _ => 1)); [rewrite sum_const, seq_length; lra|apply sum_le; auto]. }
  assert (Hi : 0 < / S) by now apply Rinv_0_lt_compat.
  assert (Hx : sum (seq 0 V) (fun x => (1 - ln S) * p s x - / S * W x) <= sum (seq 0 V) (fun x => p s x * ln (p s x) - p s x * E x)).
  { apply sum_le. intros x Hx. apply in_vocab in Hx. pose proof (proj1 (Hp s) x Hx) as h. pose proof (HW x).
    pose proof (scaled_term (p s x) (W x) (/ S) h ltac:(lra) ltac:(lra) Hi) as k. rewrite ln_Rinv, pln_div in k by lra.
    pose proof (Rmult_le_compat_l (p s x) _ _ h (IH (x :: s)) : p s x * E x <= p s x * ln (W x)). lra. }
  rewrite !sum_minus, !sum_scal, (proj2 (Hp s)) in Hx. fold S in Hx. rewrite Rinv_l in Hx by lra. lra.
Qed.

Theorem entropy_of_output : Statements.S7_entropy.
Proof.
  split.
  - intros T e path He H. assert (Hn : 0 < INR (length T)).
    { apply lt_0_INR. destruct T; [rewrite sum_nil in He; lra|simpl; lia]. }
    set (n := INR (length T)) in *. assert (Hi : 0 < / n) by now apply Rinv_0_lt_compat.
    apply Rle_trans with (sum T (fun i => / n - (1 - ln n) * e i)).
    + apply sum_le. intros i Ht. destruct (H i Ht) as [[h|<-] h']; [|lra].
      pose proof (xlnx_tangent (e i) (/ n) ltac:(lra) Hi) as k. rewrite ln_Rinv in k by assumption.
      pose proof (ln_nondecr (e i) (path i) h h') as k'. apply Rmult_le_compat_l with (r := e i) in k'; [|lra].
      unfold Rdiv. rewrite Rmult_1_l, ln_Rinv by lra. lra.
    + rewrite sum_minus, sum_const, sum_scal, He. fold n. rewrite Rinv_r by lra. lra.
  - intros V p node depth Hp nodes tokens entropy.
    assert (HV : (1 <= V)%nat).
    { destruct V; [|lia]. destruct (Hp nil) as [_ h]. unfold sum in h. cbn in h. lra. }
    pose proof (entropy_of_pass V p node Hp HV depth nil) as H. fold nodes entropy in H. split; [exact H|].
    intros mu Hmu Hm. apply Rmult_le_reg_l with mu; [assumption|]. replace (mu * (ln (nodes * (INR V - 1) + 1) / mu)) with (ln (nodes * (INR V - 1) + 1)) by (field; lra). lra.
Qed.

Theorem full_tree : Statements.S7_full_tree.
Proof.
  intros V depth HV p full nodes. assert (H0 : 0 < INR V) by (apply lt_0_INR; lia).
  assert (Hs : forall c, sum (seq 0 V) (fun _ => / INR V * c) = c) by (intros c; rewrite sum_const, seq_length; field; lra).
  assert (Hf : forall c d s, passed V p full (fun _ => c) d s = INR d * c).
  { intros c. induction d as [|d IH]; intros s; [simpl; lra|]. cbn [passed]. unfold full at 1.
    rewrite (sum_ext _ _ (fun _ => / INR V * (INR d * c))), Hs, S_INR by (intros x _; now rewrite IH). ring. }
  split; [|split; [|split]].
  - intros s. split; [intros i _; left; now apply Rinv_0_lt_compat|]. unfold p. rewrite sum_const, seq_length. field. lra.
  - rewrite Hf. ring.
  - assert (E : - sum (seq 0 V) (fun _ => / INR V * ln (/ INR V)) = ln (INR V)) by (rewrite Hs, ln_Rinv by assumption; ring).
    rewrite <- E. exact (Hf (- sum (seq 0 V) (fun _ => / INR V * ln (/ INR V))) depth nil).
  - assert (Hn : forall d s, passed V (fun _ _ => 1) full (fun _ => 1) d s * (INR V - 1) + 1 = INR V ^ d).
    { induction d as [|d IH]; intros s; cbn [passed pow]; [lra|]. unfold full at 1.
      rewrite Rmult_plus_distr_r, (Rmult_comm (sum _ _)), <- sum_scal, (sum_ext _ _ (fun _ => INR V ^ d - 1)).
      - rewrite sum_const, seq_length. ring.
      - intros x _. rewrite <- (IH (x :: s)). ring. }
    unfold nodes. rewrite Hn. now rewrite ln_pow.
Qed.
