(** * S4: the joint range of KL with the squared Hellinger distance and the Jensen-Shannon divergence. *)

From Coq Require Import Reals List Arith Lra Lia.
From Draftcert Require Statements.
From Draftcert Require Import Definitions Sums LogFacts.
Open Scope R_scope.

(** [t ln(1 + 1/t)] does not decrease. *)
Lemma slope_rises r t : 0 < r <= t -> r * (ln (1 + r) - ln r) <= t * (ln (1 + t) - ln t).
Proof.
  intros H.
  (* ln lies above its chord from 1 to (1 + r)/r at (1 + t)/t *)
  pose proof (ln_le_sub1 (t / (1 + t)) ltac:(apply Rdiv_lt_0_compat; lra)) as h1.
  pose proof (ln_le_sub1 ((1 + r) / r * (t / (1 + t))) ltac:(apply Rmult_lt_0_compat; apply Rdiv_lt_0_compat; lra)) as h2.
  rewrite ln_mult, !ln_div in h2 by (try apply Rdiv_lt_0_compat; lra). rewrite ln_div in h1 by lra.
  apply Rmult_le_compat_l with (r := t - r) in h1; [|lra]. apply Rmult_le_compat_l with (r := r) in h2; [|lra].
  assert (E : (t - r) * (t / (1 + t) - 1) + r * ((1 + r) / r * (t / (1 + t)) - 1) = 0) by (field; lra). lra.
Qed.

(** What a token takes from Jensen-Shannon, per target probability, as a function of [ln (q/p)] lies above its tangents. *)
Definition mixed (t : R) : R := (1 + t) * ln (1 + t) - t * ln t.

