(** * Inequalities for logarithms and for the function phi. *)

From Coq Require Import Reals Lra Psatz.
From Draftcert Require Statements.
From Draftcert Require Import Definitions.
Open Scope R_scope.

Lemma ln_le_sub1 x : 0 < x -> ln x <= x - 1.
Proof.
  intros Hx. pose proof (exp_ineq1_le (ln x)) as H. rewrite exp_ln in H by assumption. lra.
Qed.

Lemma ln_lt_sub1 x : 0 < x -> x <> 1 -> ln x < x - 1.
Proof.
  intros Hx H1. assert (ln x <> 0).
  { intros H. apply H1, ln_inv; [assumption|lra|now rewrite ln_1]. }
  pose proof (exp_ineq1 (ln x) ltac:(assumption)) as H'. rewrite exp_ln in H' by assumption. lra.
Qed.

Lemma ln_div x y : 0 < x -> 0 < y -> ln (x / y) = ln x - ln y.
Proof.
  intros Hx Hy. unfold Rdiv. rewrite ln_mult, ln_Rinv; auto using Rinv_0_lt_compat; lra.
Qed.

Lemma ln_nondecr x y : 0 < x -> x <= y -> ln x <= ln y.
Proof. intros Hx [H| ->]; [left; now apply ln_increasing|lra]. Qed.

