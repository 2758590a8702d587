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

(** ** The order 1 as a limit *)

Lemma renyi_sum_exp V a p q : prob V p -> KL_finite V p q ->
  renyi_sum V a p q = sum (seq 0 V) (fun i => p i * exp ((a - 1) * ln (p i / q i))).
Proof.
  intros Hp Hf. apply sum_ext. intros i Hi. apply in_vocab in Hi. destruct (proj1 Hp i Hi) as [h|<-]; [|rewrite pw_0; ring].
  pose proof (Hf i Hi h) as hq. rewrite !pw_pos, ln_div by assumption. unfold Rpower.
  transitivity (exp (ln (p i)) * exp ((a - 1) * (ln (p i) - ln (q i)))); [|now rewrite exp_ln].
  rewrite <- !exp_plus. f_equal. ring.
Qed.

Lemma renyi_sum_above V a p q : prob V p -> KL_finite V p q -> exp ((a - 1) * KL V p q) <= renyi_sum V a p q.
Proof.
  intros Hp Hf. rewrite renyi_sum_exp by assumption. set (t := a - 1). set (K := KL V p q).
  apply Rle_trans with (sum (seq 0 V) (fun i => exp (t * K) * ((1 - t * K) * p i + t * (p i * ln (p i / q i))))).
  - rewrite sum_scal, sum_plus, !sum_scal, (proj2 Hp). fold (KL V p q). fold K. right. ring.
  - apply sum_le. intros i Hi. apply in_vocab in Hi. pose proof (proj1 Hp i Hi) as h. set (L := ln (p i / q i)).
    replace (t * L) with (t * K + (t * L - t * K)) by ring. rewrite exp_plus. pose proof (exp_ineq1_le (t * L - t * K)) as h'.
    apply Rmult_le_compat_l with (r := exp (t * K) * p i) in h'; [lra|]. apply Rmult_le_pos; [left; apply exp_pos|assumption].
Qed.

Lemma renyi_sum_near V a p q B : prob V p -> KL_finite V p q ->
  (forall i, (i < V)%nat -> 0 < p i -> Rabs (ln (p i / q i)) <= B) -> Rabs (a - 1) * B <= 1 / 2 ->
  renyi_sum V a p q <= 1 + (a - 1) * KL V p q + 2 * ((a - 1) * (a - 1) * (B * B)).
