(** * B3: the projection for the Renyi divergence of order [a > 0], [a <> 1].

    D_a(p||q) = ln (sum p^a q^(1-a)) / (a - 1).  It is infinite where [a > 1] and
    some [q i = 0 < p i], and where [a < 1] and the sum is 0.  The level is a power
    mean: the level equation of T1 holds for the powers [p^a] and [c^a]. *)

From Coq Require Import Reals List Arith Lra Lia Psatz.
From Draftcert Require Statements.
From Draftcert Require Import Definitions Sums LogFacts Projection.
Open Scope R_scope.

Lemma pw_pos x a : 0 < x -> pw x a = Rpower x a.
Proof. intros H. unfold pw. now destruct (Rlt_dec 0 x). Qed.

Lemma pw_0 a : pw 0 a = 0.
Proof. unfold pw. destruct (Rlt_dec 0 0); lra. Qed.

Lemma Rpower_gt0 x a : 0 < Rpower x a.
Proof. apply exp_pos. Qed.

Lemma pw_nonneg x a : 0 <= pw x a.
Proof. unfold pw. destruct (Rlt_dec 0 x); [left; apply Rpower_gt0|lra]. Qed.

Lemma pw_lt x y a : 0 < a -> 0 <= x < y -> pw x a < pw y a.
Proof.
  intros Ha [[Hx|<-] Hy].
  - rewrite !pw_pos by lra. unfold Rpower. apply exp_increasing, Rmult_lt_compat_l; [assumption|]. now apply ln_increasing.
  - rewrite pw_0, pw_pos by assumption. apply Rpower_gt0.
Qed.

Lemma pw_le x y a : 0 < a -> 0 <= x <= y -> pw x a <= pw y a.
Proof.
  intros Ha [Hx [Hy| ->]]; [|lra]. left. apply pw_lt; lra.
Qed.

Lemma pw_one a : pw 1 a = 1.
Proof. rewrite pw_pos by lra. unfold Rpower. rewrite ln_1, Rmult_0_r. apply exp_0. Qed.

(** Tangents of [x^r] at 1: below for [r < 0], above for [0 < r < 1]. *)
Lemma power_tangent_below x r : 0 < x -> r <= 0 -> 1 + r * (x - 1) <= Rpower x r.
Proof.
  intros Hx Hr. unfold Rpower. pose proof (exp_ineq1_le (r * ln x)) as H.
  pose proof (ln_le_sub1 x Hx). nra.
Qed.

Lemma power_tangent_above x r : 0 < x -> 0 < r < 1 -> Rpower x r <= 1 + r * (x - 1).
Proof.
  intros Hx Hr. set (y := 1 + r * (x - 1)). assert (Hy : 0 < y) by (unfold y; nra).
  rewrite <- (exp_ln y) by assumption. unfold Rpower.
  assert (H : r * ln x <= ln y).
  { assert (h1 : ln (x / y) <= x / y - 1) by (apply ln_le_sub1; now apply Rdiv_lt_0_compat).
    assert (h2 : ln (1 / y) <= 1 / y - 1) by (apply ln_le_sub1; apply Rdiv_lt_0_compat; lra).
    rewrite ln_div in h1, h2 by lra. rewrite ln_1 in h2.
    apply Rmult_le_compat_l with (r := r) in h1; [|lra].
    apply Rmult_le_compat_l with (r := 1 - r) in h2; [|lra].
    assert (r * (x / y - 1) + (1 - r) * (1 / y - 1) = 0).
    { replace (r * (x / y - 1) + (1 - r) * (1 / y - 1)) with ((1 + r * (x - 1)) / y - 1) by (field; lra).
      fold y. field. lra. }
    lra. }
  destruct H as [H|H]; [left; now apply exp_increasing|rewrite H; lra].
Qed.

Section Renyi.

