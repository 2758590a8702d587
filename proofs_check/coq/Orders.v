(** * T6 between rules, B5 (numerical noise), and the total-variation case of B3. *)

From Coq Require Import Reals List Arith Lra Lia Psatz.
From Draftcert Require Statements.
From Draftcert Require Import Definitions Sums LogFacts Projection Competitors StrictGreedy.
Open Scope R_scope.

(** ** exp(-H) is at most the largest probability, strictly unless all tokens of the support tie with it *)

Lemma neg_entropy_le V p p1 :
  prob V p -> (forall i, (i < V)%nat -> p i <= p1) -> sum (seq 0 V) (fun i => p i * ln (p i)) <= ln p1.
Proof.
  intros Hp H1. replace (ln p1) with (sum (seq 0 V) (fun i => ln p1 * p i)) by (rewrite sum_scal, (proj2 Hp); lra).
  apply sum_le. intros i Hi. apply in_vocab in Hi. destruct (proj1 Hp i Hi) as [h|<-]; [|lra].
  rewrite (Rmult_comm (ln p1)). apply Rmult_le_compat_l; [lra|]. apply ln_nondecr; auto.
Qed.

Lemma neg_entropy_lt V p p1 i :
  prob V p -> (forall j, (j < V)%nat -> p j <= p1) -> (i < V)%nat -> 0 < p i < p1 ->
  sum (seq 0 V) (fun i => p i * ln (p i)) < ln p1.
Proof.
  intros Hp H1 Hi Hpi. apply Rnot_le_lt. intros h.
  assert (E : p i * ln (p i) = ln p1 * p i).
  { apply (sum_le_eq (seq 0 V) (fun i => p i * ln (p i)) (fun i => ln p1 * p i)).
    - intros j Hj. apply in_vocab in Hj. destruct (proj1 Hp j Hj) as [k|<-]; [|lra].
      rewrite (Rmult_comm (ln p1)). apply Rmult_le_compat_l; [lra|]. apply ln_nondecr; auto.
    - rewrite sum_scal, (proj2 Hp). lra.
    - now apply in_vocab. }
  pose proof (ln_increasing (p i) p1 (proj1 Hpi) (proj2 Hpi)). nra.
Qed.

(** The typical rule accepts whatever multiplicative(delta) accepts, the argmax included. *)
Theorem typical_contains_multiplicative : Statements.T6_typical_contains_multiplicative.
Proof.
  intros V p p1 i eps delta Hp H1 Hp1 Hi Hdel Hacc. eapply Rle_lt_trans; [apply Rmin_r|].
  assert (Hpi : 0 < p i) by nra. specialize (H1 i Hi) as H1i.
  assert (Hle : forall x, x <= ln p1 -> exp x <= p1).
  { intros x [h| ->]; [|rewrite exp_ln; lra]. left. rewrite <- (exp_ln p1) by assumption. now apply exp_increasing. }
  destruct H1i as [h|h].
  - pose proof (neg_entropy_lt V p p1 i Hp H1 Hi ltac:(lra)) as E.
    apply exp_increasing in E. rewrite exp_ln in E by assumption. nra.
  - pose proof (Hle _ (neg_entropy_le V p p1 Hp H1)) as E. nra.
Qed.

