(** * T1: the level projection. *)

From Coq Require Import Reals List Arith Lra Lia Psatz.
From Draftcert Require Statements.
From Draftcert Require Import Definitions Sums LogFacts.
Open Scope R_scope.

(** ** The level exists: an intermediate value argument. *)

Lemma continuity_excess_above (p : nat -> R) a : continuity (fun c => Rmax 0 (p a - c)).
Proof.
  assert (H : continuity (fun c => (p a - c + Rabs (p a - c)) * / 2)).
  { assert (Hl : continuity (fun c => p a - c)).
    { apply (continuity_minus (fun _ => p a) id); apply derivable_continuous;
        [apply derivable_const|apply derivable_id]. }
    apply (continuity_mult (fun c => p a - c + Rabs (p a - c)) (fun _ => / 2)).
    - apply (continuity_plus (fun c => p a - c) (fun c => Rabs (p a - c))); [assumption|].
      exact (continuity_comp (fun c => p a - c) Rabs Hl Rcontinuity_abs).
    - apply derivable_continuous, derivable_const. }
  intros c. apply (continuity_pt_locally_ext _ _ 1 c Rlt_0_1) with (2 := H c).
  intros x _. unfold Rabs, Rmax. destruct Rcase_abs; destruct Rle_dec; lra.
Qed.

Lemma continuity_excess_below (p : nat -> R) i : continuity (fun c => Rmax 0 (c - p i)).
Proof.
  intros c. 
  apply (continuity_pt_locally_ext (fun c => (c - p i) + Rmax 0 (p i - c)) _ 1 c Rlt_0_1).
  - intros x _. unfold Rmax. destruct Rle_dec; destruct Rle_dec; lra.
  - apply (continuity_plus (fun c => c - p i) (fun c => Rmax 0 (p i - c))).
    + apply (continuity_minus id (fun _ => p i)); apply derivable_continuous;
        [apply derivable_id|apply derivable_const].
    + apply continuity_excess_above.
Qed.

Lemma continuity_sum l (f : nat -> R -> R) :
  (forall i, continuity (f i)) -> continuity (fun c => sum l (fun i => f i c)).
Proof.
  intros Hf. induction l as [|x l IH].
  - apply (derivable_continuous (fun _ => 0)), derivable_const.
  - exact (continuity_plus (f x) (fun c => sum l (fun i => f i c)) (Hf x) IH).
Qed.

Lemma level_exists_bounded A M (p : nat -> R) :
  (forall a, In a A -> p a <= 1) -> (forall i, In i M -> 0 <= p i) ->
  exists c, 0 <= c <= 1 /\ level_eq A M p c.
Proof.
  intros HA HM.
  destruct (IVT_cor (fun c => sum A (fun a => Rmax 0 (p a - c)) - sum M (fun i => Rmax 0 (c - p i))) 0 1)
    as (c & Hc & He); [|lra| |exists c; split; [assumption|unfold level_eq; lra]].
  - apply (continuity_minus (fun c => sum A (fun a => Rmax 0 (p a - c)))
                            (fun c => sum M (fun i => Rmax 0 (c - p i)))).
    + apply (continuity_sum A (fun a c => Rmax 0 (p a - c))), continuity_excess_above.
    + apply (continuity_sum M (fun i c => Rmax 0 (c - p i))), continuity_excess_below.
  - rewrite (sum_ext M (fun i => Rmax 0 (0 - p i)) (fun _ => 0)).
    2:{ intros i Hi. specialize (HM i Hi). apply Rmax_left. lra. }
    rewrite (sum_ext A (fun a => Rmax 0 (p a - 1)) (fun _ => 0)).
    2:{ intros a Ha. specialize (HA a Ha). apply Rmax_left. lra. }
    rewrite !sum_zero.
    assert (0 <= sum A (fun a => Rmax 0 (p a - 0))) by (apply sum_nonneg; intros; apply Rmax_l).
    assert (0 <= sum M (fun i => Rmax 0 (1 - p i))) by (apply sum_nonneg; intros; apply Rmax_l).
    nra.
Qed.