Variables (V : nat) (A M : list nat) (p : nat -> R) (a c : R).
Hypothesis Hp : prob V p.
Hypothesis Hd : disjoint_sets V A M.
Hypothesis HM0 : M <> nil.
Hypothesis Ha : 0 < a.
Hypothesis Hc : 0 <= c.

Let P i := pw (p i) a.
Let K := pw c a.
Hypothesis Hl : level_eq A M P K.

(** The levelled target before normalisation, and its mass. *)
Let w := levelled A M p c.
Let W := sum (seq 0 V) w.
(** The ratio [(p/w)^a], and how it splits. *)
Let r i := P i / pw (w i) a.
Let mv := moves A M P K.

Lemma renyi_token i : (i < V)%nat ->
  0 <= w i /\ (0 < p i -> 0 < w i) /\ r i <= 1 + mv i / K /\ r i * w i = w i + mv i / K * c.
Proof.
  intros Hi. pose proof (proj1 Hp i Hi) as Hpi.
  assert (Hself : pw (p i) a / pw (p i) a <= 1 /\ pw (p i) a / pw (p i) a * p i = p i).
  { destruct Hpi as [h|<-].
    - rewrite pw_pos by assumption. pose proof (Rpower_gt0 (p i) a). unfold Rdiv. rewrite Rinv_r by lra. lra.
    - rewrite pw_0. unfold Rdiv. lra. }
  assert (HKc : forall x, 0 <= x -> (x <= c -> pw x a <= K) /\ (c < x -> K < pw x a)).
  { intros x Hx. split; intros h; [apply pw_le|apply pw_lt]; lra. }
  destruct (HKc (p i) Hpi) as [k1 k2]. destruct Hself as [s1 s2].
  unfold r, w.
  destruct Hc as [Hc0|Hc0].
  - assert (HK : 0 < K) by (unfold K; rewrite pw_pos by assumption; apply Rpower_gt0).
    unfold mv. destruct (token_cases V A M P K Hd i Hi) as [(h & -> & _)|[(h & -> & _)|(h1 & h2 & -> & _)]].
    + rewrite levelled_A by assumption. unfold P at 2 4. destruct (Rle_dec (p i) c) as [g|g].
      * rewrite Rmin_left, Rmax_left by (try apply k1 in g; lra). unfold P. unfold Rdiv in *. rewrite !Rmult_0_l. lra.
      * rewrite Rmin_right, Rmax_right by (try (assert (c < p i) as g' by lra; apply k2 in g'); lra).
        fold K. unfold P. repeat split; try lra. { right. field. lra. } field. lra.
    + rewrite (levelled_M V A M p c Hd) by assumption. unfold P at 2 4. destruct (Rle_dec (p i) c) as [g|g].
      * rewrite Rmax_right, Rmax_right by (try apply k1 in g; lra).
        fold K. unfold P. repeat split; try lra. { right. field. lra. } field. lra.
      * rewrite Rmax_left, Rmax_left by (try (assert (c < p i) as g' by lra; apply k2 in g'); lra).
        unfold P. unfold Rdiv in *. rewrite Ropp_0, !Rmult_0_l. lra.
    + rewrite levelled_rest by assumption. unfold P. unfold Rdiv in *. rewrite !Rmult_0_l. lra.
  - (* level 0: the accepted tokens have no mass, nothing moves *)
    assert (HK : K = 0) by (unfold K; rewrite <- Hc0; apply pw_0).
    assert (Hw : levelled A M p c i = p i).
    { destruct (in_dec Nat.eq_dec i A) as [h|h].
      - rewrite levelled_A by assumption. rewrite <- Hc0. apply Rmin_left.
        destruct (Rle_dec (p i) 0) as [|g]; [assumption|exfalso].
        assert (H0 : Rmax 0 (P i - K) = 0).
        { apply (sum_zero_inv A (fun a => Rmax 0 (P a - K))); auto; [intros; apply Rmax_l|].
          rewrite Hl, (sum_ext M _ (fun _ => 0)), sum_zero; [lra|].
          intros j _. rewrite HK. apply Rmax_left. pose proof (pw_nonneg (p j) a). unfold P. lra. }
        rewrite HK in H0. assert (0 < P i) by (unfold P; rewrite pw_pos by lra; apply Rpower_gt0).
        rewrite Rmax_right in H0; lra.
      - destruct (in_dec Nat.eq_dec i M) as [h'|h'].
        + rewrite (levelled_M V A M p c Hd) by assumption. rewrite <- Hc0. now apply Rmax_left.
        + now apply levelled_rest. }
    rewrite Hw, HK. unfold Rdiv at 2 4. rewrite Rinv_0, Rmult_0_r, Rmult_0_l. unfold P. lra.
