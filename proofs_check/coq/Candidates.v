(** * M2 to M7 for [m] candidates: bounds by one token ahead of [m] equal competitors. *)

From Coq Require Import Reals List Arith Lra Lia Psatz.
From Draftcert Require Import Definitions Sums LogFacts Projection Competitors ClosedForm StrictGreedy Margins Trees Orders.
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

(** The slopes of [one_ahead]: it is [u x + m v y], and lies above each of its tangents. *)
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

Theorem ahead_tangent V A a m x y p C :
  prob V p -> In a A -> (a < V)%nat -> (1 <= m)%nat -> 0 < y <= x -> certificate V A m p C ->
  exists M, NoDup M /\ length M = m /\ (forall i, In i M -> (i < V)%nat /\ ~ In i A) /\
    ln (x / ((x + INR m * y) / (INR m + 1))) * p a + ln (y / ((x + INR m * y) / (INR m + 1))) * sum M p <= C.
Proof.
  intros Hp Ha HaV Hm Hxy [(q & Hq & (M & HM & Hlen & HM' & Hbeats) & Hf & <-) _].
  exists M. split; [assumption|]. split; [assumption|]. split; [assumption|].
  assert (HaM : ~ In a M) by (intros h; now apply (HM' a h)).
  destruct (slopes m x y Hm Hxy) as (Hc & HU1 & HW & EUW & Hu & Hv & Huv).
  set (c := (x + INR m * y) / (INR m + 1)) in *. set (U := x / c) in *. set (W := y / c) in *.
  set (u := ln U) in *. set (v := ln W) in *.
  assert (Eu : exp u = U) by (apply exp_ln; lra). assert (Ev : exp v = W) by (apply exp_ln; lra).
  set (f := fun i => (if mem (single a) i then u else 0) + (if mem M i then v else 0)).
  pose proof (donsker_varadhan V p q f Hp Hq Hf) as H. pose proof (tilted_mass_pos V q f Hq) as HZ.
  assert (Hset : forall u v r, sum (seq 0 V) (fun i => r i * ((if mem (single a) i then u else 0) + (if mem M i then v else 0)))
                 = u * r a + v * sum M r).
  { intros u0 v0 r. rewrite sum_set_tilt; auto.
    - rewrite sum_cons, sum_nil. lra.
    - repeat constructor; simpl; tauto.
    - intros i [<-|[]]. now apply in_vocab.
    - intros i Hi. now apply in_vocab, HM'. }
  unfold f at 1 in H. rewrite Hset in H.
  assert (HZ' : sum (seq 0 V) (fun i => q i * exp (f i)) = 1 + (U - 1) * q a + (W - 1) * sum M q).
  { rewrite (sum_ext _ _ (fun i => q i + q i * ((if mem (single a) i then U - 1 else 0) + (if mem M i then W - 1 else 0)))).
    - rewrite sum_plus, Hset, (proj2 Hq). lra.
    - intros i _. unfold f. destruct (mem (single a) i) eqn:E1, (mem M i) eqn:E2.
      + apply mem_true in E1. apply mem_true in E2. destruct E1 as [<-|[]]. tauto.
      + rewrite Rplus_0_r, Eu. lra.
      + rewrite Rplus_0_l, Ev. lra.
      + rewrite Rplus_0_r, exp_0. lra. }
  assert (HMq : INR m * q a <= sum M q).
  { rewrite <- Hlen, <- sum_const. apply sum_le. intros i Hi. now apply Hbeats. }
  assert (HlnZ : ln (sum (seq 0 V) (fun i => q i * exp (f i))) <= 0).
  { rewrite <- ln_1. apply ln_nondecr; [assumption|]. rewrite HZ'.
    assert ((W - 1) * sum M q <= (W - 1) * (INR m * q a)) by nra. nra. }
  lra.
Qed.

(** The lower bound that M2 to M5 and M7 share: whatever [m] rejected tokens there are, they weigh at most [m b]. *)
Theorem ahead_bound V A a m b g p x :
  prob V p -> In a A -> (a < V)%nat -> 0 <= g -> 0 < b -> (1 <= m)%nat ->
  (forall M, NoDup M -> length M = m -> (forall i, In i M -> (i < V)%nat /\ ~ In i A) ->
     sum M p <= INR m * b /\ sum M p <= INR m * (p a - g)) ->
  certificate V A m p x -> one_ahead m (g + b) b <= x.
Proof.
  intros Hp Ha HaV Hg Hb Hm HS Hx. assert (Hm1 : 1 <= INR m) by (change 1 with (INR 1); now apply le_INR).
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

Lemma sum_at_most M p m t : length M = m -> (forall i, In i M -> p i <= t) -> sum M p <= INR m * t.
Proof. intros <- H. rewrite <- sum_const. now apply sum_le. Qed.

(** M5, and M5 with the smaller of two bounds is M7. *)
Theorem threshold_bound_m V A a m p g tau x :
  prob V p -> In a A -> (a < V)%nat -> 0 <= g -> 0 < tau -> (1 <= m)%nat ->
  (forall j, (j < V)%nat -> ~ In j A -> p j <= tau /\ p j <= p a - g) -> certificate V A m p x ->
  one_ahead m (g + tau) tau <= x.
Proof.
  intros Hp Ha HaV Hg Htau Hm Hj Hx. apply (ahead_bound V A a m tau g p x); auto.
  intros M _ Hlen HM. split; apply sum_at_most; auto; intros i Hi; destruct (HM i Hi); now apply Hj.
Qed.

(** M4: [k] tokens are accepted, none less likely than a rejected one. *)
Theorem top_k_bound_m V A a m p g k x :
  prob V p -> NoDup A -> (forall i, In i A -> (i < V)%nat) -> In a A -> 0 <= g < 1 -> length A = k -> (1 <= m)%nat ->
  (forall i j, In i A -> (j < V)%nat -> ~ In j A -> p j <= p i) ->
  (forall j, (j < V)%nat -> j <> a -> p j <= p a - g) -> certificate V A m p x ->
  let b := (1 - g) / (INR m + INR k) in one_ahead m (g + b) b <= x.
Proof.
  intros Hp HA HA' Ha Hg Hk Hm Hlevel Hgap Hx b.
  assert (Hm1 : 1 <= INR m) by (change 1 with (INR 1); now apply le_INR). pose proof (pos_INR k) as Hk0.
  assert (Hb : 0 < b) by (apply Rdiv_lt_0_compat; lra).
  assert (Eb : (INR m + INR k) * b = 1 - g) by (unfold b; field; lra).
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

Theorem top_k_attained_m m k g : (1 <= m)%nat -> (1 <= k)%nat -> 0 <= g <= 1 ->
  let b := (1 - g) / (INR m + INR k) in
  exists p, prob (k + m) p /\ (forall j, j <> 0%nat -> p j = p 0%nat - g) /\
  certificate (k + m) (seq 0 k) m p (one_ahead m (g + b) b).
Proof.
  intros Hm Hk Hg b. set (p := flat_family (k + m) g).
  assert (Hm1 : 1 <= INR m) by (change 1 with (INR 1); now apply le_INR).
  assert (Hk1 : 1 <= INR k) by (change 1 with (INR 1); now apply le_INR).
  assert (Hp : prob (k + m) p) by (apply flat_family_prob; [lra|lia]).
  assert (Hb : 0 <= b) by (unfold b, Rdiv; apply Rmult_le_pos; [lra|left; apply Rinv_0_lt_compat; lra]).
  assert (Ej : forall j, j <> 0%nat -> p j = b).
  { intros j Hj. unfold p, flat_family. rewrite mem_out, plus_INR by (intros [h|[]]; congruence). unfold b. field. lra. }
  assert (E0 : p 0%nat = g + b).
  { unfold p, flat_family. rewrite mem_in, plus_INR by now left. unfold b. field. lra. }
  exists p. split; [assumption|]. split; [intros j Hj; rewrite Ej, E0 by assumption; lra|].
  assert (Hd : disjoint_sets (k + m) (seq 0 k) (seq k m)).
  { repeat split; try apply seq_NoDup.
    - intros i Hi. apply in_seq in Hi. lia.
    - apply in_seq in H. lia.
    - intros h. apply in_seq in H. apply in_seq in h. lia. }
  rewrite <- (seq_length m k) at 2 3. apply (ahead_attained (k + m) (seq 0 k) (seq k m) 0 p); auto.
  - destruct m; [lia|discriminate].
  - intros i j _ Hj HjA HjM. exfalso. apply HjM, in_seq. rewrite in_seq in HjA. lia.
  - apply in_seq. lia.
  - lra.
  - intros i Hi. apply in_seq in Hi. apply Ej. lia.
  - intros j _ Hj. rewrite Ej, seq_length by assumption. apply Rmult_le_reg_r with (INR m + 1); [lra|].
    unfold Rdiv. rewrite Rmult_assoc, Rinv_l; lra.
Qed.

(** M3, M3p and M5t: no rejected token is above [alpha p_a]. *)
Theorem ratio_bounds_m V A a m p alpha g x :
  prob V p -> In a A -> (a < V)%nat -> 0 < alpha < 1 -> 0 <= g -> 0 < p a -> (1 <= m)%nat ->
  (forall j, (j < V)%nat -> ~ In j A -> p j <= alpha * p a /\ p j <= p a - g) -> certificate V A m p x ->
  g / (1 - alpha) * one_ahead m 1 alpha <= x /\ p a * one_ahead m 1 alpha <= x.
Proof.
  intros Hp Ha HaV Hal Hg Hpa Hm Hj Hx.
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
Theorem typical_bounds_m V A a m p eps delta g x :
  prob V p -> (a < V)%nat -> (forall j, (j < V)%nat -> p j <= p a) -> 0 < delta < 1 -> 0 <= g -> (1 <= m)%nat ->
  (forall i, In i A <-> (i < V)%nat /\ Rmin eps (delta * exp (sum (seq 0 V) (fun j => p j * ln (p j)))) < p i) ->
  (forall j, (j < V)%nat -> j <> a -> p j <= p a - g) -> certificate V A m p x ->
  g / (1 - delta) * one_ahead m 1 delta <= x /\ p a * one_ahead m 1 delta <= x.
Proof.
  intros Hp HaV Hmax Hdel Hg Hm HA Hgap Hx.
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

Theorem threshold_attained_m m n g tau : (1 <= m)%nat -> (1 <= n)%nat -> 0 <= g -> 0 < tau ->
  g + (INR m + 1) * tau <= 1 -> 1 <= g + (INR m + 1 + INR n) * tau ->
  let V := (1 + (m + n))%nat in
  exists p, prob V p /\ p 0%nat = g + tau /\ (forall j, j <> 0%nat -> p j <= tau) /\ p 1%nat = tau /\
  certificate V [0%nat] m p (one_ahead m (g + tau) tau).
Proof.
  intros Hm Hn Hg Ht Hle Hge V. set (p := dusted m n g tau). set (d := (1 - g - (INR m + 1) * tau) / INR n).
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
Theorem M6_upper V a m p x b g :
  prob V p -> (a < V)%nat -> (1 <= m)%nat -> 0 < g -> 0 <= b -> p a = b + g ->
  (exists M, NoDup M /\ length M = m /\ (forall i, In i M -> (i < V)%nat /\ i <> a) /\ top_rejected V [a] M p /\
     forall i, In i M -> b <= p i) ->
  certificate V [a] m p x -> x <= g * ln (INR m + 1).
Proof.
  intros Hp Ha Hm Hg Hb0 Epa (M & HM & Hlen & HM' & Htop & Hb) Hx.
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
