(** * M2 to M7 for [m] candidates: bounds by one token ahead of [m] equal competitors. *)

From Coq Require Import Reals List Arith Lra Lia Psatz.
From Draftcert Require Statements.
From Draftcert Require Import Definitions Sums LogFacts Projection Competitors ClosedForm StrictGreedy Margins Duality Orders.
Import ListNotations.
Open Scope R_scope.

Lemma one_ahead_scale m k x y : 0 < k -> 0 < x -> 0 <= y -> one_ahead m (k * x) (k * y) = k * one_ahead m x y.
Proof.
  intros Hk Hx Hy. pose proof (pos_INR m) as Hm. unfold one_ahead. cbv zeta.
  assert (Hc : 0 < (x + INR m * y) / (INR m + 1)) by (apply Rdiv_lt_0_compat; nra).
  assert (E : (k * x + INR m * (k * y)) / (INR m + 1) = k * ((x + INR m * y) / (INR m + 1))) by (field; lra).
  rewrite E. set (c := (x + INR m * y) / (INR m + 1)) in *.
  assert (Hd : forall z, k * z / (k * c) = z / c) by (intros z; field; lra). rewrite !Hd. ring.
Qed.

Lemma one_ahead_nonneg m x y : 0 < x -> 0 <= y -> 0 <= one_ahead m x y.
Proof.
  intros Hx Hy. pose proof (pos_INR m) as Hm. unfold one_ahead. cbv zeta.
  set (c := (x + INR m * y) / (INR m + 1)). assert (Hc : 0 < c) by (apply Rdiv_lt_0_compat; nra).
  pose proof (gibbs_term x c ltac:(lra) ltac:(lra) ltac:(auto)).
  pose proof (gibbs_term y c ltac:(lra) ltac:(lra) ltac:(auto)).
  assert (E : x + INR m * y = (INR m + 1) * c) by (unfold c; field; lra). nra.
Qed.

(** The slopes of [one_ahead], which is [u x + m v y]. *)
Lemma slopes m x y : (1 <= m)%nat -> 0 < y <= x ->
  let c := (x + INR m * y) / (INR m + 1) in let u := ln (x / c) in let v := ln (y / c) in
  0 < c /\ 1 <= x / c /\ 0 < y / c <= 1 /\ x / c + INR m * (y / c) = INR m + 1 /\ 0 <= u /\ v <= 0 /\ u + INR m * v <= 0.
Proof.
  intros Hm Hxy c u v. assert (Hm1 : 1 <= INR m) by (change 1 with (INR 1); now apply le_INR).
  assert (Hc : 0 < c) by (apply Rdiv_lt_0_compat; nra).
  assert (Ec : x + INR m * y = (INR m + 1) * c) by (unfold c; field; lra).
  assert (HU : 0 < x / c) by (apply Rdiv_lt_0_compat; lra). assert (HW : 0 < y / c) by (apply Rdiv_lt_0_compat; lra).
  assert (E : x / c + INR m * (y / c) = INR m + 1).
  { apply Rmult_eq_reg_r with c; [|lra]. rewrite Rmult_plus_distr_r.
    replace (x / c * c) with x by (field; lra). replace (INR m * (y / c) * c) with (INR m * y) by (field; lra). lra. }
  assert (Hle : y / c <= x / c).
  { unfold Rdiv. apply Rmult_le_compat_r; [left; now apply Rinv_0_lt_compat|lra]. }
  pose proof (ln_le_sub1 _ HU) as hu. pose proof (ln_le_sub1 _ HW) as hv. fold u in hu. fold v in hv.
  assert (HU1 : 1 <= x / c) by nra. assert (HW1 : y / c <= 1) by nra.
  assert (INR m * v <= INR m * (y / c - 1)) by (apply Rmult_le_compat_l; lra).
  repeat split; try assumption; [unfold u; rewrite <- ln_1; apply ln_nondecr; lra|lra|lra].
Qed.

(** It lies above each of its tangents. *)
Lemma above_tangent m x y x' y' : (1 <= m)%nat -> 0 < y <= x -> 0 < x' -> 0 < y' ->
  let c := (x + INR m * y) / (INR m + 1) in x' * ln (x / c) + INR m * (y' * ln (y / c)) <= one_ahead m x' y'.