Lemma mixed_tangent r t : 0 < r -> 0 < t -> mixed r + r * (ln (1 + r) - ln r) * (ln t - ln r) <= mixed t.
Proof.
  intros Hr Ht. set (s := r * (ln (1 + r) - ln r)).
  set (f := fun y => (1 + y) * ln (1 + y) - y * ln y - s * ln y).
  set (f' := fun y => (0 + 1) * ln (1 + y) + (1 + y) * / (1 + y) - (1 * ln y + y * / y) - s * / y).
  assert (Hd : forall y, 0 < y -> derivable_pt_lim f y (f' y)).
  { intros y Hy. apply (derivable_pt_lim_minus (fun y => (1 + y) * ln (1 + y) - y * ln y) (fun y => s * ln y)).
    - apply (derivable_pt_lim_minus (fun y => (1 + y) * ln (1 + y)) (fun y => y * ln y)).
      + apply (derivable_pt_lim_mult (fun y => 1 + y) (fun y => ln (1 + y))); [|apply derivable_ln_plus; lra].
        apply (derivable_pt_lim_plus (fun _ => 1) id); [apply derivable_pt_lim_const|apply derivable_pt_lim_id].
      + apply (derivable_pt_lim_mult id ln); [apply derivable_pt_lim_id|now apply derivable_pt_lim_ln].
    - apply (derivable_pt_lim_scal ln s). now apply derivable_pt_lim_ln. }
  assert (Hs : forall y, 0 < y -> f' y = (y * (ln (1 + y) - ln y) - s) / y) by (intros y Hy; unfold f'; field; lra).
  enough (f r <= f t) by (unfold f in H; unfold mixed; lra).
  destruct (Rle_dec r t) as [h|h].
  - apply (nondecreasing_from_derivative f f' r t h); [intros y Hy; apply Hd; lra|].
    intros y Hy. rewrite Hs by lra. apply Rmult_le_pos; [|left; apply Rinv_0_lt_compat; lra].
    pose proof (slope_rises r y ltac:(lra)). unfold s. lra.
  - enough (- f t <= - f r) by lra.
    apply (nondecreasing_from_derivative (fun y => - f y) (fun y => - f' y) t r); [lra|intros y Hy; apply derivable_pt_lim_opp, Hd; lra|].
    intros y Hy. rewrite Hs by lra. replace (- ((y * (ln (1 + y) - ln y) - s) / y)) with ((s - y * (ln (1 + y) - ln y)) / y) by (field; lra).
    apply Rmult_le_pos; [|left; apply Rinv_0_lt_compat; lra]. pose proof (slope_rises y r ltac:(lra)). unfold s. lra.
Qed.

(** Jensen-Shannon is [ln 2] less half of what its tokens take. *)
Lemma jensen_shannon_mixed V p q : prob V p -> prob V q -> KL_finite V p q ->
  jensen_shannon V p q = ln 2 - sum (seq 0 V) (fun i => p i * mixed (q i / p i)) / 2.
Proof.
  intros Hp Hq Hf. unfold jensen_shannon, KL. cbv zeta. rewrite <- sum_plus.
  rewrite (sum_ext _ _ (fun i => ln 2 * (p i + q i) - p i * mixed (q i / p i))).
  - rewrite sum_minus, sum_scal, sum_plus, (proj2 Hp), (proj2 Hq). field.
  - intros i Hi. apply in_vocab in Hi. specialize (Hf i Hi). pose proof (proj1 Hq i Hi) as Hqi. destruct (proj1 Hp i Hi) as [h|<-].
    + specialize (Hf h). unfold mixed. replace (1 + q i / p i) with ((p i + q i) / p i) by (field; lra).
      rewrite !ln_div by lra. field. lra.
    + rewrite !Rmult_0_l. destruct Hqi as [h|<-]; [|lra]. replace (q i / ((0 + q i) / 2)) with 2 by (field; lra). lra.
Qed.

Theorem joint_range : Statements.S4_joint_range.
Proof.
  intros D HD r hellinger shannon. assert (Hr : 0 < r) by apply exp_pos. assert (Er : ln r = - D) by (unfold r; now rewrite ln_exp).
  assert (Hr1 : r <= 1).
  { unfold r. rewrite <- exp_0. destruct HD as [h|<-]; [left; apply exp_increasing; lra|rewrite Ropp_0; lra]. }
  split.
  - intros V p q Hp Hq Hf HKL.
    assert (Hln : forall i, (i < V)%nat -> 0 < p i -> ln (p i / q i) = - ln (q i / p i)).
    { intros i Hi h. specialize (Hf i Hi h). rewrite !ln_div by lra. ring. }
    split.
    + enough (sqrt r <= sum (seq 0 V) (fun i => sqrt (p i * q i))) by (unfold hellinger; lra). set (k := sqrt r).
      assert (Hk : 0 < k) by now apply sqrt_lt_R0. assert (Ek : ln k = - D / 2).
      { assert (E : ln (k * k) = - D) by (unfold k; rewrite sqrt_sqrt; lra). rewrite ln_mult in E by assumption. lra. }
      apply Rle_trans with (sum (seq 0 V) (fun i => k * (1 + D / 2) * p i - k / 2 * (p i * ln (p i / q i)))).
      * rewrite sum_minus, !sum_scal, (proj2 Hp). fold (KL V p q). assert (0 <= k * (D - KL V p q)) by (apply Rmult_le_pos; lra). lra.
      * apply sum_le. intros i Hi. apply in_vocab in Hi. destruct (proj1 Hp i Hi) as [h|h].
        2:{ rewrite <- h. rewrite !Rmult_0_l, !Rmult_0_r, sqrt_0. lra. }
        pose proof (Hf i Hi h) as Hqi. set (y := sqrt (p i * q i)). assert (Hy : 0 < y) by (apply sqrt_lt_R0; now apply Rmult_lt_0_compat).
        assert (Ey : ln y = (ln (p i) + ln (q i)) / 2).
        { assert (E : ln (y * y) = ln (p i * q i)) by (unfold y; rewrite sqrt_sqrt; [reflexivity|left; now apply Rmult_lt_0_compat]).
          rewrite !ln_mult in E by assumption. lra. }
        assert (Hkp : 0 < k * p i) by now apply Rmult_lt_0_compat.
        pose proof (ln_le_sub1 (y / (k * p i)) ltac:(now apply Rdiv_lt_0_compat)) as H. rewrite ln_div, ln_mult, Ey, Ek in H by assumption.
        apply Rmult_le_compat_l with (r := k * p i) in H; [|lra]. replace (k * p i * (y / (k * p i) - 1)) with (y - k * p i) in H by (field; lra).
        rewrite ln_div by assumption. lra.
    + rewrite jensen_shannon_mixed by assumption. set (s := r * (ln (1 + r) - ln r)).
      assert (Hs : 0 <= s) by (apply Rmult_le_pos; [lra|]; pose proof (ln_nondecr r (1 + r) Hr ltac:(lra)); lra).
      assert (H : sum (seq 0 V) (fun i => (mixed r + s * D) * p i - s * (p i * ln (p i / q i))) <= sum (seq 0 V) (fun i => p i * mixed (q i / p i))).
      { apply sum_le. intros i Hi. apply in_vocab in Hi. destruct (proj1 Hp i Hi) as [h|<-]; [|lra]. rewrite Hln by assumption.
        pose proof (mixed_tangent r (q i / p i) Hr ltac:(apply Rdiv_lt_0_compat; auto)) as H. fold s in H. rewrite Er in H.
        apply Rmult_le_compat_l with (r := p i) in H; lra. }
      rewrite sum_minus, !sum_scal, (proj2 Hp) in H. fold (KL V p q) in H. assert (0 <= s * (D - KL V p q)) by (apply Rmult_le_pos; lra).
      unfold shannon. unfold mixed at 1 in H. lra.
  - set (p := fun i : nat => match i with O => 1 | _ => 0 end). set (q := fun i : nat => match i with O => r | _ => 1 - r end).
    assert (H2 : forall f, sum (seq 0 2) f = f O + f 1%nat) by (intros f; unfold sum; cbn; lra).
    assert (Hp : prob 2 p) by (split; [intros [|i] _; cbn; lra|rewrite H2; cbn; lra]).
    assert (Hq : prob 2 q) by (split; [intros [|i] _; cbn; lra|rewrite H2; cbn; lra]).
    assert (Hf : KL_finite 2 p q) by (intros [|i] _; cbn; lra).
    exists p, q. split; [assumption|]. split; [assumption|]. split; [assumption|]. split; [|split; [|split]].
    + unfold KL. rewrite H2. cbn. rewrite ln_div, ln_1, Er by lra. lra.
    + intros h k. specialize (k 1%nat ltac:(lia)). cbn in k. apply exp_increasing in h. 
      assert (r < 1) by (unfold r; rewrite <- exp_0; apply exp_increasing; apply exp_lt_inv in h; lra). lra.
    + rewrite H2. cbn. rewrite Rmult_1_l, Rmult_0_l, sqrt_0. unfold hellinger. lra.
    + rewrite jensen_shannon_mixed, H2 by assumption. cbn. replace (r / 1) with r by field. unfold mixed, shannon. lra.
Qed.

(** Jensen's inequality for a concave function. *)
Lemma jensen f : (forall x y t, 0 <= t <= 1 -> t * f x + (1 - t) * f y <= f (t * x + (1 - t) * y)) ->
  forall l w x, (forall i : nat, In i l -> 0 <= w i) -> 0 < sum l w ->
  sum l (fun i => w i * f (x i)) <= sum l w * f (sum l (fun i => w i * x i) / sum l w).
Proof.
  intros Hf. induction l as [|i l IH]; intros w x Hw Hs; [rewrite sum_nil in Hs; lra|]. rewrite !sum_cons in *.
  pose proof (Hw i (or_introl eq_refl)) as Hi. assert (Hl : forall j, In j l -> 0 <= w j) by auto with datatypes.
  pose proof (sum_nonneg l w Hl) as HW. set (W := sum l w) in *. destruct HW as [HW|HW].
  - specialize (IH w x Hl HW). fold W in IH. set (m := sum l (fun j => w j * x j) / W) in *.
    assert (Em : sum l (fun j => w j * x j) = W * m) by (unfold m; field; lra). rewrite Em.
    assert (Ht : 0 <= w i / (w i + W) <= 1).
    { split; [apply Rmult_le_pos; [lra|left; apply Rinv_0_lt_compat; lra]|]. apply Rmult_le_reg_r with (w i + W); [lra|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l; lra. }
    pose proof (Hf (x i) m _ Ht) as h. apply Rmult_le_compat_l with (r := w i + W) in h; [|lra].
    replace (w i / (w i + W) * x i + (1 - w i / (w i + W)) * m) with ((w i * x i + W * m) / (w i + W)) in h by (field; lra).
    replace ((w i + W) * (w i / (w i + W) * f (x i) + (1 - w i / (w i + W)) * f m)) with (w i * f (x i) + W * f m) in h by (field; lra). lra.
  - assert (Hz : forall g, sum l (fun j => w j * g j) = 0).
    { intros g. rewrite (sum_ext _ _ (fun _ => 0)); [apply sum_zero|]. intros j Hj. rewrite (sum_zero_inv l w Hl) by (fold W; lra || assumption). ring. }
    rewrite !Hz, <- HW, !Rplus_0_r in *. replace (w i * x i / w i) with (x i) by (field; lra). lra.
Qed.

Theorem jensen_range : Statements.S4_jensen.
Proof.
  intros f k D HD Hf divergence. split.
  - intros V p q Hp Hq Hfin.
    assert (H : divergence V p q <= f (- KL V p q) + k).
    { unfold divergence. rewrite (proj2 Hq), Rmult_1_r. apply Rplus_le_compat_r.
      pose proof (jensen f Hf (seq 0 V) p (fun i => ln (q i / p i))) as J. rewrite (proj2 Hp) in J.
      replace (- KL V p q) with (sum (seq 0 V) (fun i => p i * ln (q i / p i)) / 1).
      - rewrite <- (Rmult_1_l (f _)). apply J; [intros i Hi; now apply Hp, in_vocab|lra].
      - unfold KL. rewrite <- (Rmult_1_l (sum _ (fun i => p i * ln (p i / q i)))), Ropp_mult_distr_l, <- sum_scal. unfold Rdiv at 1. rewrite Rinv_1, Rmult_1_r.
        apply sum_ext. intros i Hi. apply in_vocab in Hi. destruct (proj1 Hp i Hi) as [h|<-]; [|ring]. specialize (Hfin i Hi h).
        rewrite !ln_div by assumption. ring. }
    split; [now intros <-|]. intros H0 HK. eapply Rle_trans; [exact H|]. apply Rplus_le_compat_r.
    (* were f to fall from -KL to -D, it would go on falling and be below f 0 somewhere *)
    assert (HK0 : 0 <= KL V p q).
    { unfold KL. apply Rle_trans with (sum (seq 0 V) (fun i => p i - q i)); [rewrite sum_minus, (proj2 Hp), (proj2 Hq); lra|].
      apply sum_le. intros i Hi. apply in_vocab in Hi. apply gibbs_term; [now apply Hp|now apply Hq|now apply Hfin]. }
    set (K := KL V p q) in *. apply Rnot_lt_le. intros h. pose proof (H0 (- K) ltac:(lra)) as HA.
    set (d := f (- K) - f (- D)). set (A := f (- K) - f 0). assert (Hd : 0 < d) by (unfold d; lra). assert (HA0 : 0 <= A) by (unfold A; lra).
    assert (HKD : K < D) by (destruct HK as [e|e]; [exact e|rewrite e in h; lra]).
    set (t := A / (A + d)). assert (Ht : 0 <= t < 1).
    { split; [apply Rmult_le_pos; [lra|left; apply Rinv_0_lt_compat; lra]|]. apply Rmult_lt_reg_r with (A + d); [lra|]. unfold t, Rdiv. rewrite Rmult_assoc, Rinv_l; lra. }
    set (X := K + (D - K) * ((A + d) / d)).
    assert (EX : - D = t * - K + (1 - t) * - X) by (unfold X, t; field; lra).
    assert (HX : 0 <= X) by (unfold X; apply Rplus_le_le_0_compat; [lra|apply Rmult_le_pos; [lra|left; apply Rdiv_lt_0_compat; lra]]).
    pose proof (Hf (- K) (- X) t ltac:(lra)) as h1. rewrite <- EX in h1. pose proof (H0 (- X) ltac:(lra)) as h2.
    apply Rmult_le_compat_l with (r := 1 - t) in h2; [|lra].
    assert (E : (1 - t) * A = t * d) by (unfold t; field; lra). unfold A, d in *. nra.
  - intros V p q Hp Hq H. pose proof (exp_pos (- D)) as Hr.
    assert (Hln : forall i, (i < V)%nat -> 0 < p i -> ln (p i / q i) = D /\ ln (q i / p i) = - D).
    { intros i Hi h. rewrite (H i Hi h), !ln_div, ln_mult, ln_exp by (try apply Rmult_lt_0_compat; assumption). lra. }
    split; [intros i Hi h; rewrite (H i Hi h); now apply Rmult_lt_0_compat|]. split.
    + unfold KL. rewrite (sum_ext _ _ (fun i => D * p i)), sum_scal, (proj2 Hp); [ring|]. intros i Hi. apply in_vocab in Hi.
      destruct (proj1 Hp i Hi) as [h|<-]; [|ring]. rewrite (proj1 (Hln i Hi h)). ring.
    + unfold divergence. rewrite (sum_ext _ _ (fun i => f (- D) * p i)), sum_scal, (proj2 Hp), (proj2 Hq); [ring|]. intros i Hi. apply in_vocab in Hi.
      destruct (proj1 Hp i Hi) as [h|<-]; [|ring]. rewrite (proj2 (Hln i Hi h)). ring.
Qed.