(** ** B5: a second evaluation [p'] of the model keeps the strict greedy token *)
Theorem same_greedy_token : Statements.B5_same_greedy_token.
Proof.
  intros V a p p' x Hx Hp' Hf Hlt j Hj Hja. apply Rnot_le_lt. intros h.
  apply (guarantee V (single a) 1 p x p' Hx Hp' Hf Hlt). exists (single j).
  split; [repeat constructor; simpl; tauto|]. split; [reflexivity|]. split.
  - intros i [<-|[]]. split; [assumption|]. intros [k|[]]. congruence.
  - intros i k [<-|[]] [<-|[]]. assumption.
Qed.

(** ** Total variation: the same projection *)

Lemma tv_positive_part V p q : prob V p -> prob V q ->
  tv V p q = sum (seq 0 V) (fun i => Rmax 0 (p i - q i)) /\ tv V p q = sum (seq 0 V) (fun i => Rmax 0 (q i - p i)).
Proof.
  intros Hp Hq. unfold tv. split.
  - rewrite (sum_ext _ _ (fun i => 2 * Rmax 0 (p i - q i) - (p i - q i))).
    + rewrite !sum_minus, sum_scal, (proj2 Hp), (proj2 Hq). field.
    + intros i _. unfold Rabs, Rmax. destruct Rcase_abs, Rle_dec; lra.
  - rewrite (sum_ext _ _ (fun i => 2 * Rmax 0 (q i - p i) - (q i - p i))).
    + rewrite !sum_minus, sum_scal, (proj2 Hp), (proj2 Hq). field.
    + intros i _. unfold Rabs, Rmax. destruct Rcase_abs, Rle_dec; lra.
Qed.

Theorem tv_projection : Statements.B3_total_variation.
Proof.
  intros V A M p c Hp Hd HM Hc Hl v. pose proof Hd as (d1 & d2 & d3 & d4). split.
  - exists (levelled A M p c). pose proof (levelled_prob V A M p c Hp Hd Hc Hl) as Hq.
    split; [assumption|]. split; [exact (levelled_beats V A M p c Hd)|].
    rewrite (proj1 (tv_positive_part V p _ Hp Hq)). unfold v.
    rewrite <- (sum_indicator A (seq 0 V)); auto using NoDup_seq; [|intros i Hi; now apply in_vocab, d3].
    apply sum_ext. intros i Hi. apply in_vocab in Hi. rewrite (levelled_moves V A M p c Hd i Hi).
    destruct (token_cases V A M p c Hd i Hi) as [(h & -> & _)|[(h & -> & _)|(h1 & h2 & -> & _)]].
    + rewrite mem_in by assumption. unfold Rmax. destruct Rle_dec, Rle_dec; lra.
    + rewrite mem_out by now apply d4. unfold Rmax. destruct Rle_dec, Rle_dec; lra.
    + rewrite mem_out by assumption. apply Rmax_left. lra.
  - intros q Hq Hb. destruct (list_min M q HM) as (j & Hj & Hmin).
    destruct (tv_positive_part V p q Hp Hq) as [E1 E2].
    destruct (Rle_dec (q j) c) as [h|h].
    + rewrite E1. apply Rle_trans with (sum A (fun a => Rmax 0 (p a - q a))).
      * apply sum_le. intros a Ha. specialize (Hb j a Hj Ha). unfold Rmax. destruct Rle_dec, Rle_dec; lra.
      * apply sum_sub_le; auto using NoDup_seq; [intros i Hi; now apply in_vocab, d3|intros; apply Rmax_l].
    + rewrite E2. unfold v. rewrite Hl. apply Rle_trans with (sum M (fun i => Rmax 0 (q i - p i))).
      * apply sum_le. intros i Hi. specialize (Hmin i Hi). unfold Rmax. destruct Rle_dec, Rle_dec; lra.
      * apply sum_sub_le; auto using NoDup_seq; [intros i Hi; now apply in_vocab, d4|intros; apply Rmax_l].
Qed.

(** ** Reverse KL: the level is a geometric mean (the level equation holds for logarithms) *)

Section Reverse.

Variables (V : nat) (A M : list nat) (p : nat -> R) (c : R).
Hypothesis Hp : prob V p.
Hypothesis Hd : disjoint_sets V A M.
Hypothesis HM0 : M <> nil.
Hypothesis Hc : 0 < c.
Hypothesis HpA : forall a, In a A -> 0 < p a.
Hypothesis HpM : forall i, In i M -> 0 < p i.
Hypothesis Hl : level_eq A M (fun i => ln (p i)) (ln c).

Let w := levelled A M p c.
Let W := sum (seq 0 V) w.
Let mv := moves A M (fun i => ln (p i)) (ln c).

Lemma reverse_token i : (i < V)%nat ->
  0 <= w i /\ (0 < p i -> 0 < w i /\ ln (w i) = ln (p i) - mv i) /\ mv i * w i = mv i * c /\ (p i = 0 -> w i = 0).
Proof.
  intros Hi. unfold w, mv. pose proof (proj1 Hp i Hi) as Hpi.
  destruct (token_cases V A M (fun i => ln (p i)) (ln c) Hd i Hi) as [(h & -> & _)|[(h & -> & _)|(h1 & h2 & -> & _)]].
  - rewrite levelled_A by assumption. specialize (HpA i h). destruct (Rle_dec (p i) c) as [g|g].
    + pose proof (ln_nondecr (p i) c HpA g). rewrite Rmin_left, Rmax_left by lra. repeat split; lra.
    + assert (c < p i) by lra. pose proof (ln_increasing c (p i) Hc ltac:(assumption)).
      rewrite Rmin_right, Rmax_right by lra. repeat split; lra.
  - rewrite (levelled_M V A M p c Hd) by assumption. specialize (HpM i h). destruct (Rle_dec (p i) c) as [g|g].
    + pose proof (ln_nondecr (p i) c HpM g). rewrite !Rmax_right by lra. repeat split; lra.
    + assert (c < p i) by lra. pose proof (ln_increasing c (p i) Hc ltac:(assumption)).
      rewrite !Rmax_left by lra. repeat split; lra.
  - rewrite levelled_rest by assumption. repeat split; lra.
Qed.

Lemma reverse_mass_pos : 0 < W.
Proof.
  assert (Hnn : forall i, In i (seq 0 V) -> 0 <= w i) by (intros i Hi; apply in_vocab in Hi; now apply reverse_token).
  apply Rnot_le_lt. intros h. destruct (list_min M p HM0) as (i & HiM & _).
  destruct (proj2 (proj2 (proj2 Hd)) i HiM) as [Hi _].
  pose proof (sum_zero_inv _ w Hnn h i (proj2 (in_vocab V i) Hi)) as h0.
  destruct (reverse_token i Hi) as (_ & k & _). destruct (k (HpM i HiM)). lra.
Qed.

Lemma reverse_lower q : prob V q -> beats A M q -> KL_finite V q p -> - ln W <= KL V q p.
Proof.
  intros Hq Hb Hf. pose proof reverse_mass_pos as HW.
  assert (H : sum (seq 0 V) (fun i => q i - / W * w i - mv i * q i - ln W * q i) <= KL V q p).
  { apply sum_le. intros i Hi. apply in_vocab in Hi. destruct (reverse_token i Hi) as (h1 & h2 & _ & _).
    assert (HiW : 0 < / W) by now apply Rinv_0_lt_compat.
    assert (0 <= / W * w i) by (apply Rmult_le_pos; lra).
    destruct (proj1 Hq i Hi) as [hq|<-]; [|lra]. pose proof (Hf i Hi hq) as hp. destruct (h2 hp) as [k1 k2].
    assert (Hw : 0 < / W * w i) by (apply Rmult_lt_0_compat; lra).
    pose proof (gibbs_term (q i) (/ W * w i) ltac:(lra) ltac:(lra) ltac:(auto)) as g.
    rewrite ln_div, ln_mult, ln_Rinv, k2 in g by assumption. rewrite ln_div by assumption. nra. }
  rewrite !sum_minus, !sum_scal, (proj2 Hq) in H. fold W in H. rewrite Rinv_l in H by lra.
  pose proof (moves_sum_nonpos V A M _ _ Hd Hl q HM0 Hb) as Hm. fold mv in Hm. lra.
Qed.

Lemma reverse_attained :
  exists q, prob V q /\ beats A M q /\ KL_finite V q p /\ KL V q p = - ln W.
Proof.
  pose proof reverse_mass_pos as HW. assert (HiW : 0 < / W) by now apply Rinv_0_lt_compat.
  assert (Hsum : sum (seq 0 V) (fun i => / W * w i) = 1) by (rewrite sum_scal; fold W; field; lra).
  exists (fun i => / W * w i). split; [split; [|assumption]|split; [|split]].
  - intros i Hi. apply Rmult_le_pos; [lra|now apply reverse_token].
  - intros i a Hi Ha. apply Rmult_le_compat_l; [lra|]. now apply (levelled_beats V A M p c Hd).
  - intros i Hi hq. destruct (proj1 Hp i Hi) as [h|h]; [assumption|].
    destruct (reverse_token i Hi) as (_ & _ & _ & k). rewrite k in hq by auto. lra.
  - unfold KL. rewrite (sum_ext _ _ (fun i => - (c * / W) * (mv i * 1) - ln W * (/ W * w i))).
    + rewrite sum_minus, !sum_scal. fold W. unfold mv. rewrite (sum_moves V A M _ _ Hd).
      rewrite (sum_ext A _ (fun a => Rmax 0 (ln (p a) - ln c))) by (intros; lra).
      rewrite (sum_ext M _ (fun i => Rmax 0 (ln c - ln (p i)))) by (intros; lra).
      red in Hl. rewrite Hl. field. lra.
    + intros i Hi. apply in_vocab in Hi. destruct (reverse_token i Hi) as (h1 & h2 & h3 & h4).
      destruct (proj1 Hp i Hi) as [hp|hp].
      * destruct (h2 hp) as [k1 k2].
        rewrite ln_div, ln_mult, ln_Rinv, k2 by (try apply Rmult_lt_0_compat; assumption).
        replace (/ W * w i * (- ln W + (ln (p i) - mv i) - ln (p i))) with (- / W * (mv i * w i) - ln W * (/ W * w i)) by ring.
        rewrite h3. ring.
      * rewrite h4 in * by auto. rewrite Rmult_0_r in h3.
        replace (- (c * / W) * (mv i * 1)) with (- / W * (mv i * c)) by ring. rewrite <- h3. ring.
Qed.

End Reverse.

Theorem reverse_projection V A M p c :
  prob V p -> disjoint_sets V A M -> M <> nil -> 0 < c ->
  (forall a, In a A -> 0 < p a) -> (forall i, In i M -> 0 < p i) ->
  level_eq A M (fun i => ln (p i)) (ln c) ->
  let W := sum (seq 0 V) (levelled A M p c) in
  (exists q, prob V q /\ beats A M q /\ KL_finite V q p /\ KL V q p = - ln W) /\
  (forall q, prob V q -> beats A M q -> KL_finite V q p -> - ln W <= KL V q p).
Proof.
  intros Hp Hd HM Hc HA HM' Hl W. split.
  - exact (reverse_attained V A M p c Hp Hd HM Hc HA HM' Hl).
  - intros q Hq Hb Hf. exact (reverse_lower V A M p c Hp Hd HM Hc HA HM' Hl q Hq Hb Hf).
Qed.