Proof.
  intros Hm Hxy Hx' Hy' c. destruct (slopes m x y Hm Hxy) as (_ & HU & HW & E & _). fold c in HU, HW, E.
  pose proof (pos_INR m) as Hm0. unfold one_ahead. cbv zeta. set (c' := (x' + INR m * y') / (INR m + 1)).
  assert (Hc' : 0 < c') by (apply Rdiv_lt_0_compat; nra). assert (Ec : (INR m + 1) * c' = x' + INR m * y') by (unfold c'; field; lra).
  pose proof (scaled_term x' c' (x / c) ltac:(lra) ltac:(lra) ltac:(auto) ltac:(lra)) as h1.
  pose proof (scaled_term y' c' (y / c) ltac:(lra) ltac:(lra) ltac:(auto) ltac:(lra)) as h2.
  apply Rmult_le_compat_l with (r := INR m) in h2; [|lra]. rewrite <- E in Ec. lra.
Qed.

Lemma sum_at_most M p m t : length M = m -> (forall i, In i M -> p i <= t) -> sum M p <= INR m * t.
Proof. intros <- H. rewrite <- sum_const. now apply sum_le. Qed.

Theorem ahead_tangent V A a m x y p C :
  prob V p -> In a A -> (a < V)%nat -> (1 <= m)%nat -> 0 < y <= x -> certificate V A m p C ->
  exists M, NoDup M /\ length M = m /\ (forall i, In i M -> (i < V)%nat /\ ~ In i A) /\
    ln (x / ((x + INR m * y) / (INR m + 1))) * p a + ln (y / ((x + INR m * y) / (INR m + 1))) * sum M p <= C.
Proof.
  intros Hp Ha HaV Hm Hxy HC. destruct (slopes m x y Hm Hxy) as (_ & HU & HW & E & _).
  destruct (tangent V A a m _ 1 _ p C Hp Ha HaV Hm HU (Rle_refl 1) HW ltac:(lra) HC) as (M & h1 & h2 & h3 & H).
  exists M. rewrite ln_1 in H. repeat split; try apply h3; auto; lra.
Qed.

(** One token against competitors without mass. *)
Lemma against_nothing V A a m p x : prob V p -> In a A -> (a < V)%nat -> (1 <= m)%nat ->
  (forall M, NoDup M -> length M = m -> (forall i, In i M -> (i < V)%nat /\ ~ In i A) -> sum M p <= 0) ->
  certificate V A m p x -> p a * ln (INR m + 1) <= x.
Proof.
  intros Hp Ha HaV Hm HS Hx. assert (Hm1 : 1 <= INR m) by (change 1 with (INR 1); now apply le_INR).
  pose proof (prob_le_1 V p a Hp HaV) as Hpa. apply Rnot_lt_le. intros Hlt.
  set (e := Rmin (/ 2) ((p a * ln (INR m + 1) - x) / 3)). pose proof (Rmin_l (/ 2) ((p a * ln (INR m + 1) - x) / 3)) as He1.
  pose proof (Rmin_r (/ 2) ((p a * ln (INR m + 1) - x) / 3)) as He2. fold e in He1, He2.
  assert (He : 0 < e) by (apply Rmin_glb_lt; lra).
  assert (HU : INR m + 1 - INR m * e = (INR m + 1) * (1 - e) + e) by ring. assert (HU1 : 0 <= (INR m + 1) * (/ 2 - e)) by (apply Rmult_le_pos; lra).
  destruct (tangent V A a m (INR m + 1 - INR m * e) 1 e p x Hp Ha HaV Hm ltac:(lra) (Rle_refl 1) ltac:(lra) ltac:(lra) Hx) as (M & h1 & h2 & h3 & H).
  specialize (HS M h1 h2 h3). rewrite ln_1 in H.
  assert (HM0 : sum M p = 0) by (apply Rle_antisym; [assumption|apply sum_nonneg; intros i Hi; now apply Hp, h3]). rewrite HM0 in H.
  assert (Hln : ln (INR m + 1) - 2 * e <= ln (INR m + 1 - INR m * e)).
  { apply Rle_trans with (ln ((INR m + 1) * (1 - e))); [|apply ln_nondecr; [apply Rmult_lt_0_compat; lra|lra]].
    rewrite ln_mult by lra. enough (ln (/ (1 - e)) <= 2 * e) by (rewrite ln_Rinv in * by lra; lra).
    eapply Rle_trans; [apply ln_le_sub1, Rinv_0_lt_compat; lra|]. apply Rmult_le_reg_r with (1 - e); [lra|].
    rewrite Rmult_minus_distr_r, Rinv_l by lra. assert (0 <= e * (/ 2 - e)) by (apply Rmult_le_pos; lra). lra. }
  apply Rmult_le_compat_r with (r := p a) in Hln; [|lra]. assert (e * p a <= e * 1) by (apply Rmult_le_compat_l; lra). lra.
Qed.

(** The lower bound that M2 to M5 and M7 share: whatever [m] rejected tokens there are, they weigh at most [m b]. *)
Theorem ahead_bound V A a m b g p x :
  prob V p -> In a A -> (a < V)%nat -> 0 <= g -> 0 <= b -> (1 <= m)%nat ->
  (forall M, NoDup M -> length M = m -> (forall i, In i M -> (i < V)%nat /\ ~ In i A) ->
     sum M p <= INR m * b /\ sum M p <= INR m * (p a - g)) ->
  certificate V A m p x -> one_ahead m (g + b) b <= x.
Proof.
  intros Hp Ha HaV Hg Hb0 Hm HS Hx. assert (Hm1 : 1 <= INR m) by (change 1 with (INR 1); now apply le_INR).
  destruct Hb0 as [Hb|<-].
  2:{ pose proof (against_nothing V A a m p x Hp Ha HaV Hm ltac:(intros M k1 k2 k3; destruct (HS M k1 k2 k3); lra) Hx) as H.
      assert (Hga : g <= p a).
      { destruct Hx as [(q & _ & (M & k1 & k2 & k3 & _) & _) _]. destruct (HS M k1 k2 k3) as [_ k4].
        assert (0 <= sum M p) by (apply sum_nonneg; intros i Hi; now apply Hp, k3). apply Rmult_le_reg_l with (INR m); lra. }
      unfold one_ahead. cbv zeta. rewrite !Rplus_0_r, Rmult_0_r, Rmult_0_l, Rmult_0_r, !Rplus_0_r.
      destruct Hg as [h|<-]; [|rewrite Rmult_0_l; now apply (certificate_nonneg V A m p x)].
      replace (g / (g / (INR m + 1))) with (INR m + 1) by (field; lra).
      assert (0 <= ln (INR m + 1)) by (rewrite <- ln_1; apply ln_nondecr; lra).
      assert (g * ln (INR m + 1) <= p a * ln (INR m + 1)) by (apply Rmult_le_compat_r; lra). lra. }
  destruct (ahead_tangent V A a m (g + b) b p x Hp Ha HaV Hm ltac:(lra) Hx) as (M & HM & Hlen & HM' & H).
  destruct (slopes m (g + b) b Hm ltac:(lra)) as (_ & _ & _ & _ & Hu & _ & Huv).
  destruct (HS M HM Hlen HM') as [S1 S2]. eapply Rle_trans; [|exact H]. unfold one_ahead. cbv zeta.
  set (u := ln ((g + b) / _)) in *. set (v := ln (b / _)) in *. set (S := sum M p) in *.
  assert (Hpa : u * (S + INR m * g) <= u * (INR m * p a)) by (apply Rmult_le_compat_l; lra).
  assert (0 <= - (u + INR m * v) * (INR m * b - S)) by (apply Rmult_le_pos; lra).
  apply Rmult_le_reg_l with (INR m); [lra|]. lra.
Qed.

(** ... and it is attained where those tokens are as in [one_ahead], and no other accepted token is above the level. *)
Lemma pool_least V A M PA PM p c :
  prob V p -> disjoint_sets V A M -> M <> nil -> 0 <= c -> pool_of A M p c PA PM ->
  least V A M p (sum (PA ++ PM) (fun i => p i * ln (p i / c))).
Proof.
  intros Hp Hd HM Hc Hpool. rewrite <- (pool_value A M PA PM p c (proj1 Hd) (proj1 (proj2 Hd)) Hpool).
  apply level_projection; auto. exact (pool_level V A M PA PM p c Hd Hpool).
Qed.

Theorem ahead_attained V A M a p x y :
  prob V p -> disjoint_sets V A M -> M <> nil -> top_rejected V A M p -> In a A -> 0 <= y <= x ->
  p a = x -> (forall i, In i M -> p i = y) ->
  (forall b, In b A -> b <> a -> p b <= (x + INR (length M) * y) / (INR (length M) + 1)) ->
  certificate V A (length M) p (one_ahead (length M) x y).
Proof.
  intros Hp Hd HM Htop Ha Hxy Ex Ey Hb. set (m := length M). set (c := (x + INR m * y) / (INR m + 1)).
  assert (Hm : 0 < INR m) by (apply lt_0_INR; unfold m; destruct M; [easy|simpl; lia]).
  assert (Ec : x + INR m * y = (INR m + 1) * c) by (unfold c; field; lra).
  assert (Hc : 0 <= c).
  { unfold c, Rdiv. apply Rmult_le_pos; [nra|]. left. apply Rinv_0_lt_compat. lra. }
  apply top_competitors; auto.
  assert (Es : sum M p = INR m * y) by (rewrite (sum_ext M p (fun _ => y)) by assumption; apply sum_const).
  pose proof (pool_least V A M (single a) M p c Hp Hd HM Hc) as H.
  replace (one_ahead m x y) with (sum (single a ++ M) (fun i => p i * ln (p i / c))).
  - apply H. unfold pool_of. repeat match goal with |- _ /\ _ => split end.
    + repeat constructor. simpl. tauto.
    + apply Hd.
    + intros b [<-|[]]. assumption.
    + intros i Hi. assumption.
    + intros b [<-|[]]. rewrite Ex. nra.
    + intros b hb hb'. apply Hb; [assumption|]. intros ->. apply hb'. now left.
    + intros i Hi. rewrite (Ey i Hi). nra.
    + intros i Hi Hi'. tauto.
    + rewrite sum_app, sum_cons, sum_nil, Es, Ex, app_length, plus_INR. fold m. simpl (INR (length (single a))). lra.
  - rewrite sum_app, sum_cons, sum_nil, Ex, Rplus_0_r. unfold one_ahead. cbv zeta. fold c.
    rewrite (sum_ext M _ (fun _ => y * ln (y / c))) by (intros i Hi; now rewrite (Ey i Hi)). now rewrite sum_const.
Qed.

(** M5, and M5 with the smaller of two bounds is M7. *)
Theorem threshold_bound_m : Statements.M5_candidates.
Proof.
  intros V A a m p g tau x Hp Ha HaV Hg Htau Hm Hj Hx. apply (ahead_bound V A a m tau g p x); auto; [lra|].
  intros M _ Hlen HM. split; apply sum_at_most; auto; intros i Hi; destruct (HM i Hi); now apply Hj.
Qed.

(** M4: [k] tokens are accepted, none less likely than a rejected one. *)
Theorem top_k_bound_m : Statements.M4_candidates.
Proof.
  intros V A a m p g k x Hp HA HA' Ha Hg Hk Hm Hlevel Hgap Hx b.
  assert (Hm1 : 1 <= INR m) by (change 1 with (INR 1); now apply le_INR). pose proof (pos_INR k) as Hk0.
  assert (Eb : (INR m + INR k) * b = 1 - g) by (unfold b; field; lra).
  assert (Hb : 0 <= b) by (apply Rmult_le_reg_l with (INR m + INR k); lra).
  apply (ahead_bound V A a m b g p x); auto; [lra|]. intros M HM Hlen HM'.
  assert (S2 : sum M p <= INR m * (p a - g)).
  { apply sum_at_most; auto. intros i Hi. destruct (HM' i Hi) as [h1 h2]. apply Hgap; [assumption|]. intros ->. tauto. }
  split; [|assumption].
  assert (Hall : sum (A ++ M) p <= 1).
  { rewrite <- (proj2 Hp). apply sum_sub_le; [|apply NoDup_seq| |intros i Hi; now apply Hp, in_vocab].
    - clear - HA HM HM'. induction A as [|z A IH]; [assumption|]. inversion_clear HA as [|? ? h1 h2]. cbn [app]. constructor.
      + rewrite in_app_iff. intros [h|h]; [tauto|]. destruct (HM' z h) as [_ k]. apply k. now left.
      + apply IH; auto. intros i Hi. destruct (HM' i Hi) as [k1 k2]. split; [assumption|]. intros k3. apply k2. now right.
    - intros i Hi. apply in_vocab. apply in_app_iff in Hi. destruct Hi as [Hi|Hi]; [auto|now apply HM']. }
  set (t := sum M p / INR m).
  assert (Et : sum M p = INR m * t) by (unfold t; field; lra).
  assert (Hi : forall i, In i A -> t <= p i).
  { intros i Hi. apply Rmult_le_reg_l with (INR m); [lra|]. rewrite <- Et. apply sum_at_most; auto.
    intros j Hj. destruct (HM' j Hj). now apply Hlevel. }
  assert (HsA : g + INR k * t <= sum A p).
  { apply Rle_trans with (sum A (fun i => t + (if mem (single a) i then g else 0))).
    - rewrite sum_plus, sum_const, sum_indicator, sum_cons, sum_nil, Hk; auto;
        [lra|repeat constructor; simpl; tauto|intros j [<-|[]]; assumption].
    - apply sum_le. intros i HiA. destruct (Nat.eq_dec i a) as [->|h].
      + rewrite mem_in by now left. rewrite Et in S2. assert (t <= p a - g) by (apply Rmult_le_reg_l with (INR m); lra). lra.
      + rewrite mem_out by (intros [h'|[]]; congruence). specialize (Hi i HiA). lra. }
  rewrite sum_app, Et in Hall. rewrite Et. apply Rmult_le_compat_l; [lra|].
  apply Rmult_le_reg_l with (INR m + INR k); [lra|]. rewrite Eb. lra.
Qed.

(** A target all of whose tokens but the first are equal. *)
Theorem flat_attained V k m g : (1 <= m)%nat -> (1 <= k)%nat -> (k + m <= V)%nat -> 0 <= g <= 1 ->
  let b := (1 - g) / INR V in let p := flat_family V g in
  prob V p /\ p 0%nat = g + b /\ (forall j, j <> 0%nat -> p j = b) /\ certificate V (seq 0 k) m p (one_ahead m (g + b) b).
Proof.
  intros Hm Hk HV Hg b p. assert (HVR : 0 < INR V) by (apply lt_0_INR; lia).
  assert (Hm1 : 1 <= INR m) by (change 1 with (INR 1); now apply le_INR).
  assert (Hp : prob V p) by (apply flat_family_prob; [assumption|lia]).
  assert (Hb : 0 <= b) by (unfold b, Rdiv; apply Rmult_le_pos; [lra|left; now apply Rinv_0_lt_compat]).
  assert (Ej : forall j, j <> 0%nat -> p j = b).
  { intros j Hj. unfold p, flat_family. rewrite mem_out by (intros [h|[]]; congruence). unfold b. lra. }
  assert (E0 : p 0%nat = g + b) by (unfold p, flat_family; rewrite mem_in by (now left); unfold b; lra).
  split; [assumption|]. split; [assumption|]. split; [assumption|].
  assert (Hd : disjoint_sets V (seq 0 k) (seq k m)).
  { repeat split; try apply seq_NoDup; [intros i Hi; apply in_seq in Hi; lia|apply in_seq in H; lia|].
    intros h. apply in_seq in H. apply in_seq in h. lia. }
  rewrite <- (seq_length m k) at 1 2. apply (ahead_attained V (seq 0 k) (seq k m) 0 p); auto.
  - destruct m; [lia|discriminate].
  - intros i j Hi _ Hj _. apply in_seq in Hi. rewrite !Ej; [lra|lia|]. intros ->. apply Hj, in_seq. lia.
  - apply in_seq. lia.
  - lra.
  - intros i Hi. apply in_seq in Hi. apply Ej. lia.
  - intros j _ Hj. rewrite Ej, seq_length by assumption. apply Rmult_le_reg_r with (INR m + 1); [lra|].
    unfold Rdiv. rewrite Rmult_assoc, Rinv_l; lra.
Qed.

Theorem top_k_attained_m : Statements.M4_candidates_sharp.
Proof.
  intros m k g Hm Hk Hg b. destruct (flat_attained (k + m) k m g Hm Hk ltac:(lia) Hg) as (h1 & h2 & h3 & h4).
  assert (E : b = (1 - g) / INR (k + m)) by (unfold b; rewrite plus_INR; f_equal; lra).
  exists (flat_family (k + m) g). rewrite E. split; [assumption|]. split; [|assumption].
  intros j Hj. rewrite h2, h3 by assumption. lra.
Qed.

(** M7 is the case of one accepted token. *)
Lemma one_ahead_runner_up m g : 0 <= g <= 1 ->
  let b := (1 - g) / (INR m + 1) in one_ahead m (g + b) b = runner_up_value m g.
Proof.
  intros Hg b. pose proof (pos_INR m). unfold one_ahead, runner_up_value. cbv zeta.
  replace ((g + b + INR m * b) / (INR m + 1)) with (/ (INR m + 1)) by (unfold b; field; lra).
  replace ((g + b) / / (INR m + 1)) with (1 + INR m * g) by (unfold b; field; lra).
  replace (b / / (INR m + 1)) with (1 - g) by (unfold b; field; lra). unfold b. field. lra.
Qed.

Theorem runner_up_bound : Statements.M7_lower_bound.
Proof.
  intros V A a m p x g Hp Ha HaV Hg Hm Hgap Hx. rewrite <- one_ahead_runner_up by assumption. cbv zeta.
  assert (Hm1 : 1 <= INR m) by (change 1 with (INR 1); now apply le_INR).
  set (b := (1 - g) / (INR m + 1)). assert (Eb : (INR m + 1) * b = 1 - g) by (unfold b; field; lra).
  apply (ahead_bound V A a m b g p x); auto; [lra|apply Rmult_le_reg_l with (INR m + 1); lra|]. intros M h1 h2 h3.
  assert (S1 : sum M p <= INR m * (p a - g)) by (apply sum_at_most; auto; intros i Hi; destruct (h3 i Hi); auto).
  assert (S2 : p a + sum M p <= 1).
  { rewrite <- (proj2 Hp), <- sum_cons. apply sum_sub_le; auto using NoDup_seq.
    - constructor; [intros h; now apply (h3 a h)|assumption].
    - intros i [<-|Hi]; apply in_vocab; [assumption|now apply h3].
    - intros i Hi. now apply Hp, in_vocab. }
  split; [|assumption]. apply Rmult_le_reg_l with (INR m + 1); [lra|]. nra.
Qed.

Theorem runner_up_attained m g : (1 <= m)%nat -> 0 <= g <= 1 -> let p := flat_family (m + 1) g in
  prob (m + 1) p /\ p 0%nat = (1 + INR m * g) / (INR m + 1) /\ (forall j, j <> 0%nat -> p j = p 0%nat - g) /\
  certificate (m + 1) [0%nat] m p (runner_up_value m g).
Proof.
  intros Hm Hg p. destruct (flat_attained (m + 1) 1 m g Hm (Nat.le_refl 1) ltac:(lia) ltac:(lra)) as (h1 & h2 & h3 & h4).
  fold p in h1, h2, h3, h4. rewrite <- one_ahead_runner_up by assumption. rewrite plus_INR in *. simpl (INR 1) in *.
  pose proof (pos_INR m). split; [assumption|]. split; [rewrite h2; field; lra|]. split; [|assumption].
  intros j Hj. rewrite h2, h3 by assumption. lra.
Qed.

(** M3, M3p and M5t: no rejected token is above [alpha p_a]. *)
Theorem ratio_bounds_m : Statements.M3_candidates.
Proof.
  intros V A a m p alpha g x Hp Ha HaV Hal Hg Hpa Hm Hj Hx.
  assert (Hm1 : 1 <= INR m) by (change 1 with (INR 1); now apply le_INR).
  assert (H0 : 0 <= one_ahead m 1 alpha) by (apply one_ahead_nonneg; lra).
  assert (H1 : p a * one_ahead m 1 alpha <= x).
  { rewrite <- one_ahead_scale by lra. rewrite Rmult_1_r.
    pose proof (ahead_bound V A a m (p a * alpha) ((1 - alpha) * p a) p x) as H.
    replace ((1 - alpha) * p a + p a * alpha) with (p a) in H by ring. apply H; auto; [nra|nra|].
    intros M _ Hlen HM. split; apply sum_at_most; auto; intros i Hi; destruct (HM i Hi) as [h1 h2];
      destruct (Hj i h1 h2); lra. }
  split; [|assumption]. destruct (Rle_dec (g / (1 - alpha)) (p a)) as [h|h].
  - eapply Rle_trans; [|exact H1]. now apply Rmult_le_compat_r.
  - assert (Hgp : 0 < g / (1 - alpha)) by lra.
    assert (Hg0 : 0 < g).
    { apply Rnot_le_lt. intros k. replace g with 0 in Hgp by lra. unfold Rdiv in Hgp. rewrite Rmult_0_l in Hgp. lra. }
    assert (E : g / (1 - alpha) * alpha = g / (1 - alpha) - g) by (field; lra).
    rewrite <- one_ahead_scale by lra. rewrite Rmult_1_r.
    pose proof (ahead_bound V A a m (g / (1 - alpha) * alpha) g p x) as H.
    replace (g + g / (1 - alpha) * alpha) with (g / (1 - alpha)) in H by lra. apply H; auto; [nra|].
    intros M _ Hlen HM. split; apply sum_at_most; auto; intros i Hi; destruct (HM i Hi) as [h1 h2];
      destruct (Hj i h1 h2); lra.
Qed.

(** M5t: typical acceptance rejects only tokens below [delta p_1]. *)
Theorem typical_bounds_m : Statements.M5t_candidates.
Proof.
  intros V A a m p eps delta g x Hp HaV Hmax Hdel Hg Hm HA Hgap Hx.
  assert (Hpa : 0 < p a).
  { apply Rnot_le_lt. intros h. pose proof (proj2 Hp) as hs. rewrite (sum_ext _ _ (fun _ => 0)), sum_zero in hs; [lra|].
    intros i Hi. apply in_vocab in Hi. pose proof (proj1 Hp i Hi). specialize (Hmax i Hi). lra. }
  assert (Hout : forall j, (j < V)%nat -> ~ In j A -> p j < delta * p a).
  { intros j Hj HjA. apply Rnot_le_lt. intros h. apply HjA, HA. split; [assumption|].
    exact (typical_contains_multiplicative V p (p a) j eps delta Hp Hmax Hpa Hj Hdel h). }
  assert (HaA : In a A).
  { destruct (in_dec Nat.eq_dec a A) as [|h]; [assumption|]. specialize (Hout a HaV h). nra. }
  apply (ratio_bounds_m V A a m p delta g x); auto. intros j Hj HjA. split; [left; auto|].
  apply Hgap; [assumption|]. intros ->. tauto.
Qed.

(** M5 is sharp: dust of at most [tau] takes the rest of the mass. *)
Definition dusted (m n : nat) (g tau : R) (i : nat) : R :=
  if Nat.eq_dec i 0 then g + tau else if le_dec i m then tau else (1 - g - (INR m + 1) * tau) / INR n.

Theorem threshold_attained_m : Statements.M5_candidates_sharp.
Proof.
  intros m n g tau Hm Hn Hg Ht Hle Hge. set (V := (1 + (m + n))%nat). set (p := dusted m n g tau). set (d := (1 - g - (INR m + 1) * tau) / INR n).
  assert (Hm1 : 1 <= INR m) by (change 1 with (INR 1); now apply le_INR).
  assert (Hn1 : 1 <= INR n) by (change 1 with (INR 1); now apply le_INR).
  assert (Ed : INR n * d = 1 - g - (INR m + 1) * tau) by (unfold d; field; lra).
  assert (Hd : 0 <= d <= tau).
  { split; apply Rmult_le_reg_l with (INR n); lra. }
  assert (E0 : p 0%nat = g + tau) by reflexivity.
  assert (Em : forall i, (1 <= i <= m)%nat -> p i = tau).
  { intros i Hi. unfold p, dusted. destruct Nat.eq_dec; [lia|]. destruct le_dec; [reflexivity|lia]. }
  assert (En : forall i, (m < i)%nat -> p i = d).
  { intros i Hi. unfold p, dusted. destruct Nat.eq_dec; [lia|]. destruct le_dec; [lia|reflexivity]. }
  assert (Hsmall : forall j, j <> 0%nat -> 0 <= p j <= tau).
  { intros j Hj. destruct (le_dec j m) as [h|h]; [rewrite Em by lia; lra|rewrite En by lia; lra]. }
  assert (Hp : prob V p).
  { split.
    - intros i _. destruct (Nat.eq_dec i 0) as [->|h]; [rewrite E0; lra|]. now apply Hsmall.
    - unfold V. cbn [seq Nat.add]. rewrite sum_cons, seq_app, sum_app, E0.
      rewrite (sum_ext (seq 1 m) p (fun _ => tau)) by (intros i Hi; apply in_seq in Hi; apply Em; lia).
      rewrite (sum_ext (seq (1 + m) n) p (fun _ => d)) by (intros i Hi; apply in_seq in Hi; apply En; lia).
      rewrite !sum_const, !seq_length. lra. }
  exists p. split; [assumption|]. split; [assumption|]. split; [intros j Hj; now apply Hsmall|]. split; [apply Em; lia|].
  assert (Hdis : disjoint_sets V [0%nat] (seq 1 m)).
  { unfold V. repeat split; [repeat constructor; simpl; tauto|apply seq_NoDup| | |].
    - intros i [<-|[]]. lia.
    - apply in_seq in H. lia.
    - intros [<-|[]]. apply in_seq in H. lia. }
  rewrite <- (seq_length m 1) at 1 2. apply (ahead_attained V [0%nat] (seq 1 m) 0 p); auto.
  - destruct m; [lia|discriminate].
  - intros i j Hi Hj Hj0 _. apply in_seq in Hi. rewrite (Em i) by lia. apply Hsmall. intros ->. apply Hj0. now left.
  - now left.
  - lra.
  - intros i Hi. apply in_seq in Hi. apply Em. lia.
  - intros b [<-|[]] h. congruence.
Qed.

(** M6, from above: a token that is [g] ahead of one of the [m] competitors' least. *)
Theorem M6_upper : Statements.M6_upper_bound.
Proof.
  intros V a m p x b g Hp Ha Hm Hg Hb0 Epa (M & HM & Hlen & HM' & Htop & Hb) Hx.
  assert (Hm1 : 1 <= INR m) by (change 1 with (INR 1); now apply le_INR).
  assert (Hd : disjoint_sets V [a] M).
  { repeat split; auto; [repeat constructor; simpl; tauto|intros i [<-|[]]; assumption|now apply HM'|].
    intros [h|[]]. now apply (HM' i H). }
  assert (HM0 : M <> nil) by (intros ->; simpl in Hlen; lia).
  pose proof (certificate_is_least V [a] M m p x Hp Hd HM0 Hlen Htop Hx) as Hleast.
  destruct (level_exists V [a] M p Hp Hd) as (c & Hc & Hl).
  assert (Ev : x = KL V p (levelled [a] M p c)).
  { rewrite (levelled_value V [a] M p c Hd).
    exact (least_unique V [a] M p _ _ Hleast (level_projection V [a] M p c Hp Hd HM0 (proj1 Hc) Hl)). }
  assert (Hcb : b + g <= (INR m + 1) * c - INR m * b).
  { unfold level_eq in Hl. rewrite sum_cons, sum_nil, Epa in Hl.
    destruct (Rle_dec b c) as [h|h].
    - assert (sum M (fun i => Rmax 0 (c - p i)) <= INR m * (c - b)).
      { rewrite <- Hlen, <- sum_const. apply sum_le. intros i Hi. specialize (Hb i Hi). apply Rmax_lub; lra. }
      pose proof (Rmax_r 0 (b + g - c)). lra.
    - rewrite (sum_ext M _ (fun _ => 0)), sum_zero in Hl.
      + pose proof (Rmax_r 0 (b + g - c)). lra.
      + intros i Hi. specialize (Hb i Hi). apply Rmax_left. lra. }
  set (e := g / (INR m + 1)). assert (Ee : (INR m + 1) * e = g) by (unfold e; field; lra).
  assert (He : 0 < e) by (apply Rdiv_lt_0_compat; lra).
  assert (Hce : b + e <= c) by (apply Rmult_le_reg_l with (INR m + 1); lra).
  rewrite Ev, (levelled_value V [a] M p c Hd). unfold moved. rewrite sum_app.
  assert (H2 : sum (filter (fun i => if Rlt_dec (p i) c then true else false) M) (fun i => p i * ln (p i / c)) <= 0).
  { match goal with |- sum ?l _ <= 0 => rewrite <- (sum_zero l) end. apply sum_le. intros i Hi. apply filter_In in Hi. destruct Hi as [Hi h].
    destruct Rlt_dec as [h'|]; [|discriminate]. destruct (proj1 Hp i (proj1 (HM' i Hi))) as [k|<-]; [|lra].
    assert (ln (p i / c) <= 0); [|nra]. rewrite <- ln_1. apply ln_nondecr; [apply Rdiv_lt_0_compat; lra|].
    apply Rmult_le_reg_r with c; [lra|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l; lra. }
  assert (H1 : sum (filter (fun i => if Rlt_dec c (p i) then true else false) [a]) (fun i => p i * ln (p i / c)) <= g * ln (INR m + 1)).
  { assert (Hln : 0 <= g * ln (INR m + 1)).
    { apply Rmult_le_pos; [lra|]. rewrite <- ln_1. apply ln_nondecr; lra. }
    cbn [filter]. destruct Rlt_dec as [h|h]; [|rewrite sum_nil; assumption]. rewrite sum_cons, sum_nil, Epa, Rplus_0_r.
    (* the log-sum inequality for b + g over b + e *)
    assert (Hs : (b + g) * ln ((b + g) / (b + e)) <= b * ln (b / b) + g * ln (g / e)).
    { destruct Hb0 as [k|k].
      - pose proof (gibbs_term b (b * ((b + g) / (b + e))) ltac:(lra)) as t1.
        pose proof (gibbs_term g (e * ((b + g) / (b + e))) ltac:(lra)) as t2.
        assert (Hr : 0 < (b + g) / (b + e)) by (apply Rdiv_lt_0_compat; lra).
        specialize (t1 ltac:(nra) ltac:(nra)). specialize (t2 ltac:(nra) ltac:(nra)).
        assert (R : b * ((b + g) / (b + e)) + e * ((b + g) / (b + e)) = b + g) by (field; lra).
        set (r := (b + g) / (b + e)) in *.
        replace (b / (b * r)) with (/ r) in t1 by (field; lra). rewrite ln_Rinv in t1 by assumption.
        replace (g / (e * r)) with (g / e / r) in t2 by (field; lra).
        rewrite ln_div in t2 by (try assumption; apply Rdiv_lt_0_compat; lra).
        rewrite div_self_ln. lra.
      - rewrite <- k, !Rplus_0_l, Rmult_0_l. lra. }
    rewrite div_self_ln, Rplus_0_l in Hs. replace (g / e) with (INR m + 1) in Hs by (unfold e; field; lra).
    eapply Rle_trans; [|exact Hs]. apply Rmult_le_compat_l; [lra|]. apply ln_nondecr; [apply Rdiv_lt_0_compat; lra|].
    unfold Rdiv. apply Rmult_le_compat_l; [lra|]. apply Rinv_le_contravar; lra. }
  lra.
Qed.
