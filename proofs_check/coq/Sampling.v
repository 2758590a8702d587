(** * S1 to S3 speculative sampling with a lenience, the logarithmic mean of the ratios of the worst pair; S5; S7. *)

From Coq Require Import Reals List Arith Lra Lia Ranalysis5.
From Draftcert Require Statements.
From Draftcert Require Import Definitions Sums LogFacts Projection Runs.
Import ListNotations.
Open Scope R_scope.

Lemma ln_ratio_pos u v : 0 < u < v -> 0 < ln (v / u).
Proof. intros H. rewrite ln_div by lra. assert (ln u < ln v) by (apply ln_increasing; lra). lra. Qed.

(** Both sides of S2, as one sum. *)
Lemma tangent_sum V p q u v :
  prob V p -> prob V q -> 0 < u < v ->
  KL V p q + (v - u) * acceptance V ((v - u) / ln (v / u)) p q - (1 - u + ln v) =
  sum (seq 0 V) (fun i => p i * ln (p i / q i) + (v - u) * Rmin (q i) (p i / ((v - u) / ln (v / u)))
                          - ((1 + ln v) * p i - u * q i)).
Proof.
  intros [_ Hp] [_ Hq] _. unfold KL, acceptance. rewrite !sum_minus, sum_plus, !sum_scal, Hp, Hq. ring.
Qed.

Lemma least_acceptance V p q u v :
  prob V p -> prob V q -> KL_finite V p q -> 0 < u < v ->
  1 - u + ln v <= KL V p q + (v - u) * acceptance V ((v - u) / ln (v / u)) p q.
Proof.
  intros Hp Hq Hf Huv. pose proof (ln_ratio_pos u v Huv) as HL.
  enough (0 <= KL V p q + (v - u) * acceptance V ((v - u) / ln (v / u)) p q - (1 - u + ln v)) by lra.
  rewrite tangent_sum by assumption. apply sum_nonneg. intros i Hi. apply in_vocab in Hi.
  pose proof (scaled_term (p i) (q i)) as H. specialize (fun r => H r (proj1 Hp i Hi) (proj1 Hq i Hi) (Hf i Hi)).
  pose proof (H u ltac:(lra)) as Hu. pose proof (H v ltac:(lra)) as Hv. rewrite (ln_div v u) in HL |- * by lra.
  apply Rmin_case.
  - lra.
  - replace ((v - u) * (p i / ((v - u) / (ln v - ln u)))) with (p i * (ln v - ln u)) by (field; lra). lra.
Qed.

Lemma logarithmic_mean u v : 0 < u < v -> u <= (v - u) / ln (v / u) <= v.
Proof.
  intros Huv. pose proof (ln_ratio_pos u v Huv) as HL. rewrite (ln_div v u) in HL |- * by lra.
  assert (H : forall w, 0 < w -> w * (ln v - ln u) <= v * (w / u) - w /\ w - u * (w / v) <= w * (ln v - ln u)).
  { intros w Hw. pose proof (ln_le_sub1 (v / u) ltac:(apply Rdiv_lt_0_compat; lra)) as h1.
    pose proof (ln_le_sub1 (u / v) ltac:(apply Rdiv_lt_0_compat; lra)) as h2. rewrite ln_div in h1, h2 by lra.
    apply Rmult_le_compat_l with (r := w) in h1; [|lra]. apply Rmult_le_compat_l with (r := w) in h2; [|lra].
    replace (w * (v / u - 1)) with (v * (w / u) - w) in h1 by (field; lra).
    replace (w * (u / v - 1)) with (u * (w / v) - w) in h2 by (field; lra). lra. }
  split; apply Rmult_le_reg_r with (ln v - ln u); try lra; unfold Rdiv at 1; rewrite Rmult_assoc, Rinv_l by lra.
  - destruct (H u ltac:(lra)) as [h _]. replace (v * (u / u) - u) with (v - u) in h by (field; lra). lra.
  - destruct (H v ltac:(lra)) as [_ h]. replace (v - u * (v / v)) with (v - u) in h by (field; lra). lra.
Qed.

(** Equality: every token has the ratio [u] or [v]. *)
Lemma least_acceptance_attained V p q u v :
  prob V p -> prob V q -> 0 < u < v -> (forall i, (i < V)%nat -> p i = u * q i \/ p i = v * q i) ->
  KL_finite V p q /\ KL V p q + (v - u) * acceptance V ((v - u) / ln (v / u)) p q = 1 - u + ln v.