Proof.
  intros Hp Hf HB Ht. rewrite renyi_sum_exp by assumption. set (t := a - 1) in *.
  apply Rle_trans with (sum (seq 0 V) (fun i => (1 + 2 * (t * t * (B * B))) * p i + t * (p i * ln (p i / q i)))).
  2:{ rewrite sum_plus, !sum_scal, (proj2 Hp). fold (KL V p q). lra. }
  apply sum_le. intros i Hi. apply in_vocab in Hi. destruct (proj1 Hp i Hi) as [h|<-]; [|lra]. specialize (HB i Hi h).
  set (L := ln (p i / q i)) in *. set (u := t * L).
  assert (Hu : Rabs u <= 1 / 2).
  { unfold u. rewrite Rabs_mult. apply Rle_trans with (Rabs t * B); [apply Rmult_le_compat_l; [apply Rabs_pos|assumption]|assumption]. }
  assert (Hu' : u <= 1 / 2) by (pose proof (Rle_abs u); lra).
  assert (Huu : u * u <= t * t * (B * B)).
  { unfold u. replace (t * L * (t * L)) with (t * t * (Rabs L * Rabs L)) by (rewrite <- Rabs_mult, (Rabs_right (L * L)) by nra; ring).
    apply Rmult_le_compat_l; [nra|]. pose proof (Rabs_pos L). nra. }
  (* exp u <= 1/(1-u) <= 1 + u + 2 u^2 *)
  assert (He : exp u <= 1 + u + 2 * (u * u)).
  { pose proof (exp_ineq1_le (- u)) as k. rewrite exp_Ropp in k. pose proof (exp_pos u) as k'.
    apply Rmult_le_compat_l with (r := exp u) in k; [|lra]. rewrite Rinv_r in k by lra.
    apply Rmult_le_reg_r with (1 - u); [lra|]. assert (0 <= u * u * (1 - 2 * u)) by (apply Rmult_le_pos; nra). lra. }
  assert (k : p i * exp u <= p i * (1 + u + 2 * (t * t * (B * B)))) by (apply Rmult_le_compat_l; lra). unfold u in *. lra.
Qed.

Theorem renyi_limit : Statements.B3_limit.
Proof.
  intros V A M p x e Hp HM [(r & Hr & Hrb & Hrf & Er) Hx] He. set (w := exp (- e / 2)).
  assert (Hw : 0 < w < 1) by (split; [apply exp_pos|unfold w; rewrite <- exp_0; apply exp_increasing; lra]).
  assert (Ew : ln w = - e / 2) by apply ln_exp.
  set (b := fun i => if Rlt_dec 0 (p i) then Rabs (ln (p i)) + Rabs (ln ((1 - w) * r i)) else 0).
  assert (Hb0 : forall i, 0 <= b i).
  { intros i. unfold b. pose proof (Rabs_pos (ln (p i))). pose proof (Rabs_pos (ln ((1 - w) * r i))). destruct Rlt_dec; lra. }
  set (B := 1 + sum (seq 0 V) b). assert (HB1 : 1 <= B) by (unfold B; pose proof (sum_nonneg (seq 0 V) b ltac:(auto)); lra).
  assert (HB : forall q, prob V q -> (forall i, (i < V)%nat -> (1 - w) * r i <= q i) -> KL_finite V p q /\
    forall i, (i < V)%nat -> 0 < p i -> Rabs (ln (p i / q i)) <= B).
  { intros q Hq Hge. assert (Hf : KL_finite V p q).
    { intros i Hi h. specialize (Hge i Hi). specialize (Hrf i Hi h). assert (0 < (1 - w) * r i) by (apply Rmult_lt_0_compat; lra). lra. }
    split; [exact Hf|]. intros i Hi h. specialize (Hge i Hi). specialize (Hrf i Hi h). specialize (Hf i Hi h).
    assert (h0 : 0 < (1 - w) * r i) by (apply Rmult_lt_0_compat; lra). rewrite ln_div by assumption.
    pose proof (ln_nondecr _ _ h0 Hge). pose proof (ln_nondecr (q i) 1 Hf ltac:(now apply (prob_le_1 V))) as h1. rewrite ln_1 in h1.
    pose proof (single_le_sum (seq 0 V) b i ltac:(now apply in_vocab) ltac:(auto)) as hs. unfold b at 1 in hs.
    destruct (Rlt_dec 0 (p i)); [|lra]. unfold B. set (lp := ln (p i)) in *. set (lr := ln ((1 - w) * r i)) in *.
    revert hs. unfold Rabs. destruct (Rcase_abs lp), (Rcase_abs lr), (Rcase_abs (lp - ln (q i))); lra. }
  destruct (HB r Hr ltac:(intros i Hi; pose proof (proj1 Hr i Hi); nra)) as [_ HBr].
  assert (HBB : 0 < B * B) by nra. set (d := Rmin (/ (2 * B)) (e / (4 * (B * B)))).
  assert (Hd1 : 0 < / (2 * B)) by (apply Rinv_0_lt_compat; lra). assert (Hd2 : 0 < e / (4 * (B * B))) by (apply Rdiv_lt_0_compat; lra).
  exists d. split; [now apply Rmin_glb_lt|]. intros a v Ha Hd [(q & Hq & Hqb & Hqf & Hq0 & Ev) Hv]. subst x.
  set (t := a - 1) in *.
  assert (Ht : Rabs t * B <= 1 / 2).
  { apply Rle_trans with (/ (2 * B) * B); [apply Rmult_le_compat_r; [lra|]; pose proof (Rmin_l (/ (2 * B)) (e / (4 * (B * B)))); unfold d in Hd; lra|].
    right. field. lra. }
  assert (Ht2 : 2 * (Rabs t * (B * B)) < e / 2).
  { apply Rlt_le_trans with (2 * (e / (4 * (B * B)) * (B * B))); [|right; field; lra].
    apply Rmult_lt_compat_l; [lra|]. apply Rmult_lt_compat_r; [assumption|].
    pose proof (Rmin_r (/ (2 * B)) (e / (4 * (B * B)))). unfold d in Hd. lra. }
  pose proof (renyi_sum_above V a p r Hp Hrf) as Hra. fold t in Hra.
  assert (Hr0 : 0 < renyi_sum V a p r) by (pose proof (exp_pos (t * KL V p r)); lra).
  pose proof (Hv r Hr Hrb (fun _ => Hrf) (fun _ => Hr0)) as Hvr. unfold renyi in Hvr, Ev. fold t in Hvr, Ev.
  assert (Et : t * v = ln (renyi_sum V a p q)) by (rewrite <- Ev; field; unfold t; lra).
  pose proof (Hx q Hq Hqb Hqf) as Hxq.
  destruct (Rlt_dec 0 t) as [Hpos|Hneg].
  - rewrite Rabs_right in Ht, Ht2 by lra.
    pose proof (renyi_sum_above V a p q Hp Hqf) as Hqa. apply ln_nondecr in Hqa; [|apply exp_pos]. rewrite ln_exp in Hqa. fold t in Hqa.
    pose proof (renyi_sum_near V a p r B Hp Hrf HBr ltac:(fold t; rewrite Rabs_right; lra)) as Hn. fold t in Hn.
    pose proof (ln_le_sub1 _ Hr0) as Hl. set (K := KL V p r) in *.
    assert (H1 : ln (renyi_sum V a p r) / t <= K + 2 * (t * (B * B))).
    { apply Rmult_le_reg_l with t; [assumption|]. replace (t * (ln (renyi_sum V a p r) / t)) with (ln (renyi_sum V a p r)) by (field; lra). lra. }
    assert (H2 : KL V p q <= v) by (apply Rmult_le_reg_l with t; lra). apply Rabs_def1; lra.
  - assert (Hlt : t < 0) by (unfold t in *; lra). rewrite Rabs_left in Ht, Ht2 by assumption.
    apply ln_nondecr in Hra; [|apply exp_pos]. rewrite ln_exp in Hra.
    assert (H1 : v <= KL V p r).
    { eapply Rle_trans; [exact Hvr|]. apply Rmult_le_reg_l with (- t); [lra|].
      replace (- t * (ln (renyi_sum V a p r) / t)) with (- ln (renyi_sum V a p r)) by (field; lra). lra. }
    (* the minimizer mixed with r has bounded logarithms *)
    set (s := fun i => w * q i + (1 - w) * r i).
    assert (Hs : prob V s).
    { split; [intros i Hi; pose proof (proj1 Hq i Hi); pose proof (proj1 Hr i Hi); unfold s; nra|].
      unfold s. rewrite sum_plus, !sum_scal, (proj2 Hq), (proj2 Hr). ring. }
    assert (Hsb : beats A M s) by (intros i j Hi Hj; specialize (Hqb i j Hi Hj); specialize (Hrb i j Hi Hj); unfold s; nra).
    destruct (HB s Hs ltac:(intros i Hi; pose proof (proj1 Hq i Hi); unfold s; nra)) as [Hsf HBs].
    pose proof (renyi_sum_near V a p s B Hp Hsf HBs ltac:(fold t; rewrite Rabs_left; lra)) as Hn. fold t in Hn.
    pose proof (Hx s Hs Hsb Hsf) as Hxs.
    assert (Hqs : renyi_sum V a p q <= exp (t * ln w) * renyi_sum V a p s).
    { rewrite !renyi_sum_exp, <- sum_scal by assumption. fold t. apply sum_le. intros i Hi. apply in_vocab in Hi.
      destruct (proj1 Hp i Hi) as [h|<-]; [|lra]. pose proof (Hqf i Hi h) as hq. pose proof (Hsf i Hi h) as hs. rewrite !ln_div by assumption.
      assert (hw : w * q i <= s i) by (pose proof (proj1 Hr i Hi); unfold s; nra).
      apply ln_nondecr in hw; [|apply Rmult_lt_0_compat; lra]. rewrite ln_mult in hw by lra.
      replace (exp (t * ln w) * (p i * exp (t * (ln (p i) - ln (s i))))) with (p i * (exp (t * ln w) * exp (t * (ln (p i) - ln (s i))))) by ring.
      rewrite <- exp_plus. apply Rmult_le_compat_l; [lra|].
      assert (hle : t * (ln (p i) - ln (q i)) <= t * ln w + t * (ln (p i) - ln (s i))) by nra.
      destruct hle as [k|k]; [left; now apply exp_increasing|rewrite k; lra]. }
    assert (Hs0 : 0 < renyi_sum V a p s) by (pose proof (renyi_sum_above V a p s Hp Hsf); pose proof (exp_pos ((a - 1) * KL V p s)); lra).
    apply ln_nondecr in Hqs; [|assumption]. rewrite ln_mult, ln_exp in Hqs by (try apply exp_pos; assumption).
    pose proof (ln_le_sub1 _ Hs0) as Hl. rewrite Ew, <- Et in Hqs. set (K := KL V p s) in *.
    assert (H2 : K - e / 2 + 2 * (t * (B * B)) <= v).
    { apply Rmult_le_reg_l with (- t); [lra|]. lra. }
    apply Rabs_def1; lra.
Qed.