Theorem level_exists : Statements.T1_level_exists.
Proof.
  intros V A M p Hp (_ & _ & HA & HM). apply level_exists_bounded.
  - intros a Ha. now apply (prob_le_1 V p a Hp (HA a Ha)).
  - intros i Hi. now apply Hp, HM.
Qed.

Section Level.

Variables (V : nat) (A M : list nat) (p : nat -> R) (c : R).
Hypothesis Hp : prob V p.
Hypothesis Hd : disjoint_sets V A M.
Hypothesis Hc : 0 <= c.
Hypothesis Hl : level_eq A M p c.

Lemma levelled_A a : In a A -> levelled A M p c a = Rmin (p a) c.
Proof. intros H. unfold levelled. now rewrite mem_in. Qed.

Lemma levelled_M i : In i M -> levelled A M p c i = Rmax (p i) c.
Proof.
  intros H. unfold levelled. rewrite (mem_out A), (mem_in M); [reflexivity|assumption|].
  now apply Hd.
Qed.

Lemma levelled_rest i : ~ In i A -> ~ In i M -> levelled A M p c i = p i.
Proof. intros H1 H2. unfold levelled. now rewrite !mem_out. Qed.

(** What token [i] loses (negative: gains). *)
Definition moves (i : nat) : R :=
  (if mem A i then Rmax 0 (p i - c) else 0) - (if mem M i then Rmax 0 (c - p i) else 0).

Lemma token_cases i : (i < V)%nat ->
  (In i A /\ moves i = Rmax 0 (p i - c) /\ levelled A M p c i = Rmin (p i) c) \/
  (In i M /\ moves i = - Rmax 0 (c - p i) /\ levelled A M p c i = Rmax (p i) c) \/
  (~ In i A /\ ~ In i M /\ moves i = 0 /\ levelled A M p c i = p i).
Proof.
  intros Hi. destruct Hd as (_ & _ & HA & HM). unfold moves.
  destruct (in_dec Nat.eq_dec i A) as [h|h].
  - assert (~ In i M) by (intros h'; now apply (HM i h')).
    left. rewrite levelled_A, (mem_in A), (mem_out M) by assumption. repeat split; auto; lra.
  - right. destruct (in_dec Nat.eq_dec i M) as [h'|h'].
    + left. rewrite levelled_M, (mem_in M), (mem_out A) by assumption. repeat split; auto; lra.
    + right. rewrite levelled_rest, !mem_out by assumption. repeat split; auto; lra.
Qed.

Lemma sum_moves q :
  sum (seq 0 V) (fun i => moves i * q i) =
  sum A (fun a => Rmax 0 (p a - c) * q a) - sum M (fun i => Rmax 0 (c - p i) * q i).
Proof.
  destruct Hd as (HA & HM & HA' & HM').
  rewrite <- (sum_indicator A (seq 0 V)), <- (sum_indicator M (seq 0 V)), <- sum_minus;
    auto using NoDup_seq; try (intros i Hi; apply in_vocab; (now apply HA') || (now apply HM')).
  apply sum_ext. intros i _. unfold moves. destruct (mem A i), (mem M i); lra.
Qed.

Lemma levelled_moves i : (i < V)%nat -> levelled A M p c i = p i - moves i.
Proof.
  intros Hi. destruct (token_cases i Hi) as [(_ & -> & ->)|[(_ & -> & ->)|(_ & _ & -> & ->)]]; [| |lra].
  - unfold Rmin, Rmax. destruct Rle_dec, Rle_dec; lra.
  - unfold Rmax. destruct Rle_dec, Rle_dec; lra.
Qed.

Theorem levelled_prob : prob V (levelled A M p c).
Proof.
  split.
  - intros i Hi. pose proof (proj1 Hp i Hi).
    destruct (token_cases i Hi) as [(_ & _ & ->)|[(_ & _ & ->)|(_ & _ & _ & ->)]]; [| |assumption].
    + apply Rmin_glb; lra.
    + apply Rle_trans with (p i); [assumption|apply Rmax_l].
  - rewrite (sum_ext _ _ (fun i => p i - moves i * 1)).
    2:{ intros i Hi. apply in_vocab in Hi. rewrite levelled_moves by assumption. lra. }
    rewrite sum_minus, sum_moves. rewrite (proj2 Hp).
    rewrite (sum_ext A _ (fun a => Rmax 0 (p a - c))) by (intros; lra).
    rewrite (sum_ext M _ (fun i => Rmax 0 (c - p i))) by (intros; lra).
    red in Hl. lra.