Qed.

Lemma renyi_mass_pos : 0 < W.
Proof.
  assert (Hnn : forall i, In i (seq 0 V) -> 0 <= w i) by (intros i Hi; apply in_vocab in Hi; now apply renyi_token).
  apply Rnot_le_lt. intros h. 
  assert (H0 : sum (seq 0 V) p = 0).
  { rewrite (sum_ext _ _ (fun _ => 0)); [apply sum_zero|]. intros i Hi.
    pose proof (sum_zero_inv _ w Hnn h i Hi) as h0. apply in_vocab in Hi.
    destruct (proj1 Hp i Hi) as [hp|<-]; [|reflexivity]. apply (renyi_token i Hi) in hp. lra. }
  rewrite (proj2 Hp) in H0. lra.
Qed.

Lemma renyi_ratio_w : sum (seq 0 V) (fun i => r i * w i) = W.
Proof.
  rewrite (sum_ext _ _ (fun i => w i + c / K * (mv i * 1))).
  - rewrite sum_plus, sum_scal. unfold mv. rewrite (sum_moves V A M P K Hd).
    rewrite (sum_ext A _ (fun a => Rmax 0 (P a - K))) by (intros; lra).
    rewrite (sum_ext M _ (fun i => Rmax 0 (K - P i))) by (intros; lra).
    red in Hl. unfold W. rewrite Hl. lra.
  - intros i Hi. apply in_vocab in Hi. destruct (renyi_token i Hi) as (_ & _ & _ & ->). unfold Rdiv. ring.
Qed.

Lemma renyi_ratio_q q : prob V q -> beats A M q -> sum (seq 0 V) (fun i => r i * q i) <= 1.
Proof.
  intros Hq Hb. apply Rle_trans with (sum (seq 0 V) (fun i => q i + / K * (mv i * q i))).
  - apply sum_le. intros i Hi. apply in_vocab in Hi. destruct (renyi_token i Hi) as (_ & _ & h & _).
    pose proof (proj1 Hq i Hi). unfold Rdiv in h. nra.
  - rewrite sum_plus, sum_scal, (proj2 Hq).
    pose proof (moves_sum_nonpos V A M P K Hd Hl q HM0 Hb) as h. fold mv in h.
    assert (0 <= / K).
    { destruct (pw_nonneg c a) as [hk|hk]; [left; now apply Rinv_0_lt_compat|]. unfold K. rewrite <- hk, Rinv_0. lra. }
    nra.
Qed.

(** The tangent at the projection, written without division by [w]. *)
Let tangent (q : nat -> R) i := Rpower W (a - 1) * (a * (r i * w i) + (1 - a) * W * (r i * q i)).

Lemma renyi_term_eq q i : (i < V)%nat -> 0 < p i -> 0 < q i ->
  let x := q i * W / w i in
  0 < x /\ P i * pw (q i) (1 - a) = Rpower W (a - 1) * (r i * w i) * Rpower x (1 - a) /\
  tangent q i = Rpower W (a - 1) * (r i * w i) * (1 + (1 - a) * (x - 1)).
