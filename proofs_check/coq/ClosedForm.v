(** * T3: the closed form over the pooled tokens. *)

From Coq Require Import Reals List Arith Lra Lia Psatz.
From Draftcert Require Statements.
From Draftcert Require Import Definitions Sums LogFacts Projection Competitors.
Open Scope R_scope.

(** The level is the mean of the tokens it moves. *)
Theorem level_is_mean : Statements.T3_level_is_mean.
Proof.
  intros A M p c Hl. rewrite <- sum_const. unfold moved. rewrite !sum_app, !sum_filter.
  enough (sum A (fun i => if (if Rlt_dec c (p i) then true else false) then p i else 0)
          - sum A (fun i => if (if Rlt_dec c (p i) then true else false) then c else 0)
          = sum A (fun a => Rmax 0 (p a - c)) /\
          sum M (fun i => if (if Rlt_dec (p i) c then true else false) then c else 0)
          - sum M (fun i => if (if Rlt_dec (p i) c then true else false) then p i else 0)
          = sum M (fun i => Rmax 0 (c - p i))) as [H1 H2] by (red in Hl; lra).
  split; rewrite <- sum_minus; apply sum_ext; intros i _.
  - destruct (Rlt_dec c (p i)); [rewrite Rmax_right|rewrite Rmax_left]; lra.
  - destruct (Rlt_dec (p i) c); [rewrite Rmax_right|rewrite Rmax_left]; lra.
Qed.

Lemma pool_level V A M PA PM p c :
  disjoint_sets V A M -> pool_of A M p c PA PM -> level_eq A M p c.
Proof.
  intros (HA & HM & _ & _) (h1 & h2 & h3 & h4 & h5 & h6 & h7 & h8 & hs). red.
  rewrite (sum_ext A _ (fun a => if mem PA a then p a - c else 0)).
  2:{ intros a Ha. destruct (in_dec Nat.eq_dec a PA) as [h|h].
      - specialize (h5 a h). rewrite mem_in by assumption. apply Rmax_right. lra.
      - specialize (h6 a Ha h). rewrite mem_out by assumption. apply Rmax_left. lra. }
  rewrite (sum_ext M _ (fun i => if mem PM i then c - p i else 0)).
  2:{ intros i Hi. destruct (in_dec Nat.eq_dec i PM) as [h|h].
      - specialize (h7 i h). rewrite mem_in by assumption. apply Rmax_right. lra.
      - specialize (h8 i Hi h). rewrite mem_out by assumption. apply Rmax_left. lra. }
  rewrite !sum_indicator, !sum_minus, !sum_const by assumption.
  rewrite sum_app, app_length, plus_INR in hs. lra.
Qed.

Lemma pool_value A M PA PM p c :
  NoDup A -> NoDup M -> pool_of A M p c PA PM ->
  sum (moved A M p c) (fun i => p i * ln (p i / c)) = sum (PA ++ PM) (fun i => p i * ln (p i / c)).