Qed.

Theorem levelled_beats : beats A M (levelled A M p c).
Proof.
  intros i a Hi Ha. rewrite levelled_A, levelled_M by assumption.
  apply Rle_trans with c; [apply Rmin_r|apply Rmax_r].
Qed.

(** At level 0 nothing moves: the accepted tokens carry no mass. *)
Lemma level_zero : c = 0 -> forall i, (i < V)%nat -> moves i = 0.
Proof.
  intros H0 i Hi. destruct Hd as (_ & _ & HA & HM). pose proof Hl as He. red in He.
  assert (HM0 : sum M (fun i => Rmax 0 (c - p i)) = 0).
  { rewrite (sum_ext M _ (fun _ => 0)); [apply sum_zero|]. intros j Hj.
    pose proof (proj1 Hp j (proj1 (HM j Hj))). apply Rmax_left. lra. }
  destruct (token_cases i Hi) as [(h & -> & _)|[(h & -> & _)|(_ & _ & -> & _)]]; [| |reflexivity].
  - apply (sum_zero_inv A (fun a => Rmax 0 (p a - c))); [intros; apply Rmax_l|lra|assumption].
  - pose proof (proj1 Hp i Hi). rewrite Rmax_left; lra.
Qed.

Theorem levelled_finite : KL_finite V p (levelled A M p c).
Proof.
  intros i Hi Hpi. destruct Hc as [Hc'|Hc'].
  - destruct (token_cases i Hi) as [(_ & _ & ->)|[(_ & _ & ->)|(_ & _ & _ & ->)]]; [| |assumption].
    + now apply Rmin_glb_lt.
    + apply Rlt_le_trans with (p i); [assumption|apply Rmax_l].
  - rewrite levelled_moves, level_zero by auto. lra.
Qed.

(** ** Weak duality *)

Definition dual_term (q : nat -> R) (i : nat) : R := p i - q i - moves i * q i / c.

Lemma dual_term_le q i :
  (i < V)%nat -> 0 <= q i -> (0 < p i -> 0 < q i) ->
  dual_term q i <= p i - p i / levelled A M p c i * q i.
Proof.
  intros Hi Hq Hf. unfold dual_term. pose proof (proj1 Hp i Hi) as Hpi.
  assert (Hself : p i / p i * q i <= q i).
  { destruct Hpi as [Hpi|<-]; unfold Rdiv; [rewrite Rinv_r|rewrite Rmult_0_l]; lra. }
  destruct Hc as [Hc'|Hc'].
  - destruct (token_cases i Hi) as [(_ & -> & ->)|[(_ & -> & ->)|(_ & _ & -> & ->)]].
    + destruct (Rle_dec (p i) c) as [h|h].
      * rewrite Rmax_left, Rmin_left by lra. lra.
      * rewrite Rmax_right, Rmin_right by lra. right. field. lra.
    + destruct (Rle_dec (p i) c) as [h|h].
      * rewrite Rmax_right, Rmax_right by lra. right. field. lra.
      * rewrite Rmax_left, Rmax_left by lra. lra.
    + lra.
  - rewrite levelled_moves, level_zero by auto. rewrite Rminus_0_r. lra.
Qed.

Lemma dual_term_kl q i :
  prob V q -> KL_finite V p q -> (i < V)%nat ->
  dual_term q i <= p i * ln (p i / q i) - p i * ln (p i / levelled A M p c i).
Proof.
  intros Hq Hf Hi. pose proof (proj1 Hq i Hi) as Hqi. specialize (Hf i Hi).
  eapply Rle_trans; [apply dual_term_le; auto|]. apply gibbs_shift; [now apply Hp|].
  intros h. split; [auto|]. now apply levelled_finite.
Qed.

(** What feasibility buys: the moved mass sits where [q] is small. *)
Lemma moves_sum_nonpos q :
  M <> nil -> beats A M q -> sum (seq 0 V) (fun i => moves i * q i) <= 0.