Proof.
  intros Hp Hq Huv H. pose proof (ln_ratio_pos u v Huv) as HL. destruct (logarithmic_mean u v Huv) as [Hm1 Hm2].
  split; [intros i Hi h; destruct (H i Hi) as [E|E]; rewrite E in h; apply Rnot_le_lt; intros k; nra|].
  set (l := (v - u) / ln (v / u)) in *.
  apply Rminus_diag_uniq. unfold l. rewrite tangent_sum, (sum_ext _ _ (fun _ => 0)); auto using sum_zero. fold l.
  intros i Hi. apply in_vocab in Hi. pose proof (proj1 Hq i Hi) as Hqi.
  assert (Hl : 0 < l) by lra. assert (El : (v - u) = l * ln (v / u)) by (unfold l; field; lra).
  assert (Hr : forall r, 0 < r -> r * q i * ln (r * q i / q i) = r * q i * ln r).
  { intros r Hr. destruct Hqi as [k|<-]; [|ring]. replace (r * q i / q i) with r by (field; lra). reflexivity. }
  destruct (H i Hi) as [E|E]; rewrite E, Hr by lra.
  - rewrite Rmin_right.
    + replace ((v - u) * (u * q i / l)) with (u * q i * ln (v / u)) by (rewrite El; field; lra). rewrite ln_div by lra. ring.
    + apply Rmult_le_reg_r with l; [assumption|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l by lra. nra.
  - rewrite Rmin_left; [ring|]. apply Rmult_le_reg_r with l; [assumption|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l by lra. nra.
Qed.

(** ** For every lenience and divergence there is a worst pair: with [v = u e^w] its divergence takes every value *)

Lemma pair_exists l D : 0 < l <= 1 -> 0 < D ->
  exists u v, 0 < u < 1 /\ 1 < v /\ (v - u) / ln (v / u) = l /\ ln v - u * (v - 1) / l = D.
Proof.
  intros Hl HD. set (U := fun w => l * (w / (exp w - 1))). set (W := fun w => U w + l * w).
  set (G := fun w => ln (W w) - U w * (W w - 1) / l).
  assert (He : forall w, 0 < w -> w * (1 + w / 4) <= exp w - 1).
  { intros w Hw. pose proof (exp_ineq1_le (w / 2)) as h. pose proof (exp_pos (w / 2)).
    replace w with (w / 2 + w / 2) at 3 by lra. rewrite exp_plus. nra. }
  assert (HU : forall w, 0 < w -> 0 < U w < l /\ U w * (1 + w / 4) <= l /\ U w * exp w = W w).
  { intros w Hw. specialize (He w Hw). assert (H1 : 0 < exp w - 1) by nra.
    assert (E : U w * (exp w - 1) = l * w) by (unfold U; field; lra).
    assert (0 < U w) by (unfold U; apply Rmult_lt_0_compat; [lra|now apply Rdiv_lt_0_compat]).
    assert (U w * (w * (1 + w / 4)) <= l * w) by (rewrite <- E; apply Rmult_le_compat_l; lra).
    assert (U w * (1 + w / 4) <= l) by (apply Rmult_le_reg_r with w; lra).
    unfold W. repeat split; try assumption; nra. }
  set (a := (1 + D / 2) / l - 1). set (b := exp (D + 5) / l).
  assert (Hi : 1 <= / l) by (rewrite <- Rinv_1; apply Rinv_le_contravar; lra).
  assert (Ha : 0 < a) by (unfold a, Rdiv; nra). assert (Eb : l * b = exp (D + 5)) by (unfold b; field; lra).
  assert (Hab : a < b).
  { pose proof (exp_ineq1_le (D + 5)). unfold a, b, Rdiv. nra. }
  destruct (IVT_interv (fun w => G w - D) a b) as (w & Hw & E); try assumption.
  - intros w Hw. assert (Hw0 : 0 < w) by lra. specialize (He w Hw0). destruct (HU w Hw0) as (h & _).
    assert (CU : continuity_pt U w).
    { apply (continuity_pt_scal (fun w => w / (exp w - 1))), (continuity_pt_div id (fun w => exp w - 1)); [| |nra];
        [|apply (continuity_pt_minus exp (fun _ => 1))]; apply derivable_continuous_pt;
        [apply derivable_pt_id|apply derivable_pt_exp|apply derivable_pt_const]. }
    assert (CW : continuity_pt W w).
    { apply (continuity_pt_plus U (fun w => l * w)); [assumption|]. apply (continuity_pt_scal id), derivable_continuous_pt, derivable_pt_id. }
    apply (continuity_pt_minus G (fun _ => D)); [|apply derivable_continuous_pt, derivable_pt_const].
    apply (continuity_pt_minus (fun w => ln (W w)) (fun w => U w * (W w - 1) / l)).
    + apply (continuity_pt_comp W ln); [assumption|]. apply derivable_continuous_pt. exists (/ W w). apply derivable_pt_lim_ln. unfold W. nra.
    + apply (continuity_pt_mult (fun w => U w * (W w - 1)) (fun _ => / l)); [|apply derivable_continuous_pt, derivable_pt_const].
      apply continuity_pt_mult; [assumption|]. apply (continuity_pt_minus W (fun _ => 1)); [assumption|].
      apply derivable_continuous_pt, derivable_pt_const.
  - destruct (HU a Ha) as ((h1 & h2) & _ & _). assert (HW : 0 < W a) by (unfold W; nra).
    assert (HWa : W a <= 1 + D / 2).
    { replace (1 + D / 2) with (l + l * a) by (unfold a; field; lra). unfold W. lra. }
    pose proof (ln_le_sub1 (W a) HW). assert (Hr : 0 < U a / l < 1).
    { split; [now apply Rdiv_lt_0_compat; lra|]. apply Rmult_lt_reg_r with l; [lra|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l; lra. }
    unfold G. replace (U a * (W a - 1) / l) with (U a / l * (W a - 1)) by (field; lra). nra.
  - assert (Hb : 0 < b) by lra. destruct (HU b Hb) as ((h1 & h2) & h3 & _).
    assert (HW : ln (exp (D + 5)) <= ln (W b)) by (apply ln_nondecr; [apply exp_pos|unfold W; lra]). rewrite ln_exp in HW.
    assert (H4 : U b * (W b - 1) <= 4 * l).
    { assert (W b <= l * (1 + b)) by (unfold W; lra). nra. }
    assert (U b * (W b - 1) / l <= 4); [|unfold G; lra].
    apply Rmult_le_reg_r with l; [lra|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l; lra.
  - assert (Hw0 : 0 < w) by lra. destruct (HU w Hw0) as ((h1 & h2) & _ & h4). exists (U w), (W w).
    assert (HW : 0 < W w) by (unfold W; nra).
    assert (EL : ln (W w / U w) = w).
    { rewrite <- h4. replace (U w * exp w / U w) with (exp w) by (field; lra). apply ln_exp. }
    split; [lra|]. split; [|split; [|unfold G in E; lra]].
    + apply Rnot_le_lt. intros k. pose proof (ln_le_sub1 (W w) HW).
      assert (U w / l <= 1) by (apply Rmult_le_reg_r with l; [lra|]; unfold Rdiv; rewrite Rmult_assoc, Rinv_l; lra).
      assert (X : U w * (W w - 1) / l = U w / l * (W w - 1)) by (field; lra). unfold G in E. rewrite X in E. nra.
    + rewrite EL. unfold W. field. lra.
Qed.

(** The two tokens that attain S2, with the ratios [u] and [v]. *)
Lemma worst_pair u v : 0 < u < 1 -> 1 < v ->
  let l := (v - u) / ln (v / u) in let D := ln v - u * (v - 1) / l in
  exists p q, prob 2 p /\ prob 2 q /\ KL_finite 2 p q /\ KL 2 p q = D /\ (v - u) * acceptance 2 l p q = 1 - u + ln v - D /\
    0 < q 0%nat /\ 0 < q 1%nat /\ p 0%nat = u * q 0%nat /\ p 1%nat = v * q 1%nat.
Proof.
  intros Hu Hv l D. set (b := (v - 1) / (v - u)). assert (Eb : (v - u) * b = v - 1) by (unfold b; field; lra).
  assert (Hb : 0 < b < 1) by (split; apply Rmult_lt_reg_l with (v - u); lra).
  set (q := fun i : nat => match i with O => b | _ => 1 - b end). set (p := fun i : nat => match i with O => u * b | _ => v * (1 - b) end).
  assert (H2 : forall f, sum (seq 0 2) f = f O + f 1%nat) by (intros f; unfold sum; cbn; lra).
  assert (Hq : prob 2 q) by (split; [intros [|i] _; cbn; lra|rewrite H2; cbn; lra]).
  assert (Hp : prob 2 p) by (split; [intros [|i] _; cbn; apply Rmult_le_pos; lra|rewrite H2; cbn; lra]).
  destruct (least_acceptance_attained 2 p q u v Hp Hq ltac:(lra)) as [Hf E]; [intros [|i] _; cbn; [now left|now right]|]. fold l in E.
  assert (EK : KL 2 p q = D).
  { unfold KL. rewrite H2. cbn. replace (u * b / b) with u by (field; lra). replace (v * (1 - b) / (1 - b)) with v by (field; lra).
    pose proof (ln_ratio_pos u v ltac:(lra)). assert (EL : ln v - ln u = (v - u) / l).
    { unfold l. rewrite <- ln_div by lra. field. lra. }
    replace (v * (1 - b)) with (1 - u * b) by lra. unfold D.
    assert (Hl : l <> 0) by (pose proof (logarithmic_mean u v ltac:(lra)) as k; fold l in k; lra).
    replace (u * (v - 1) / l) with (u * b * ((v - u) / l)) by (rewrite <- Eb; field; lra). rewrite <- EL. ring. }
  exists p, q. rewrite EK in E. do 4 (split; [assumption|]). split; [lra|]. cbn. repeat split; lra.
Qed.

(** Equality for no other ratios. *)
Lemma least_acceptance_only V p q u v :
  prob V p -> prob V q -> KL_finite V p q -> 0 < u < v ->
  KL V p q + (v - u) * acceptance V ((v - u) / ln (v / u)) p q = 1 - u + ln v ->
  forall i, (i < V)%nat -> 0 < p i -> p i = u * q i \/ p i = v * q i.
Proof.
  intros Hp Hq Hf Huv E. pose proof (ln_ratio_pos u v Huv) as HL. apply Rminus_diag_eq in E. rewrite tangent_sum in E by assumption.
  rewrite ln_div in E, HL by lra.
  assert (Hterm : forall i, (i < V)%nat -> forall r, 0 < r -> 0 <= p i * ln (p i / q i) - (p i + p i * ln r - r * q i)).
  { intros i Hi r Hr. pose proof (scaled_term (p i) (q i) r (proj1 Hp i Hi) (proj1 Hq i Hi) (Hf i Hi) Hr). lra. }
  set (T := fun i => p i * ln (p i / q i) + (v - u) * Rmin (q i) (p i / ((v - u) / (ln v - ln u))) - ((1 + ln v) * p i - u * q i)) in E.
  assert (Emin : forall i, T i = p i * ln (p i / q i) - (p i + p i * ln v - v * q i) \/ T i = p i * ln (p i / q i) - (p i + p i * ln u - u * q i)).
  { intros i. unfold T. apply Rmin_case; [left; ring|right].
    replace ((v - u) * (p i / ((v - u) / (ln v - ln u)))) with (p i * (ln v - ln u)) by (field; lra). ring. }
  assert (Heq : forall i r, (i < V)%nat -> 0 < p i -> 0 < r -> p i * ln (p i / q i) - (p i + p i * ln r - r * q i) = 0 -> p i = r * q i).
  { intros i r Hi h Hr k. specialize (Hf i Hi h). destruct (Req_dec (r * q i / p i) 1) as [e|e].
    - apply (Rmult_eq_compat_r (p i)) in e. replace (r * q i / p i * p i) with (r * q i) in e by (field; lra). lra.
    - assert (h0 : 0 < r * q i) by now apply Rmult_lt_0_compat.
      pose proof (ln_lt_sub1 (r * q i / p i) ltac:(now apply Rdiv_lt_0_compat) e) as H. rewrite ln_div, ln_mult in H by assumption.
      apply Rmult_lt_compat_l with (r := p i) in H; [|assumption].
      replace (p i * (r * q i / p i - 1)) with (r * q i - p i) in H by (field; lra). rewrite ln_div in k by assumption. lra. }
  assert (Hall : forall j, In j (seq 0 V) -> 0 <= T j).
  { intros j Hj. apply in_vocab in Hj. destruct (Emin j) as [e|e]; rewrite e; apply Hterm; auto; lra. }
  intros i Hi h. pose proof (sum_zero_inv _ T Hall (Req_le _ _ E) i (proj2 (in_vocab V i) Hi)) as Z.
  destruct (Emin i) as [e|e]; [right|left]; apply Heq; auto; lra.
Qed.

(** ** The theorems *)

Theorem S1_acceptance : Statements.S1_acceptance.
Proof.
  intros V l p q Hp Hq Hl R.
  assert (Hmin : forall x y, Rmin x y = x - Rmax 0 (x - y)).
  { intros x y. unfold Rmin, Rmax. destruct Rle_dec, Rle_dec; lra. }
  assert (HB : forall B, sum B q - sum B p / l = sum B (fun i => q i - p i / l)).
  { intros B. rewrite sum_minus. unfold Rdiv. rewrite (Rmult_comm (sum B p)), <- sum_scal. f_equal. apply sum_ext. intros i _. ring. }
  split; [|split; [|split]].
  - unfold acceptance, R. rewrite <- (proj2 Hq), <- sum_minus. apply sum_ext. intros i _. apply Hmin.
  - intros ->. unfold R, tv. rewrite (sum_ext _ (fun i => Rabs _) (fun i => 2 * Rmax 0 (q i - p i / 1) + (p i - q i))).
    + rewrite sum_plus, sum_scal, sum_minus, (proj2 Hp), (proj2 Hq). field.
    + intros i _. unfold Rabs, Rmax. destruct Rcase_abs, Rle_dec; lra.
  - intros B Hn HV. rewrite HB. apply Rle_trans with (sum B (fun i => Rmax 0 (q i - p i / l))).
    + apply sum_le. intros i _. apply Rmax_r.
    + apply sum_sub_le; auto using NoDup_seq; [intros i Hi; now apply in_vocab, HV|intros; apply Rmax_l].
  - set (B := filter (fun i => if Rlt_dec (p i / l) (q i) then true else false) (seq 0 V)).
    assert (Hn : NoDup B) by apply NoDup_filter, NoDup_seq.
    assert (HV : incl B (seq 0 V)) by (intros i Hi; now apply filter_In in Hi). exists B. split; [assumption|].
    split; [intros i Hi; now apply in_vocab, HV|]. rewrite HB. unfold R.
    rewrite <- (sum_indicator B (seq 0 V)) by auto using NoDup_seq. apply sum_ext. intros i Hi.
    destruct (mem B i) eqn:E; [apply mem_true in E|apply mem_false in E]; unfold B in E; rewrite filter_In in E;
      destruct (Rlt_dec (p i / l) (q i)) as [h|h].
    + rewrite Rmax_right; lra.
    + now destruct E.
    + tauto.
    + rewrite Rmax_left; lra.
Qed.

Theorem S2_least_acceptance : Statements.S2_least_acceptance.
Proof.
  intros V p q u v Hp Hq Huv l. split; [intros Hf|intros H].
  - pose proof (least_acceptance V p q u v Hp Hq Hf Huv). fold l in H.
    apply Rmult_le_reg_r with (v - u); [lra|]. unfold Rdiv at 1. rewrite Rmult_assoc, Rinv_l; lra.
  - destruct (least_acceptance_attained V p q u v Hp Hq Huv H) as [Hf E]. fold l in E. split; [assumption|].
    apply Rmult_eq_reg_r with (v - u); [|lra]. unfold Rdiv at 1. rewrite Rmult_assoc, Rinv_l; lra.
Qed.

Theorem S2_sharp : Statements.S2_sharp.
Proof.
  intros l D Hl HD. destruct (pair_exists l D Hl HD) as (u & v & Hu & Hv & El & ED). exists u, v.
  split; [assumption|]. split; [assumption|]. split; [assumption|]. split; [assumption|]. intros a.
  assert (Ea : (v - u) * a = 1 - u + ln v - D) by (rewrite <- ED; unfold a; field; lra).
  pose proof least_acceptance as Hleast.
  split; [|split].
  - intros V p q Hp Hq Hf H. specialize (Hleast V p q u v Hp Hq Hf ltac:(lra)). rewrite El in Hleast.
    apply Rmult_le_reg_l with (v - u); lra.
  - intros V p q Hp Hq Hf H. specialize (Hleast V p q u v Hp Hq Hf ltac:(lra)). rewrite El in Hleast.
    apply Rmult_le_compat_l with (r := v - u) in H; lra.
  - destruct (worst_pair u v Hu Hv) as (p & q & Hp & Hq & Hf & EK & E & _). rewrite El, ED in EK. rewrite El, ED in E.
    exists p, q. split; [assumption|]. split; [assumption|]. split; [assumption|]. split; [assumption|].
    apply Rmult_eq_reg_l with (v - u); lra.
Qed.

Theorem S2_one_pair : Statements.S2_one_pair.
Proof.
  assert (Hline : forall u v u' v', 0 < u < 1 -> 1 < v -> 0 < u' < 1 -> 1 < v' ->
    let l := (v - u) / ln (v / u) in let D := ln v - u * (v - 1) / l in (v' - u') / ln (v' / u') = l ->
    (1 - u' + ln v' - D) / (v' - u') <= (1 - u + ln v - D) / (v - u)).
  { intros u v u' v' Hu Hv Hu' Hv' l D El. destruct (worst_pair u v Hu Hv) as (p & q & Hp & Hq & Hf & EK & E & _). fold l D in EK, E.
    pose proof (least_acceptance 2 p q u' v' Hp Hq Hf ltac:(lra)) as H. rewrite El, EK in H.
    replace ((1 - u + ln v - D) / (v - u)) with (acceptance 2 l p q) by (rewrite <- E; field; lra).
    apply Rmult_le_reg_l with (v' - u'); [lra|]. replace ((v' - u') * ((1 - u' + ln v' - D) / (v' - u'))) with (1 - u' + ln v' - D) by (field; lra). lra. }
  intros u v u' v' Hu Hv Hu' Hv' l D D' El. split; [intros ED|now apply Hline].
  destruct (worst_pair u' v' Hu' Hv') as (p & q & Hp & Hq & Hf & EK & E & h0 & h1 & E0 & E1). rewrite El in EK, E. fold D' in EK, E.
  pose proof (Hline u v u' v' Hu Hv Hu' Hv' El) as H. pose proof (Hline u' v' u v Hu' Hv' Hu Hv (eq_sym El)) as H'. cbv zeta in H, H'.
  rewrite El in H'. fold l in H. fold D in H. fold D' in H'. rewrite <- ED in *.
  assert (Ea : KL 2 p q + (v - u) * acceptance 2 l p q = 1 - u + ln v).
  { assert (k : acceptance 2 l p q = (1 - u + ln v - D) / (v - u)).
    { apply Rmult_eq_reg_l with (v' - u'); [|lra]. rewrite E.
      replace (1 - u' + ln v' - D) with ((v' - u') * ((1 - u' + ln v' - D) / (v' - u'))) by (field; lra). f_equal. lra. }
    rewrite k, EK. field. lra. }
  pose proof (least_acceptance_only 2 p q u v Hp Hq Hf ltac:(lra) Ea) as Hr.
  assert (0 < p 0%nat /\ 0 < p 1%nat) as [k0 k1] by (rewrite E0, E1; split; apply Rmult_lt_0_compat; lra).
  split.
  - destruct (Hr 0%nat ltac:(lia) k0) as [e|e]; rewrite E0 in e; apply Rmult_eq_reg_r in e; lra.
  - destruct (Hr 1%nat ltac:(lia) k1) as [e|e]; rewrite E1 in e; apply Rmult_eq_reg_r in e; lra.
Qed.

Theorem S2_coins : Statements.S2_coins.
Proof.
  intros V B p l HB HV Hp Hl s coins. set (C := filter (fun i => negb (mem B i)) (seq 0 V)).
  assert (Hsplit : forall f, sum (seq 0 V) f = sum B f + sum C f).
  { intros f. rewrite <- (sum_indicator B (seq 0 V)) by (auto using NoDup_seq; intros i Hi; now apply in_vocab, HV).
    unfold C. rewrite sum_filter, <- sum_plus. apply sum_ext. intros i _. destruct (mem B i); cbn; lra. }
  assert (HC : forall i, In i C -> (i < V)%nat /\ mem B i = false).
  { intros i Hi. apply filter_In in Hi. now rewrite in_vocab, Bool.negb_true_iff in Hi. }
  assert (Hrest : forall r, prob V r -> sum C r = 1 - sum B r) by (intros r [_ h]; rewrite Hsplit in h; lra).
  split.
  - intros q Hq Hf. unfold KL, coins, s. rewrite Hsplit, <- (Hrest p), <- (Hrest q) by assumption.
    apply Rplus_le_compat; apply (lumped V); auto; [apply NoDup_filter, NoDup_seq|intros; now apply HC].
  - intros b Hs Hb. set (q := fun i => p i * (if mem B i then b / s else (1 - b) / (1 - s))).
    assert (Hin : forall i, In i B -> q i = b / s * p i) by (intros i Hi; unfold q; rewrite mem_in by assumption; ring).
    assert (Hout : forall i, In i C -> q i = (1 - b) / (1 - s) * p i) by (intros i Hi; unfold q; rewrite (proj2 (HC i Hi)); ring).
    assert (Hsb : 0 < b / s /\ 0 < (1 - b) / (1 - s)) by (split; apply Rdiv_lt_0_compat; lra).
    assert (EB : sum B q = b) by (rewrite (sum_ext B q _ Hin), sum_scal; fold s; field; lra).
    assert (EC : sum C q = 1 - b) by (rewrite (sum_ext C q _ Hout), sum_scal, Hrest by assumption; fold s; field; lra).
    assert (Hq0 : forall i, 0 <= p i -> 0 <= q i) by (intros i h; unfold q; destruct (mem B i); apply Rmult_le_pos; lra).
    assert (Hf : KL_finite V p q) by (intros i _ h; unfold q; destruct (mem B i); apply Rmult_lt_0_compat; lra).
    assert (Hln : forall x r, 0 < r -> x * ln (x / (r * x)) = - ln r * x).
    { intros x r Hr. destruct (Req_dec x 0) as [->|h]; [ring|]. replace (x / (r * x)) with (/ r) by (field; lra).
      rewrite ln_Rinv by assumption. ring. }
    exists q. split; [split; [intros i Hi; now apply Hq0, Hp|rewrite Hsplit; lra]|]. split; [assumption|]. split; [assumption|]. split.
    + unfold KL, coins. rewrite Hsplit, (sum_ext B _ (fun i => - ln (b / s) * p i)), (sum_ext C _ (fun i => - ln ((1 - b) / (1 - s)) * p i)).
      * rewrite !sum_scal, Hrest by assumption. fold s. rewrite !ln_div by lra. ring.
      * intros i Hi. rewrite (Hout i Hi). now apply Hln.
      * intros i Hi. rewrite (Hin i Hi). now apply Hln.
    + unfold acceptance. rewrite Hsplit. replace (1 - b + s / l) with (sum B (fun i => / l * p i) + sum C q).
      * apply Rplus_le_compat; apply sum_le; intros i _; [rewrite Rmult_comm; apply Rmin_r|apply Rmin_l].
      * rewrite sum_scal, EC. fold s. field. lra.
Qed.

Theorem S3_mean : Statements.S3_mean.
Proof.
  intros N V p q w u v Hw Huv H. apply Rmult_le_reg_r with (v - u); [lra|].
  unfold Rdiv at 1. rewrite Rmult_assoc, Rinv_l, Rmult_1_r, Rmult_comm, <- sum_scal by lra.
  replace (1 - u + ln v) with (sum (seq 0 N) (fun n => (1 - u + ln v) * w n)) by (rewrite sum_scal, (proj2 Hw); ring).
  rewrite <- sum_minus. apply sum_le. intros n Hn. apply in_vocab in Hn. destruct (H n Hn) as (Hp & Hq & Hf).
  pose proof (least_acceptance (V n) (p n) (q n) u v Hp Hq Hf Huv) as h. pose proof (proj1 Hw n Hn). nra.
Qed.

Theorem S3_attained : Statements.S3_attained.
Proof.
  intros l D Hl HD. destruct (S2_sharp l D Hl HD) as (u & v & Hu & Hv & El & ED & _ & _ & p & q & Hp & Hq & Hf & EK & Ea).
  exists p, q. split; [assumption|]. split; [assumption|]. split; [assumption|]. intros N w Hw.
  assert (Hsame : forall x, sum (seq 0 N) (fun n => w n * x) = x).
  { intros x. rewrite (sum_ext _ _ (fun n => x * w n)), sum_scal, (proj2 Hw) by (intros; ring). ring. }
  split; [now rewrite Hsame|]. intros N' V w' p' q' Hw' H HKL. rewrite Hsame, Ea.
  pose proof (S3_mean N' V p' q' w' u v Hw' ltac:(lra) H) as Hm. rewrite El in Hm. eapply Rle_trans; [|exact Hm].
  replace (1 - u + u * (v - 1) / l) with (1 - u + ln v - D) by lra.
  apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat; lra|lra].
Qed.

Theorem S5_block_verification : Statements.S5_block_verification.
Proof.
  intros l Hl. enough (H : forall x y, 0 <= x <= y -> y <= 1 ->
    fold_left (fun P r => P * Rmin 1 r) l x <= fold_left (fun P r => Rmin 1 (P * r)) l y <= 1) by (apply H; lra).
  induction l as [|r l IH]; intros x y Hx Hy; cbn [fold_left]; [lra|].
  assert (Hr : 0 <= r) by (apply Hl; now left). apply IH; [intros; apply Hl; now right| |apply Rmin_l].
  split; [apply Rmult_le_pos; [lra|apply Rmin_glb; lra]|]. apply Rmin_glb.
  - pose proof (Rmin_l 1 r). assert (0 <= Rmin 1 r) by (apply Rmin_glb; lra). nra.
  - pose proof (Rmin_r 1 r). assert (0 <= Rmin 1 r) by (apply Rmin_glb; lra). nra.
Qed.

Theorem S7_nobody_accepts_more : Statements.S7_nobody_accepts_more.
Proof.
  intros T L f path HT HL Hlen Ha Htop. apply Rle_trans with (sum T path); [now apply sum_le|].
  assert (Hsplit : forall A B (g : nat -> R), sum A g = sum (filter (mem B) A) g + sum (filter (fun i => negb (mem B i)) A) g).
  { intros A B g. rewrite !sum_filter, <- sum_plus. apply sum_ext. intros i _. destruct (mem B i); cbn; lra. }
  rewrite (Hsplit T L), (Hsplit L T).
  assert (Hboth : Permutation.Permutation (filter (mem L) T) (filter (mem T) L)).
  { apply Permutation.NoDup_Permutation; try now apply NoDup_filter. intros i. rewrite !filter_In, !mem_true. tauto. }
  rewrite (sum_perm _ _ path Hboth). apply Rplus_le_compat_l. apply Permutation.Permutation_length in Hboth.
  set (T' := filter (fun i => negb (mem L i)) T). set (L' := filter (fun i => negb (mem T i)) L).
  assert (El : length T' = length L').
  { assert (H : forall A B, length A = (length (filter (mem B) A) + length (filter (fun i => negb (mem B i)) A))%nat).
    { intros A B. induction A as [|i A IH]; [reflexivity|]. cbn [filter length]. destruct (mem B i); cbn [negb length]; lia. }
    pose proof (H T L). pose proof (H L T). unfold T', L'. lia. }
  destruct (list_eq_dec Nat.eq_dec L' nil) as [E|E].
  { rewrite E in *. destruct T'; [lra|discriminate]. }
  destruct (list_min L' path E) as (k & Hk & Hmin). apply filter_In in Hk. destruct Hk as [Hk _].
  apply Rle_trans with (INR (length L') * path k).
  - rewrite <- El, <- sum_const. apply sum_le. intros i Hi. apply filter_In in Hi. destruct Hi as [Hi Hi'].
    apply Bool.negb_true_iff, mem_false in Hi'. auto.
  - rewrite <- sum_const. now apply sum_le.
Qed.

Theorem coins_convex : Statements.S2r_convexity.
Proof.
  intros s b s' b' t Hs Hb Hs' Hb' Ht coins. unfold coins.
  assert (H : forall x y x' y', 0 < x -> 0 < y -> 0 < x' -> 0 < y' ->
    (t * x + (1 - t) * x') * ln ((t * x + (1 - t) * x') / (t * y + (1 - t) * y')) <= t * (x * ln (x / y)) + (1 - t) * (x' * ln (x' / y'))).
  { intros x y x' y' h1 h2 h3 h4. destruct (Req_dec t 0) as [->|n0].
    { replace (0 * x + (1 - 0) * x') with x' by ring. replace (0 * y + (1 - 0) * y') with y' by ring. lra. }
    destruct (Req_dec t 1) as [->|n1].
    { replace (1 * x + (1 - 1) * x') with x by ring. replace (1 * y + (1 - 1) * y') with y by ring. lra. }
    assert (0 < t * x /\ 0 < t * y /\ 0 < (1 - t) * x' /\ 0 < (1 - t) * y') as (k1 & k2 & k3 & k4) by (repeat split; apply Rmult_lt_0_compat; lra).
    eapply Rle_trans; [apply log_sum; auto; lra|]. replace (t * x / (t * y)) with (x / y) by (field; lra).
    replace ((1 - t) * x' / ((1 - t) * y')) with (x' / y') by (field; lra). lra. }
  pose proof (H s b s' b' ltac:(lra) ltac:(lra) ltac:(lra) ltac:(lra)).
  pose proof (H (1 - s) (1 - b) (1 - s') (1 - b') ltac:(lra) ltac:(lra) ltac:(lra) ltac:(lra)) as h.
  replace (t * (1 - s) + (1 - t) * (1 - s')) with (1 - (t * s + (1 - t) * s')) in h by ring.
  replace (t * (1 - b) + (1 - t) * (1 - b')) with (1 - (t * b + (1 - t) * b')) in h by ring. lra.
Qed.

Theorem recursive_rejection : Statements.S5_recursive_rejection.
Proof.
  intros a l Ha Hl. enough (H : 0 <= fold_right Rmult 1 (map (fun r => 1 - r) l) <= 1).
  { set (P := fold_right _ _ _) in *. assert (0 <= (1 - a) * P <= (1 - a) * 1) by (split; [apply Rmult_le_pos|apply Rmult_le_compat_l]; lra). lra. }
  induction l as [|r l IH]; cbn [map fold_right]; [lra|]. specialize (IH (fun r h => Hl r (or_intror h))). specialize (Hl r (or_introl eq_refl)).
  set (P := fold_right _ _ _) in *. assert (0 <= (1 - r) * P <= 1 * P) by (split; [apply Rmult_le_pos|apply Rmult_le_compat_r]; lra). lra.
Qed.

Theorem level_accepts : Statements.S7_level.
Proof.
  intros T f path r d H H1. assert (Hf : sum T f <= sum T (fun i => fold_right Rmult 1 (path i))) by (apply sum_le; intros i Hi; now apply H).
  apply Rmin_glb; [lra|]. eapply Rle_trans; [exact Hf|]. rewrite <- sum_const. apply sum_le. intros i Hi. destruct (H i Hi) as (<- & h & _).
  clear - h. enough (0 <= fold_right Rmult 1 (path i) <= r ^ length (path i)) by lra.
  induction (path i) as [|x l IH]; cbn [fold_right length pow]; [lra|]. specialize (IH (fun y k => h y (or_intror k))).
  specialize (h x (or_introl eq_refl)). split; [apply Rmult_le_pos|apply Rmult_le_compat]; lra.
Qed.

Theorem two_masses : Statements.S2r_two_masses.
Proof.
  intros l D s1 s2 s3 b1 b2 b3 Hl Hs1 Hs2 Hs3 Hb1 Hb2 Hb3 Hbetween coins largest [H1 _] [_ H2] [H3 _] Hbest.
  assert (Ht : exists t, 0 <= t <= 1 /\ s2 = t * s1 + (1 - t) * s3).
  { destruct (Req_dec s1 s3) as [e|e]; [exists 0; lra|]. exists ((s2 - s3) / (s1 - s3)). split; [|field; lra].
    assert (k : (s2 - s3) / (s1 - s3) = (s3 - s2) / (s3 - s1)) by (field; lra).
    destruct (Rlt_dec s1 s3); [rewrite k|]; (split; [apply Rmult_le_pos; [lra|left; apply Rinv_0_lt_compat; lra]|]);
      [apply Rmult_le_reg_r with (s3 - s1)|apply Rmult_le_reg_r with (s1 - s3)]; try lra;
      unfold Rdiv; rewrite Rmult_assoc, Rinv_l; lra. }
  destruct Ht as (t & Ht & ->).
  assert (Hconv : 0 < t * b1 + (1 - t) * b3 < 1).
  { destruct (Rle_dec b1 b3) as [h|h].
    - assert (0 <= t * (b3 - b1) /\ 0 <= (1 - t) * (b3 - b1)) by (split; apply Rmult_le_pos; lra). lra.
    - assert (0 <= t * (b1 - b3) /\ 0 <= (1 - t) * (b1 - b3)) by (split; apply Rmult_le_pos; lra). lra. }
  assert (Hb : t * b1 + (1 - t) * b3 <= b2).
  { apply H2; [assumption|]. eapply Rle_trans; [exact (coins_convex s1 b1 s3 b3 t Hs1 Hb1 Hs3 Hb3 Ht)|].
    change (t * coins s1 b1 + (1 - t) * coins s3 b3 <= D). pose proof (Rmult_le_compat_l t _ _ ltac:(lra) H1).
    pose proof (Rmult_le_compat_l (1 - t) _ _ ltac:(lra) H3). lra. }
  replace (1 - b2 + (t * s1 + (1 - t) * s3) / l) with (1 - b2 + (t * (s1 / l) + (1 - t) * (s3 / l))) by (field; lra).
  apply Rmult_le_compat_l with (r := 1 - t) in Hbest; lra.
Qed.