Proof.
  intros Hi Hpi Hqi x. destruct (renyi_token i Hi) as (_ & Hw & _). specialize (Hw Hpi).
  pose proof renyi_mass_pos as HW. pose proof (Rpower_gt0 (w i) a) as Hwa.
  assert (Hx : 0 < x) by (apply Rdiv_lt_0_compat; [nra|assumption]). split; [assumption|].
  assert (Hr : P i = r i * Rpower (w i) a) by (unfold r; rewrite pw_pos by assumption; field; lra).
  split.
  - rewrite pw_pos by assumption. replace (q i) with (x * (w i / W)) at 1 by (unfold x; field; lra).
    rewrite <- (Rpower_mult_distr x (w i / W) _ Hx (Rdiv_lt_0_compat _ _ Hw HW)).
    assert (E : Rpower (w i) a * Rpower (w i / W) (1 - a) = w i * Rpower W (a - 1)).
    { unfold Rdiv. rewrite <- (Rpower_mult_distr _ _ _ Hw (Rinv_0_lt_compat _ HW)).
      rewrite <- Rmult_assoc, <- Rpower_plus. replace (a + (1 - a)) with 1 by ring. rewrite Rpower_1 by assumption.
      f_equal. unfold Rpower. rewrite ln_Rinv by assumption. f_equal. ring. }
    rewrite Hr. replace (r i * Rpower (w i) a * (Rpower x (1 - a) * Rpower (w i / W) (1 - a)))
      with (r i * Rpower x (1 - a) * (Rpower (w i) a * Rpower (w i / W) (1 - a))) by ring.
    rewrite E. ring.
  - unfold tangent, x. field. lra.
Qed.

Lemma renyi_ratio_nonneg i : (i < V)%nat -> 0 <= r i * w i.
Proof.
  intros Hi. destruct (renyi_token i Hi) as (h & _). apply Rmult_le_pos; [|assumption].
  unfold r. apply Rmult_le_pos; [apply pw_nonneg|].
  destruct (pw_nonneg (w i) a) as [hk|hk]; [left; now apply Rinv_0_lt_compat|]. rewrite <- hk, Rinv_0. lra.
Qed.

Lemma renyi_zero_term q i : p i = 0 -> P i * pw (q i) (1 - a) = 0 /\ (0 = tangent q i).
Proof.
  intros h. assert (HP : P i = 0) by (unfold P; rewrite h; apply pw_0).
  unfold tangent, r. rewrite HP. unfold Rdiv. split; ring.
Qed.

Lemma tangent_sum q : prob V q ->
  sum (seq 0 V) (tangent q) = Rpower W (a - 1) * (a * W + (1 - a) * W * sum (seq 0 V) (fun i => r i * q i)).
Proof. intros Hq. unfold tangent. rewrite sum_scal, sum_plus, !sum_scal, renyi_ratio_w. ring. Qed.

Lemma power_W : Rpower W (a - 1) * W = Rpower W a.
Proof.
  pose proof renyi_mass_pos as HW. rewrite <- (Rpower_1 W) at 2 by assumption.
  rewrite <- Rpower_plus. f_equal. ring.
Qed.

Theorem renyi_above q : 1 < a -> prob V q -> beats A M q -> KL_finite V p q ->
  Rpower W a <= renyi_sum V a p q.
Proof.
  intros Ha1 Hq Hb Hf. apply Rle_trans with (sum (seq 0 V) (tangent q)).
  - rewrite tangent_sum, <- power_W by assumption. pose proof (renyi_ratio_q q Hq Hb) as h.
    pose proof renyi_mass_pos as HW. apply Rmult_le_compat_l; [left; apply Rpower_gt0|]. 
    assert (0 <= (a - 1) * W) by (apply Rmult_le_pos; lra). nra.
  - apply sum_le. intros i Hi. apply in_vocab in Hi. destruct (proj1 Hp i Hi) as [hp|hp].
    + destruct (renyi_term_eq q i Hi hp (Hf i Hi hp)) as (hx & E1 & E2). unfold P in E1. rewrite E1, E2.
      apply Rmult_le_compat_l; [|apply power_tangent_below; lra].
      apply Rmult_le_pos; [left; apply Rpower_gt0|now apply renyi_ratio_nonneg].
    + destruct (renyi_zero_term q i (eq_sym hp)) as [E1 E2]. unfold P in E1. rewrite E1. lra.