Proof.
  intros HA HM (h1 & h2 & h3 & h4 & h5 & h6 & h7 & h8 & hs).
  unfold moved. rewrite !sum_app, !sum_filter.
  rewrite <- (sum_indicator PA A), <- (sum_indicator PM M) by assumption.
  f_equal; apply sum_ext; intros i Hi.
  - destruct (Rlt_dec c (p i)) as [h|h].
    + rewrite mem_in; [reflexivity|]. destruct (in_dec Nat.eq_dec i PA) as [|h']; [assumption|].
      specialize (h6 i Hi h'). lra.
    + destruct (in_dec Nat.eq_dec i PA) as [h'|h']; [|now rewrite mem_out].
      rewrite mem_in by assumption. specialize (h5 i h'). replace (p i) with c by lra. now rewrite div_self_ln.
  - destruct (Rlt_dec (p i) c) as [h|h].
    + rewrite mem_in; [reflexivity|]. destruct (in_dec Nat.eq_dec i PM) as [|h']; [assumption|].
      specialize (h8 i Hi h'). lra.
    + destruct (in_dec Nat.eq_dec i PM) as [h'|h']; [|now rewrite mem_out].
      rewrite mem_in by assumption. specialize (h7 i h'). replace (p i) with c by lra. now rewrite div_self_ln.
Qed.

(** Three forms of the value over a pool of [n] tokens at their mean. *)
Lemma pool_nlogn (l : list nat) p c :
  (forall i, In i l -> 0 <= p i) -> 0 <= c -> sum l p = INR (length l) * c ->
  sum l (fun i => p i * ln (p i / c)) =
  sum l (fun i => p i * ln (p i)) - sum l p * ln c.
Proof.
  intros Hp [Hc|<-] Hs.
  - rewrite (Rmult_comm (sum l p)), <- sum_scal, <- sum_minus. apply sum_ext. intros i Hi.
    rewrite pln_div; auto. lra.
  - rewrite Rmult_0_r in Hs. rewrite Hs, Rmult_0_l, Rminus_0_r. apply sum_ext. intros i Hi.
    rewrite (sum_zero_inv l p Hp ltac:(lra) i Hi). lra.
Qed.

Lemma pool_kl_div (l : list nat) p c :
  sum l p = INR (length l) * c ->
  sum l (fun i => p i * ln (p i / c) - p i + c) = sum l (fun i => p i * ln (p i / c)).
Proof.
  intros Hs. rewrite (sum_plus l (fun i => p i * ln (p i / c) - p i) (fun _ => c)), sum_minus, sum_const. lra.
Qed.

Lemma kl_div_term_nonneg p c : 0 <= p -> 0 < c -> 0 <= p * ln (p / c) - p + c.
Proof. intros Hp Hc. pose proof (gibbs_term p c Hp (Rlt_le _ _ Hc) (fun _ => Hc)). lra. Qed.

Lemma pool_subset V A M PA PM p c :
  prob V p -> disjoint_sets V A M -> pool_of A M p c PA PM -> forall i, In i (PA ++ PM) -> 0 <= p i.
Proof.
  intros Hp (_ & _ & HA & HM) (_ & _ & h3 & h4 & _) i Hi. apply Hp.
  apply in_app_iff in Hi. destruct Hi as [Hi|Hi]; [apply HA, h3, Hi|apply (HM i), h4, Hi].
Qed.

Theorem closed_form V A M PA PM p :
  let n := INR (length (PA ++ PM)) in
  let S := sum (PA ++ PM) p in
  let E := sum (PA ++ PM) (fun i => p i * ln (p i)) in
  prob V p -> disjoint_sets V A M -> M <> nil -> 0 < n ->
  pool_of A M p (S / n) PA PM -> least V A M p (E - S * ln (S / n)).
Proof.
  intros n S E Hp Hd HM Hn Hpool.
  assert (Hpos := pool_subset _ _ _ _ _ _ _ Hp Hd Hpool).
  assert (Hc : 0 <= S / n).
  { apply Rmult_le_pos; [now apply sum_nonneg|left; now apply Rinv_0_lt_compat]. }
  assert (Hs : sum (PA ++ PM) p = n * (S / n)) by (fold S; field; lra).
  unfold E, S. rewrite <- pool_nlogn by assumption.
  rewrite <- pool_value with (A := A) (M := M); try apply Hd; auto.
  apply level_projection; auto. eapply pool_level; eauto.
Qed.

(** The well-conditioned form of the same value: a sum of nonnegative terms. *)
Theorem closed_form_kl_div V A M PA PM p :
  let n := INR (length (PA ++ PM)) in
  let c := sum (PA ++ PM) p / n in
  prob V p -> disjoint_sets V A M -> M <> nil -> 0 < n -> pool_of A M p c PA PM ->
  least V A M p (sum (PA ++ PM) (fun i => p i * ln (p i / c) - p i + c)).
Proof.
  intros n c Hp Hd HM Hn Hpool.
  assert (Hpos := pool_subset _ _ _ _ _ _ _ Hp Hd Hpool).
  assert (Hc : 0 <= c).
  { apply Rmult_le_pos; [now apply sum_nonneg|left; now apply Rinv_0_lt_compat]. }
  assert (Hs : sum (PA ++ PM) p = n * c) by (unfold c; field; lra).
  rewrite pool_kl_div, pool_nlogn by assumption. now apply closed_form.
Qed.