Proof.
  intros HM0 Hb. rewrite sum_moves. destruct (list_min M q HM0) as (j & Hj & Hmin).
  assert (H1 : sum A (fun a => Rmax 0 (p a - c) * q a) <= sum A (fun a => q j * Rmax 0 (p a - c))).
  { apply sum_le. intros a Ha. pose proof (Rmax_l 0 (p a - c)). specialize (Hb j a Hj Ha). nra. }
  assert (H2 : sum M (fun i => q j * Rmax 0 (c - p i)) <= sum M (fun i => Rmax 0 (c - p i) * q i)).
  { apply sum_le. intros i Hi. pose proof (Rmax_l 0 (c - p i)). specialize (Hmin i Hi). nra. }
  rewrite !sum_scal in *. red in Hl. rewrite Hl in H1. lra.
Qed.

Lemma dual_sum_nonneg q :
  M <> nil -> prob V q -> beats A M q -> 0 <= sum (seq 0 V) (dual_term q).
Proof.
  intros HM0 Hq Hb. unfold dual_term.
  rewrite sum_minus, sum_minus, (proj2 Hp), (proj2 Hq).
  rewrite (sum_ext _ (fun i => moves i * q i / c) (fun i => / c * (moves i * q i))) by (intros; unfold Rdiv; ring).
  rewrite sum_scal. pose proof (moves_sum_nonpos q HM0 Hb).
  assert (H3 : 0 <= / c).
  { destruct Hc as [h|<-]; [left; now apply Rinv_0_lt_compat|rewrite Rinv_0; lra]. }
  nra.
Qed.

(** Optimality against EVERY feasible [q]. *)
Theorem levelled_optimal q :
  M <> nil -> prob V q -> beats A M q -> KL_finite V p q ->
  KL V p (levelled A M p c) <= KL V p q.