Qed.

Theorem renyi_below q : a < 1 -> prob V q -> beats A M q -> renyi_sum V a p q <= Rpower W a.
Proof.
  intros Ha1 Hq Hb. apply Rle_trans with (sum (seq 0 V) (tangent q)).
  - apply sum_le. intros i Hi. apply in_vocab in Hi. destruct (proj1 Hp i Hi) as [hp|hp].
    + destruct (proj1 Hq i Hi) as [hq|hq].
      * destruct (renyi_term_eq q i Hi hp hq) as (hx & E1 & E2). unfold P in E1. rewrite E1, E2.
        apply Rmult_le_compat_l; [|apply power_tangent_above; lra].
        apply Rmult_le_pos; [left; apply Rpower_gt0|now apply renyi_ratio_nonneg].
      * rewrite <- hq, pw_0, Rmult_0_r. unfold tangent. rewrite <- hq, Rmult_0_r, Rmult_0_r, Rplus_0_r.
        apply Rmult_le_pos; [left; apply Rpower_gt0|]. apply Rmult_le_pos; [lra|now apply renyi_ratio_nonneg].
    + destruct (renyi_zero_term q i (eq_sym hp)) as [E1 E2]. unfold P in E1. rewrite E1. lra.
  - rewrite tangent_sum, <- power_W by assumption. pose proof (renyi_ratio_q q Hq Hb) as h.
    pose proof renyi_mass_pos as HW. apply Rmult_le_compat_l; [left; apply Rpower_gt0|].
    assert (0 <= (1 - a) * W) by (apply Rmult_le_pos; lra). nra.
Qed.

(** The projection: the levelled target, renormalised. *)
Definition renyi_q (i : nat) : R := levelled A M p c i / sum (seq 0 V) (levelled A M p c).

Theorem renyi_q_feasible : prob V renyi_q /\ beats A M renyi_q /\ KL_finite V p renyi_q.
Proof.
  pose proof renyi_mass_pos as HW. unfold W, w in HW.
  assert (Hinv : 0 < / sum (seq 0 V) (levelled A M p c)) by now apply Rinv_0_lt_compat.
  unfold renyi_q, Rdiv. split; [split|split].
  - intros i Hi. apply Rmult_le_pos; [now apply renyi_token|lra].
  - rewrite (sum_ext _ _ (fun i => / sum (seq 0 V) (levelled A M p c) * levelled A M p c i)) by (intros; ring).
    rewrite sum_scal. field. lra.
  - intros i j Hi Hj. apply Rmult_le_compat_r; [lra|]. now apply (levelled_beats V A M p c Hd).
  - intros i Hi hp. apply Rmult_lt_0_compat; [now apply renyi_token|assumption].
Qed.

Theorem renyi_q_value : renyi_sum V a p renyi_q = Rpower W a.
Proof.
  destruct renyi_q_feasible as (Hq & Hb & Hf). pose proof renyi_mass_pos as HW.
  assert (Hsum : sum (seq 0 V) (fun i => r i * renyi_q i) = 1).
  { rewrite (sum_ext _ _ (fun i => / W * (r i * w i))) by (intros; unfold renyi_q, Rdiv; fold w; fold W; ring).
    rewrite sum_scal, renyi_ratio_w. field. lra. }
  transitivity (sum (seq 0 V) (tangent renyi_q)).
  - apply sum_ext. intros i Hi. apply in_vocab in Hi. destruct (proj1 Hp i Hi) as [hp|hp].
    + destruct (renyi_term_eq renyi_q i Hi hp (Hf i Hi hp)) as (hx & E1 & E2). unfold P in E1. rewrite E1, E2.
      f_equal. replace (renyi_q i * W / w i) with 1.
      * unfold Rpower. rewrite ln_1, Rmult_0_r, exp_0. lra.
      * unfold renyi_q. fold w. fold W. destruct (renyi_token i Hi) as (_ & h & _). specialize (h hp). field. lra.
    + destruct (renyi_zero_term renyi_q i (eq_sym hp)) as [E1 E2]. unfold P in E1. rewrite E1. assumption.
  - rewrite tangent_sum, Hsum, <- power_W by assumption. ring.