(** The term of Gibbs' inequality. *)
Lemma gibbs_term p q : 0 <= p -> 0 <= q -> (0 < p -> 0 < q) -> p - q <= p * ln (p / q).
Proof.
  intros [Hp|<-] Hq Hf; [|rewrite Rmult_0_l; lra]. specialize (Hf Hp).
  rewrite ln_div by assumption.
  assert (H : ln (q / p) <= q / p - 1) by (apply ln_le_sub1, Rdiv_lt_0_compat; assumption).
  rewrite ln_div in H by assumption.
  apply Rmult_le_compat_l with (r := p) in H; [|lra].
  replace (p * (q / p - 1)) with (q - p) in H by (field; lra). lra.
Qed.

(** ... for [q] times any factor. *)
Lemma scaled_term p q r : 0 <= p -> 0 <= q -> (0 < p -> 0 < q) -> 0 < r -> p + p * ln r - r * q <= p * ln (p / q).
Proof.
  intros Hp Hq Hf Hr. assert (Hrq : 0 <= r * q) by (apply Rmult_le_pos; lra).
  destruct Hp as [k|<-]; [|lra]. specialize (Hf k).
  pose proof (gibbs_term p (r * q) ltac:(lra) Hrq ltac:(intros; now apply Rmult_lt_0_compat)) as h.
  replace (p / (r * q)) with (p / q / r) in h by (field; lra).
  rewrite ln_div in h by (try assumption; now apply Rdiv_lt_0_compat). lra.
Qed.

(** ... and of the log-sum inequality. *)
Lemma log_sum a b A B : 0 <= a -> 0 <= b -> 0 <= A -> 0 <= B -> (0 < a -> 0 < A) -> (0 < b -> 0 < B) ->
  (a + b) * ln ((a + b) / (A + B)) <= a * ln (a / A) + b * ln (b / B).
Proof.
  intros Ha Hb HA HB HaA HbB. destruct (Req_dec (a + b) 0) as [E|E].
  { replace a with 0 by lra. replace b with 0 by lra. lra. }
  assert (Hs : 0 < A + B).
  { destruct Ha as [h|<-]; [specialize (HaA h); lra|]. destruct Hb as [h|<-]; [specialize (HbB h); lra|lra]. }
  set (r := (a + b) / (A + B)). assert (Hr : 0 < r) by (apply Rdiv_lt_0_compat; lra).
  pose proof (scaled_term a A r Ha HA HaA Hr). pose proof (scaled_term b B r Hb HB HbB Hr).
  assert (r * (A + B) = a + b) by (unfold r; field; lra). lra.
Qed.

(** Moving the second argument from [r] to [q]. *)
Lemma gibbs_shift p q r :
  0 <= p -> (0 < p -> 0 < q /\ 0 < r) ->
  p - p / r * q <= p * ln (p / q) - p * ln (p / r).
Proof.
  intros [Hp|<-] Hf; [|unfold Rdiv; rewrite !Rmult_0_l; lra]. destruct (Hf Hp) as [Hq Hr].
  rewrite !ln_div by assumption.
  assert (H : ln (q / r) <= q / r - 1) by (apply ln_le_sub1, Rdiv_lt_0_compat; assumption).
  rewrite ln_div in H by assumption.
  apply Rmult_le_compat_l with (r := p) in H; [|lra].
  replace (p * (q / r - 1)) with (p / r * q - p) in H by (field; lra). lra.
Qed.

Lemma gibbs_shift_eq p q r :
  0 < p -> 0 < q -> 0 < r ->
  p * ln (p / q) - p * ln (p / r) = p - p / r * q -> q = r.
Proof.
  intros Hp Hq Hr He. destruct (Req_dec q r) as [|Hn]; [assumption|exfalso].
  assert (Hd : q / r <> 1).
  { intros H. apply Hn. apply (Rmult_eq_compat_r r) in H.
    unfold Rdiv in H. rewrite Rmult_assoc, Rinv_l in H; lra. }
  pose proof (ln_lt_sub1 (q / r) (Rdiv_lt_0_compat _ _ Hq Hr) Hd) as H.
  rewrite !ln_div in * by assumption.
  apply Rmult_lt_compat_l with (r := p) in H; [|assumption].
  replace (p * (q / r - 1)) with (p / r * q - p) in H by (field; lra). lra.
Qed.

Lemma div_self_ln p : p * ln (p / p) = 0.
Proof.
  destruct (Req_dec p 0) as [->|H]; [lra|]. unfold Rdiv. rewrite Rinv_r, ln_1 by assumption. lra.
Qed.

(** [p ln(p/c) = p ln p - p ln c], also at [p = 0]. *)
Lemma pln_div p c : 0 <= p -> 0 < c -> p * ln (p / c) = p * ln p - p * ln c.
Proof. intros [Hp|<-] Hc; [rewrite ln_div by assumption; lra|lra]. Qed.

(** ** Convexity of x ln x and of phi *)

Lemma xlnx_tangent u y : 0 <= u -> 0 < y -> u * ln y + u - y <= u * ln u.
Proof.
  intros Hu Hy. pose proof (gibbs_term u y Hu (Rlt_le _ _ Hy) (fun _ => Hy)) as H.
  rewrite pln_div in H by assumption. lra.
Qed.

Lemma xlnx_convex u v t :
  0 <= u -> 0 <= v -> 0 <= t <= 1 ->
  (t * u + (1 - t) * v) * ln (t * u + (1 - t) * v) <= t * (u * ln u) + (1 - t) * (v * ln v).
Proof.
  intros Hu Hv Ht. set (y := t * u + (1 - t) * v).
  assert (Hy : 0 <= y) by (unfold y; nra). destruct Hy as [Hy|Hy].
  - pose proof (xlnx_tangent u y Hu Hy) as H1. pose proof (xlnx_tangent v y Hv Hy) as H2.
    apply Rmult_le_compat_l with (r := t) in H1; [|lra].
    apply Rmult_le_compat_l with (r := 1 - t) in H2; [|lra].
    assert (y * ln y = t * (u * ln y) + (1 - t) * (v * ln y)) by (unfold y at 1; ring).
    assert (t * (u - y) + (1 - t) * (v - y) = 0) by (unfold y; ring). lra.
  - rewrite <- Hy, Rmult_0_l. unfold y in Hy.
    assert (t * u = 0 /\ (1 - t) * v = 0) as [h1 h2] by (split; nra).
    assert (t * (u * ln u) = 0) by (rewrite <- Rmult_assoc, h1; ring).
    assert ((1 - t) * (v * ln v) = 0) by (rewrite <- Rmult_assoc, h2; ring). lra.
Qed.

Theorem phi_convex : Statements.phi_convexity.
Proof.
  intros x y t Hx Hy Ht. unfold phi.
  pose proof (xlnx_convex (1 + x) (1 + y) t ltac:(lra) ltac:(lra) Ht) as H1.
  pose proof (xlnx_convex (1 - x) (1 - y) t ltac:(lra) ltac:(lra) Ht) as H2.
  replace (t * (1 + x) + (1 - t) * (1 + y)) with (1 + (t * x + (1 - t) * y)) in H1 by ring.
  replace (t * (1 - x) + (1 - t) * (1 - y)) with (1 - (t * x + (1 - t) * y)) in H2 by ring.
  lra.
Qed.

Lemma phi_0 : phi 0 = 0.
Proof. unfold phi. rewrite Rplus_0_r, Rminus_0_r, ln_1. lra. Qed.

Lemma phi_1 : phi 1 = ln 2.
Proof. unfold phi. replace (1 + 1) with 2 by lra. lra. Qed.

(** Convexity with [phi 0 = 0]: phi lies under its chords from the origin. *)
Lemma phi_star t x : 0 <= t <= 1 -> -1 <= x <= 1 -> phi (t * x) <= t * phi x.
Proof.
  intros Ht Hx. pose proof (phi_convex x 0 t Hx ltac:(lra) Ht) as H.
  rewrite phi_0 in H. replace (t * x + (1 - t) * 0) with (t * x) in H by ring. lra.
Qed.

Lemma phi_le_chord x : 0 <= x <= 1 -> phi x <= x * ln 2.
Proof.
  intros Hx. rewrite <- phi_1. rewrite <- (Rmult_1_r x) at 1. apply phi_star; lra.
Qed.

Lemma ln2_pos : 0 < ln 2.
Proof. rewrite <- ln_1. apply ln_increasing; lra. Qed.

Lemma phi_le_ln2 x : 0 <= x <= 1 -> phi x <= ln 2.
Proof. intros Hx. pose proof (phi_le_chord x Hx). pose proof ln2_pos. nra. Qed.

(** A function with a nonnegative derivative does not decrease. *)
Lemma nondecreasing_from_derivative f f' a b :
  a <= b -> (forall x, a <= x <= b -> derivable_pt_lim f x (f' x)) ->
  (forall x, a < x < b -> 0 <= f' x) -> f a <= f b.
Proof.
  intros [Hab| ->] Hd Hn; [|lra]. destruct (MVT_cor2 f f' a b Hab Hd) as (c & Hc & Hcab).
  specialize (Hn c Hcab). assert (0 <= f' c * (b - a)) by (apply Rmult_le_pos; lra). lra.
Qed.

Lemma derivable_ln_plus x : 0 < 1 + x -> derivable_pt_lim (fun y => ln (1 + y)) x (/ (1 + x)).
Proof.
  intros H. replace (/ (1 + x)) with (/ (1 + x) * (0 + 1)) by lra.
  apply (derivable_pt_lim_comp (fun y => 1 + y) ln).
  - apply (derivable_pt_lim_plus (fun _ => 1) id); [apply derivable_pt_lim_const|apply derivable_pt_lim_id].
  - now apply derivable_pt_lim_ln.
Qed.

Lemma derivable_ln_minus x : 0 < 1 - x -> derivable_pt_lim (fun y => ln (1 - y)) x (- / (1 - x)).
Proof.
  intros H. replace (- / (1 - x)) with (/ (1 - x) * (0 - 1)) by lra.
  apply (derivable_pt_lim_comp (fun y => 1 - y) ln).
  - apply (derivable_pt_lim_minus (fun _ => 1) id); [apply derivable_pt_lim_const|apply derivable_pt_lim_id].
  - now apply derivable_pt_lim_ln.
Qed.

Lemma artanh_ge x : 0 <= x < 1 -> 2 * x <= ln (1 + x) - ln (1 - x).
Proof.
  intros Hx.
  pose proof (nondecreasing_from_derivative
    (fun y => ln (1 + y) - ln (1 - y) - 2 * y) (fun y => / (1 + y) - - / (1 - y) - 2 * 1) 0 x) as H.
  cut (ln (1 + 0) - ln (1 - 0) - 2 * 0 <= ln (1 + x) - ln (1 - x) - 2 * x).
  { rewrite Rplus_0_r, Rminus_0_r, ln_1. lra. }
  apply H; [lra| |].
  - intros y Hy. apply (derivable_pt_lim_minus (fun y => ln (1 + y) - ln (1 - y)) (fun y => 2 * y)).
    + apply (derivable_pt_lim_minus (fun y => ln (1 + y)) (fun y => ln (1 - y))).
      * apply derivable_ln_plus; lra.
      * apply derivable_ln_minus; lra.
    + apply (derivable_pt_lim_scal id 2). apply derivable_pt_lim_id.
  - intros y Hy.
    replace (/ (1 + y) - - / (1 - y) - 2 * 1) with (2 * (y * y) * / ((1 + y) * (1 - y))) by (field; lra).
    apply Rmult_le_pos; [nra|]. left. apply Rinv_0_lt_compat. nra.
Qed.

(** The quadratic lower bound (Pinsker's constant is recovered). *)
Lemma phi_ge_half_sq x : 0 <= x <= 1 -> x * x / 2 <= phi x.
Proof.
  intros [H0 H1]. destruct H1 as [H1| ->].
  2:{ rewrite phi_1. assert (H : ln (/ 2) <= / 2 - 1) by (apply ln_le_sub1; lra).
      rewrite ln_Rinv in H by lra. lra. }
  pose proof (nondecreasing_from_derivative
    (fun y => ((1 + y) * ln (1 + y) + (1 - y) * ln (1 - y)) * / 2 - y * y * / 2)
    (fun y => (((0 + 1) * ln (1 + y) + (1 + y) * / (1 + y)) + ((0 - 1) * ln (1 - y) + (1 - y) * (- / (1 - y)))) * / 2
              - (1 * y + y * 1) * / 2) 0 x) as H.
  cut (((1 + 0) * ln (1 + 0) + (1 - 0) * ln (1 - 0)) * / 2 - 0 * 0 * / 2 <=
       ((1 + x) * ln (1 + x) + (1 - x) * ln (1 - x)) * / 2 - x * x * / 2).
  { rewrite Rplus_0_r, Rminus_0_r, ln_1. unfold phi. lra. }
  apply H; [lra| |].
  - assert (Hs : forall f l y, derivable_pt_lim f y l -> derivable_pt_lim (fun y => f y * / 2) y (l * / 2)).
    { intros f l y Hf. replace (l * / 2) with (l * / 2 + f y * 0) by ring.
      apply (derivable_pt_lim_mult f (fun _ => / 2)); [assumption|apply derivable_pt_lim_const]. }
    intros y Hy.
    apply (derivable_pt_lim_minus (fun y => ((1 + y) * ln (1 + y) + (1 - y) * ln (1 - y)) * / 2) (fun y => y * y * / 2)).
    + apply (Hs (fun y => (1 + y) * ln (1 + y) + (1 - y) * ln (1 - y))).
      apply (derivable_pt_lim_plus (fun y => (1 + y) * ln (1 + y)) (fun y => (1 - y) * ln (1 - y))).
      * apply (derivable_pt_lim_mult (fun y => 1 + y) (fun y => ln (1 + y))); [|apply derivable_ln_plus; lra].
        apply (derivable_pt_lim_plus (fun _ => 1) id); [apply derivable_pt_lim_const|apply derivable_pt_lim_id].
      * apply (derivable_pt_lim_mult (fun y => 1 - y) (fun y => ln (1 - y))); [|apply derivable_ln_minus; lra].
        apply (derivable_pt_lim_minus (fun _ => 1) id); [apply derivable_pt_lim_const|apply derivable_pt_lim_id].
    + apply (Hs (fun y => y * y)). apply (derivable_pt_lim_mult id id); apply derivable_pt_lim_id.
  - intros y Hy. pose proof (artanh_ge y ltac:(lra)).
    rewrite Rinv_r, Ropp_mult_distr_r_reverse, Rinv_r by lra. lra.
Qed.

Lemma phi_nonneg x : 0 <= x <= 1 -> 0 <= phi x.
Proof. intros Hx. pose proof (phi_ge_half_sq x Hx). nra. Qed.

Lemma phi_nondecr x y : 0 <= x -> x <= y -> y <= 1 -> phi x <= phi y.
Proof.
  intros Hx Hxy Hy. destruct (Req_dec y 0) as [->|Hy0]; [replace x with 0 by lra; lra|].
  assert (0 < y) by lra.
  assert (Ht : 0 <= x / y <= 1).
  { split; [apply Rmult_le_pos; [lra|left; now apply Rinv_0_lt_compat]|].
    apply Rmult_le_reg_r with y; [assumption|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l; lra. }
  pose proof (phi_star (x / y) y Ht ltac:(lra)) as H'.
  replace (x / y * y) with x in H' by (field; lra).
  pose proof (phi_nonneg y ltac:(lra)). nra.
Qed.

(** [s phi(g/s)] decreases in [s] (the perspective of phi). *)
Lemma perspective_decr g s s' :
  0 <= g -> g <= s -> 0 < s -> s <= s' -> s' * phi (g / s') <= s * phi (g / s).
Proof.
  intros Hg Hgs Hs Hss. assert (Hs' : 0 < s') by lra.
  assert (Hx : 0 <= g / s <= 1).
  { split; [apply Rmult_le_pos; [lra|left; now apply Rinv_0_lt_compat]|].
    apply Rmult_le_reg_r with s; [assumption|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l; lra. }
  assert (Ht : 0 <= s / s' <= 1).
  { split; [apply Rmult_le_pos; [lra|left; now apply Rinv_0_lt_compat]|].
    apply Rmult_le_reg_r with s'; [assumption|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l; lra. }
  pose proof (phi_star (s / s') (g / s) Ht ltac:(lra)) as H.
  replace (s / s' * (g / s)) with (g / s') in H by (field; lra).
  apply Rmult_le_compat_l with (r := s') in H; [|lra].
  replace (s' * (s / s' * phi (g / s))) with (s * phi (g / s)) in H by (field; lra). lra.
Qed.