Proof.
  intros HM0 Hq Hb Hf. pose proof (dual_sum_nonneg q HM0 Hq Hb) as H.
  assert (H' : sum (seq 0 V) (dual_term q) <= KL V p q - KL V p (levelled A M p c)); [|lra].
  unfold KL. rewrite <- sum_minus. apply sum_le. intros i Hi. apply dual_term_kl; auto.
  now apply in_vocab.
Qed.

(** The minimiser is unique, on the whole vocabulary. *)
Theorem levelled_unique q :
  M <> nil -> prob V q -> beats A M q -> KL_finite V p q ->
  KL V p q <= KL V p (levelled A M p c) ->
  forall i, (i < V)%nat -> q i = levelled A M p c i.
Proof.
  intros HM0 Hq Hb Hf Hle.
  assert (Hpos : forall i, (i < V)%nat -> 0 < p i -> q i = levelled A M p c i).
  { intros i Hi Hpi.
    assert (He : dual_term q i = p i * ln (p i / q i) - p i * ln (p i / levelled A M p c i)).
    { apply (sum_le_eq (seq 0 V) (dual_term q)
               (fun i => p i * ln (p i / q i) - p i * ln (p i / levelled A M p c i))).
      - intros j Hj. apply dual_term_kl; auto. now apply in_vocab.
      - rewrite sum_minus. pose proof (dual_sum_nonneg q HM0 Hq Hb). unfold KL in Hle. lra.
      - now apply in_vocab. }
    apply gibbs_shift_eq with (p i); auto; [now apply levelled_finite|].
    apply Rle_antisym; [|apply gibbs_shift; [lra|]; intros; split; auto; now apply levelled_finite].
    rewrite <- He. apply dual_term_le; auto. apply Hq, Hi. }
  (* tokens without mass: q is at least q*, and both sum to one *)
  assert (Hge : forall i, (i < V)%nat -> levelled A M p c i <= q i).
  { intros i Hi. destruct (proj1 Hp i Hi) as [h|h]; [rewrite Hpos by assumption; lra|].
    pose proof (proj1 Hq i Hi) as Hqi.
    destruct (token_cases i Hi) as [(_ & _ & ->)|[(HiM & _ & ->)|(_ & _ & _ & ->)]]; [| |lra].
    - rewrite <- h. rewrite Rmin_left; lra.
    - rewrite <- h, Rmax_right by lra. 
      destruct Hc as [Hc'|Hc']; [|lra].
      assert (Ha : exists a, In a A /\ c < p a).
      { destruct (Exists_dec (fun a => c < p a) A (fun a => Rlt_dec c (p a))) as [E|E].
        - apply Exists_exists in E. exact E.
        - exfalso. red in Hl. rewrite (sum_ext A _ (fun _ => 0)), sum_zero in Hl.
          + assert (H : Rmax 0 (c - p i) = 0).
            { apply (sum_zero_inv M (fun i => Rmax 0 (c - p i))); auto; [intros; apply Rmax_l|lra]. }
            rewrite Rmax_right in H; lra.
          + intros a Ha. apply Rmax_left.
            destruct (Rlt_dec c (p a)); [|lra]. exfalso. apply E, Exists_exists. eauto. }
      destruct Ha as (a & Ha & Hca). specialize (Hb i a HiM Ha).
      rewrite (Hpos a), levelled_A, Rmin_right in Hb; auto; try lra. now apply (proj1 (proj2 (proj2 Hd))). }
  intros i Hi. symmetry. apply (sum_le_eq (seq 0 V) (levelled A M p c) q).
  - intros j Hj. now apply Hge, in_vocab.
  - rewrite (proj2 Hq), (proj2 levelled_prob). lra.
  - now apply in_vocab.
Qed.

(** ** The value *)

Lemma sum_filter (P : nat -> bool) l f :
  sum (filter P l) f = sum l (fun i => if P i then f i else 0).
Proof.
  induction l as [|x l IH]; [reflexivity|]. cbn [filter]. rewrite sum_cons.
  destruct (P x); rewrite ?sum_cons, IH; lra.
Qed.

Theorem levelled_value :
  KL V p (levelled A M p c) = sum (moved A M p c) (fun i => p i * ln (p i / c)).
Proof.
  destruct Hd as (HA & HM & HA' & HM'). unfold moved. rewrite sum_app, !sum_filter.
  rewrite <- (sum_indicator A (seq 0 V)), <- (sum_indicator M (seq 0 V)), <- sum_plus;
    auto using NoDup_seq; try (intros i Hi; apply in_vocab; (now apply HA') || (now apply HM')).
  apply sum_ext. intros i Hi. apply in_vocab in Hi. unfold levelled.
  destruct (mem A i) eqn:EA.
  - apply mem_true in EA. assert (~ In i M) by (intros h'; now apply (HM' i h')). rewrite mem_out by assumption.
    destruct (Rlt_dec c (p i)).
    + rewrite Rmin_right; lra.
    + rewrite Rmin_left, div_self_ln; lra.
  - destruct (mem M i).
    + destruct (Rlt_dec (p i) c).
      * rewrite Rmax_right; lra.
      * rewrite Rmax_left, div_self_ln; lra.
    + rewrite div_self_ln; lra.
Qed.

End Level.

Theorem level_projection V A M p c :
  prob V p -> disjoint_sets V A M -> M <> nil -> 0 <= c -> level_eq A M p c ->
  least V A M p (sum (moved A M p c) (fun i => p i * ln (p i / c))).
Proof.
  intros Hp Hd HM Hc Hl. rewrite <- (levelled_value V A M p c Hd). split.
  - exists (levelled A M p c). split; [now apply levelled_prob|].
    split; [now apply (levelled_beats V)|]. split; [now apply levelled_finite|reflexivity].
  - intros q Hq Hb Hf. now apply levelled_optimal.
Qed.

Lemma least_unique V A M p x y : least V A M p x -> least V A M p y -> x = y.
Proof.
  intros [(q & h1 & h2 & h3 & <-) Hx] [(q' & h1' & h2' & h3' & <-) Hy].
  apply Rle_antisym; auto.
Qed.

Lemma least_exists V A M p :
  prob V p -> disjoint_sets V A M -> M <> nil -> exists x, least V A M p x.
Proof.
  intros Hp Hd HM. destruct (level_exists V A M p Hp Hd) as (c & Hc & Hl).
  eexists. eapply level_projection; eauto; lra.
Qed.