Qed.

End Renyi.

(** The least Renyi divergence over the feasible [q], and its attainment. *)
Theorem renyi_projection V A M p a c :
  prob V p -> disjoint_sets V A M -> M <> nil -> 0 < a -> a <> 1 -> 0 <= c ->
  level_eq A M (fun i => pw (p i) a) (pw c a) ->
  let W := sum (seq 0 V) (levelled A M p c) in
  (exists q, prob V q /\ beats A M q /\ KL_finite V p q /\ 0 < renyi_sum V a p q /\
             renyi V a p q = a / (a - 1) * ln W) /\
  (forall q, prob V q -> beats A M q -> (1 < a -> KL_finite V p q) -> (a < 1 -> 0 < renyi_sum V a p q) ->
             a / (a - 1) * ln W <= renyi V a p q).
Proof.
  intros Hp Hd HM Ha Ha1 Hc Hl W.
  assert (HW : 0 < W) by exact (renyi_mass_pos V A M p a c Hp Hd Ha Hc Hl).
  assert (HlnW : ln (Rpower W a) = a * ln W) by (unfold Rpower; now rewrite ln_exp).
  split.
  - exists (renyi_q V A M p c). destruct (renyi_q_feasible V A M p a c Hp Hd Ha Hc Hl) as (h1 & h2 & h3).
    pose proof (renyi_q_value V A M p a c Hp Hd Ha Hc Hl) as E. fold W in E.
    split; [assumption|]. split; [assumption|]. split; [assumption|].
    unfold renyi. rewrite E. split; [apply Rpower_gt0|]. rewrite HlnW. field. lra.
  - intros q Hq Hb Hf Hpos. unfold renyi.
    replace (a / (a - 1) * ln W) with (ln (Rpower W a) / (a - 1)) by (rewrite HlnW; field; lra).
    destruct (Rlt_dec 1 a) as [h|h].
    + apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat; lra|].
      apply ln_nondecr; [apply Rpower_gt0|]. apply renyi_above; auto.
    + assert (h' : a < 1) by lra. unfold Rdiv.
      replace (/ (a - 1)) with (- / (1 - a)) by (field; lra). rewrite !Ropp_mult_distr_r_reverse.
      apply Ropp_le_contravar, Rmult_le_compat_r; [left; apply Rinv_0_lt_compat; lra|].
      apply ln_nondecr; [auto|]. now apply renyi_below.
Qed.

Theorem renyi_level_exists : Statements.B3_level_exists.
Proof.
  intros V A M p a Hp (_ & _ & HA & HM) Ha.
  destruct (level_exists_bounded A M (fun i => pw (p i) a)) as (K & HK & Hl).
  - intros i Hi. rewrite <- (pw_one a). apply pw_le; [assumption|]. apply (prob_le_1 V p i Hp (HA i Hi)).
  - intros. apply pw_nonneg.
  - exists (pw K (/ a)). split; [apply pw_nonneg|].
    replace (pw (pw K (/ a)) a) with K; [assumption|].
    destruct (proj1 HK) as [h|<-]; [|now rewrite !pw_0].
    rewrite (pw_pos K) by assumption. rewrite pw_pos by apply Rpower_gt0.
    rewrite Rpower_mult, Rinv_l, Rpower_1; lra.
Qed.

(** The mass [W] in the form of the closed formula: [1 - S + n c]. *)
Lemma levelled_mass V A M p c :
  prob V p -> disjoint_sets V A M ->
  sum (seq 0 V) (levelled A M p c) =
  1 - sum (moved A M p c) p + INR (length (moved A M p c)) * c.
Proof.
  intros Hp Hd. rewrite <- (proj2 Hp), <- sum_const. unfold moved. rewrite !sum_app, !sum_filter.
  rewrite (sum_ext (seq 0 V) (levelled A M p c) (fun i => p i - moves A M p c i * 1)).
  2:{ intros i Hi. apply in_vocab in Hi. rewrite (levelled_moves V A M p c Hd i Hi). lra. }
  rewrite sum_minus, (sum_moves V A M p c Hd).
  assert (H1 : sum A (fun a => Rmax 0 (p a - c) * 1) =
    sum A (fun i => if (if Rlt_dec c (p i) then true else false) then p i else 0) -
    sum A (fun i => if (if Rlt_dec c (p i) then true else false) then c else 0)).
  { rewrite <- sum_minus. apply sum_ext. intros i _.
    destruct (Rlt_dec c (p i)); [rewrite Rmax_right|rewrite Rmax_left]; lra. }
  assert (H2 : sum M (fun i => Rmax 0 (c - p i) * 1) =
    sum M (fun i => if (if Rlt_dec (p i) c then true else false) then c else 0) -
    sum M (fun i => if (if Rlt_dec (p i) c then true else false) then p i else 0)).
  { rewrite <- sum_minus. apply sum_ext. intros i _.
    destruct (Rlt_dec (p i) c); [rewrite Rmax_right|rewrite Rmax_left]; lra. }
  lra.
Qed.

(** Strict greedy: two tokens, the level is their power mean. *)
Theorem renyi_strict : Statements.B3_strict_greedy.
Proof.
  intros V x y p a Hp Hx Hy Hxy Hle Hpx Ha Ha1 c. set (A := cons x nil). set (M := cons y nil).
  assert (Hd : disjoint_sets V A M).
  { unfold A, M. repeat split; try (repeat constructor; simpl; tauto).
    - intros i [<-|[]]. assumption.
    - destruct H as [<-|[]]. assumption.
    - intros [h|[]]. destruct H as [h'|[]]. congruence. }
  pose proof (pw_le (p y) (p x) a Ha Hle) as HP. pose proof (pw_nonneg (p y) a) as HPy.
  assert (HPx : 0 < pw (p x) a) by (rewrite pw_pos by assumption; apply Rpower_gt0).
  assert (Hc : 0 < c) by apply Rpower_gt0.
  assert (HK : pw c a = (pw (p x) a + pw (p y) a) / 2).
  { rewrite pw_pos by assumption. unfold c. rewrite Rpower_mult, Rinv_l, Rpower_1; lra. }
  assert (Hl : level_eq A M (fun i => pw (p i) a) (pw c a)).
  { red. rewrite HK. unfold A, M. rewrite !sum_cons, !sum_nil, !Rmax_right by lra. lra. }
  pose proof (renyi_projection V A M p a c Hp Hd ltac:(discriminate) Ha Ha1 ltac:(lra) Hl) as H. cbv zeta in H.
  assert (Hcx : c <= p x).
  { apply Rnot_lt_le. intros h. pose proof (pw_lt (p x) c a Ha ltac:(lra)). lra. }
  assert (Hcy : p y <= c).
  { apply Rnot_lt_le. intros h. pose proof (pw_lt c (p y) a Ha ltac:(lra)). lra. }
  replace (sum (seq 0 V) (levelled A M p c)) with (1 - (p x + p y) + 2 * c) in H; [exact H|].
  rewrite (sum_ext _ (levelled A M p c) (fun i => p i - moves A M p c i * 1)).
  2:{ intros i Hi. apply in_vocab in Hi. rewrite (levelled_moves V A M p c Hd i Hi). lra. }
  rewrite sum_minus, (sum_moves V A M p c Hd), (proj2 Hp). unfold A, M.
  rewrite !sum_cons, !sum_nil, !Rmax_right by lra. lra.
Qed.
