(** * M2, M4, M5: lower bounds from the margin for other rules, one candidate. *)

From Coq Require Import Reals List Arith Lra Lia Psatz.
From Draftcert Require Import Definitions Sums LogFacts Projection Competitors ClosedForm StrictGreedy Margins Trees.
Open Scope R_scope.

(** The two-point value lies above each of its tangent planes (it is homogeneous and convex). *)
Lemma two_point_tangent x y u v :
  0 <= y -> 0 <= x -> 0 < v -> 0 < u ->
  x * ln (2 * u / (u + v)) + y * ln (2 * v / (u + v)) <= two_point x y.
Proof.
  intros Hy Hx Hv Hu. destruct (Req_dec (x + y) 0) as [E|E].
  - replace x with 0 by lra. replace y with 0 by lra. unfold two_point. lra.
  - assert (Hc : 0 < x + y) by lra. unfold two_point. set (c := x + y). set (c' := u + v).
    assert (Hc' : 0 < c') by (unfold c'; lra).
    assert (Hgen : forall z w, 0 <= z -> 0 < w -> z - c * (w / c') <= z * ln (2 * z / c) - z * ln (2 * w / c')).
    { intros z w [Hz|<-] Hw.
      - assert (Hw' : 0 < c * (w / c')) by (apply Rmult_lt_0_compat; [assumption|now apply Rdiv_lt_0_compat]).
        pose proof (gibbs_term z (c * (w / c')) ltac:(lra) ltac:(lra) ltac:(auto)) as h.
        replace (z / (c * (w / c'))) with ((2 * z / c) / (2 * w / c')) in h by (field; unfold c; lra).
        rewrite ln_div in h by (apply Rdiv_lt_0_compat; unfold c; lra). lra.
      - assert (0 < c * (w / c')) by (apply Rmult_lt_0_compat; [assumption|now apply Rdiv_lt_0_compat]).
        rewrite !Rmult_0_l. lra. }
    pose proof (Hgen x u Hx Hu) as h1. pose proof (Hgen y v Hy Hv) as h2.
    assert (h3 : c * (u / c') + c * (v / c') = c) by (unfold c'; field; lra).
    unfold c in h3 at 3. lra.
Qed.

Lemma two_point_incr p1 p1' y : 0 < y -> y <= p1 -> p1 <= p1' -> two_point p1 y <= two_point p1' y.
Proof.
  intros Hy H1 H2. pose proof (two_point_tangent p1' y p1 y ltac:(lra) ltac:(lra) Hy ltac:(lra)) as h.
  assert (0 <= ln (2 * p1 / (p1 + y))).
  { rewrite <- ln_1. apply ln_nondecr; [lra|]. apply Rmult_le_reg_r with (p1 + y); [lra|].
    unfold Rdiv. rewrite Rmult_assoc, Rinv_l; lra. }
  unfold two_point at 1. nra.
Qed.

Lemma two_point_zero p1 : 0 <= p1 -> two_point p1 0 = p1 * ln 2.
Proof.
  intros [H|<-]; unfold two_point; [|lra]. rewrite Rplus_0_r, Rmult_0_r.
  replace (2 * p1 / p1) with 2 by (field; lra). lra.
Qed.

(** Both parts of a two-point value may be shrunk, keeping the gap at least [g]. *)
Lemma two_point_gap_floor p1 y g s :
  0 <= y -> 0 <= g -> g <= p1 - y -> g + 2 * y <= s -> 0 < s -> s * phi (g / s) <= two_point p1 y.
Proof.
  intros Hy Hg Hgap Hs Hs0. destruct Hy as [Hy|<-].
  - apply Rle_trans with (two_point (y + g) y); [|apply two_point_incr; lra].
    rewrite two_point_phi by lra. replace (y + g + y) with (g + 2 * y) by ring. replace (y + g - y) with g by ring.
    apply perspective_decr; lra.
  - rewrite two_point_zero by lra. apply Rle_trans with (g * ln 2).
    + pose proof (phi_le_chord (g / s) (ratio_range g s ltac:(lra) Hs0)) as h.
      apply Rmult_le_compat_l with (r := s) in h; [|lra].
      replace (s * (g / s * ln 2)) with (g * ln 2) in h by (field; lra). assumption.
    + pose proof ln2_pos. nra.
Qed.

(** What every rule shares: the accepted argmax [a], the most likely rejected [b]. *)
Lemma rule_two_point V A a p g x :
  prob V p -> NoDup A -> (forall i, In i A -> (i < V)%nat) -> In a A -> 0 <= g ->
  (forall j, (j < V)%nat -> j <> a -> p j <= p a - g) -> certificate V A 1 p x ->
  exists b, (b < V)%nat /\ ~ In b A /\ a <> b /\ (forall j, (j < V)%nat -> ~ In j A -> p j <= p b) /\
            g <= p a - p b /\ two_point (p a) (p b) <= x.
Proof.
  intros Hp HA HA' Ha Hg Hgap Hx.
  destruct (top_rejected_exists V A 1 p x (Nat.le_refl 1) Hx) as (b & Hb & HbA & Htop).
  assert (Hab : a <> b) by (intros ->; tauto). pose proof (Hgap b Hb ltac:(congruence)).
  exists b. repeat match goal with |- _ /\ _ => split end; auto; [lra|].
  apply (two_point_bound V A a b p); auto. lra.
Qed.

(** M5: no rejected token is above [tau]. *)
Theorem threshold_bound V A a p g tau x :
  prob V p -> NoDup A -> (forall i, In i A -> (i < V)%nat) -> In a A -> 0 <= g ->
  (forall j, (j < V)%nat -> j <> a -> p j <= p a - g) ->
  (forall j, (j < V)%nat -> ~ In j A -> p j <= tau) -> 0 < g + 2 * tau ->
  certificate V A 1 p x ->
  let s := Rmin 1 (g + 2 * tau) in s * phi (g / s) <= x.
Proof.
  intros Hp HA HA' Ha Hg Hgap Htau Hpos Hx s.
  destruct (rule_two_point V A a p g x Hp HA HA' Ha Hg Hgap Hx) as (b & Hb & HbA & Hab & _ & Hgb & H).
  eapply Rle_trans; [|exact H]. pose proof (Htau b Hb HbA).
  pose proof (pair_mass_le_1 V a b p Hp (HA' a Ha) Hb Hab) as H1.
  apply two_point_gap_floor; auto; [now apply Hp| |].
  - apply Rmin_glb; lra.
  - apply Rmin_glb_lt; lra.
Qed.

(** M4: exactly [k] tokens are accepted, none less likely than a rejected one. *)
Theorem top_k_bound V A a p g k x :
  prob V p -> NoDup A -> (forall i, In i A -> (i < V)%nat) -> In a A -> 0 <= g <= 1 -> length A = k ->
  (forall i j, In i A -> (j < V)%nat -> ~ In j A -> p j <= p i) ->
  (forall j, (j < V)%nat -> j <> a -> p j <= p a - g) -> certificate V A 1 p x ->
  let s := (2 + (INR k - 1) * g) / (INR k + 1) in s * phi (g / s) <= x.
Proof.
  intros Hp HA HA' Ha Hg Hk Hlevel Hgap Hx s.
  destruct (rule_two_point V A a p g x Hp HA HA' Ha (proj1 Hg) Hgap Hx) as (b & Hb & HbA & Hab & Htop & Hgb & H).
  assert (Hk1 : 1 <= INR k).
  { change 1 with (INR 1). apply le_INR. subst k. destruct A; [easy|simpl; lia]. }
  (* k + 1 tokens of mass at least p b, one of them ahead by g *)
  assert (Hb' : p b <= (1 - g) / (INR k + 1)).
  { assert (Hsum : sum (b :: A) (fun j => p b + (if mem (single a) j then g else 0)) <= 1).
    { rewrite <- (proj2 Hp). apply Rle_trans with (sum (b :: A) p).
      - apply sum_le. intros j Hj. destruct (Nat.eq_dec j a) as [->|h].
        + rewrite mem_in by now left. lra.
        + rewrite mem_out by (intros [h'|[]]; congruence).
          destruct Hj as [<-|Hj]; [lra|]. specialize (Hlevel j b Hj Hb HbA). lra.
      - apply sum_sub_le; [now constructor|apply NoDup_seq| |intros j Hj; now apply Hp, in_vocab].
        intros j [<-|Hj]; apply in_vocab; auto. }
    rewrite sum_plus, sum_const, sum_indicator in Hsum;
      [|repeat constructor; simpl; tauto|now constructor|intros j [<-|[]]; now right].
    cbn [length] in Hsum. rewrite sum_cons, sum_nil, S_INR, Hk in Hsum.
    apply Rmult_le_reg_r with (INR k + 1); [lra|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l; lra. }
  assert (Hs : s = g + 2 * ((1 - g) / (INR k + 1))) by (unfold s; field; lra).
  eapply Rle_trans; [|exact H]. apply two_point_gap_floor; auto; [now apply Hp|tauto|lra|].
  unfold s. apply Rdiv_lt_0_compat; [nra|lra].
Qed.

(** ... attained where all tokens but the first are equal: [k] of [k + 1] accepted. *)
Theorem top_k_attained k g :
  (1 <= k)%nat -> 0 <= g <= 1 ->
  let s := (2 + (INR k - 1) * g) / (INR k + 1) in
  prob (k + 1) (flat_family (k + 1) g) /\
  certificate (k + 1) (seq 0 k) 1 (flat_family (k + 1) g) (s * phi (g / s)).
Proof.
  intros Hk Hg s. assert (Hk1 : 1 <= INR k) by (change 1 with (INR 1); now apply le_INR).
  assert (Hp : prob (k + 1) (flat_family (k + 1) g)) by (apply flat_family_prob; [assumption|lia]).
  split; [assumption|]. set (p := flat_family (k + 1) g) in *.
  assert (Hn : INR (k + 1) = INR k + 1) by now rewrite plus_INR.
  set (u := (1 - g) / (INR k + 1)).
  assert (Hu : 0 <= u) by (apply Rmult_le_pos; [lra|left; apply Rinv_0_lt_compat; lra]).
  assert (H0 : p 0%nat = u + g) by (unfold p, flat_family; rewrite mem_in, Hn by (now left); reflexivity).
  assert (Hj : forall j, j <> 0%nat -> p j = u).
  { intros j h. unfold p, flat_family. rewrite mem_out, Hn by (intros [h'|[]]; congruence). unfold u. lra. }
  assert (HA : disjoint_sets (k + 1) (seq 0 k) (single k)).
  { apply single_disjoint; [apply seq_NoDup| |lia|]; [intros i Hi|intros Hi]; apply in_seq in Hi; lia. }
  assert (Htop : forall j, (j < k + 1)%nat -> ~ In j (seq 0 k) -> p j <= p k).
  { intros j h1 h2. replace j with k; [lra|]. rewrite in_seq in h2. lia. }
  destruct (least_exists (k + 1) (seq 0 k) (single k) p Hp HA) as [x Hx]; [discriminate|].
  assert (Hc : certificate (k + 1) (seq 0 k) 1 p x).
  { change 1%nat with (length (single k)). apply top_competitors; auto. now apply single_top. }
  assert (E : x = two_point (p 0%nat) (p k)).
  { assert (Hi0 : In 0%nat (seq 0 k)) by (apply in_seq; lia).
    assert (Hik : ~ In k (seq 0 k)) by (intros Hi; apply in_seq in Hi; lia).
    assert (Hle : p k <= p 0%nat) by (rewrite H0, Hj by lia; lra).
    apply (two_point_equality (k + 1) (seq 0 k) 0 k p x Hp (proj1 HA) (proj1 (proj2 (proj2 HA))) Hi0 ltac:(lia) Hik Htop Hle Hc).
    intros i _ Hi. rewrite H0, !Hj by lia. lra. }
  rewrite E, H0, (Hj k) in Hc by lia. rewrite two_point_phi in Hc by lra.
  replace (u + g + u) with s in Hc by (unfold s, u; field; lra). now replace (u + g - u) with g in Hc by ring.
Qed.

(** M2: additive(t).  [b2] is the runner-up, at gap [g]; where [g <= t] it is accepted. *)
Theorem additive_bounds V A a p t g x :
  prob V p -> NoDup A -> (a < V)%nat -> (forall i, In i A <-> (i < V)%nat /\ p a - t <= p i) ->
  0 <= g -> 0 <= t <= 1 -> (forall j, (j < V)%nat -> j <> a -> p j <= p a - g) -> certificate V A 1 p x ->
  phi t <= x /\ phi g <= x.
Proof.
  intros Hp HnA Ha HA Hg Ht Hgap Hx.
  assert (HaA : In a A) by (apply HA; split; [assumption|lra]).
  assert (HA' : forall i, In i A -> (i < V)%nat) by (intros i Hi; now apply HA).
  destruct (rule_two_point V A a p g x Hp HnA HA' HaA Hg Hgap Hx) as (b & Hb & HbA & Hab & _ & Hgb & H).
  assert (Hbt : t <= p a - p b).
  { apply Rnot_lt_le. intros h. apply HbA, HA. split; [assumption|lra]. }
  pose proof (pair_mass_le_1 V a b p Hp Ha Hb Hab) as H1. pose proof (proj1 Hp b Hb) as Hpb.
  assert (Hphi : phi (p a - p b) <= x) by (eapply Rle_trans; [apply two_point_ge_phi; lra|exact H]).
  split; (eapply Rle_trans; [|exact Hphi]); apply phi_nondecr; lra.
Qed.

Theorem additive_margin_bounds V A a b2 p t g x :
  prob V p -> NoDup A -> (a < V)%nat -> (forall i, In i A <-> (i < V)%nat /\ p a - t <= p i) ->
  (b2 < V)%nat -> b2 <> a -> p b2 = p a - g -> 0 <= g <= t -> 2 * t - 1 < g ->
  certificate V A 1 p x ->
  let u := (1 + g + t) / 3 in let s := 2 * u - t in
  s * phi (t / s) <= x /\
  (g <= t / 2 -> ln 3 + (u * ln u + (u - g) * ln (u - g) + (u - t) * ln (u - t)) <= x).
Proof.
  intros Hp HnA Ha HA Hb2 Hb2a Hg2 Hgt Hpos Hx u s.
  assert (HaA : In a A) by (apply HA; split; [assumption|lra]).
  assert (Hb2A : In b2 A) by (apply HA; split; [assumption|lra]).
  assert (HA' : forall i, In i A -> (i < V)%nat) by (intros i Hi; now apply HA).
  destruct (top_rejected_exists V A 1 p x (Nat.le_refl 1) Hx) as (b & Hb & HbA & Htop).
  assert (Hab : a <> b) by (intros ->; tauto). assert (Hb2b : b2 <> b) by (intros ->; tauto).
  assert (Hbt : p b <= p a - t).
  { left. apply Rnot_le_lt. intros h. now apply HbA, HA. }
  pose proof (proj1 Hp b Hb) as Hpb.
  assert (Hmass : p a + p b2 + p b <= 1).
  { rewrite <- (proj2 Hp). assert (h : sum (a :: b2 :: b :: nil) p <= sum (seq 0 V) p).
    { apply sum_sub_le; [repeat constructor; simpl; intuition congruence|apply NoDup_seq| |intros j Hj; now apply Hp, in_vocab].
      intros j [<-|[<-|[<-|[]]]]; now apply in_vocab. }
    rewrite !sum_cons, sum_nil in h. lra. }
  assert (Hut : 0 < u - t) by (unfold u; lra).
  split.
  - apply Rle_trans with (two_point (p a) (p b)); [|apply (two_point_bound V A a b p); auto; lra].
    replace (s * phi (t / s)) with (two_point u (u - t)).
    2:{ rewrite two_point_phi by lra. replace (u + (u - t)) with s by (unfold s; ring). now replace (u - (u - t)) with t by ring. }
    eapply Rle_trans; [|apply (two_point_tangent (p a) (p b) u (u - t)); lra]. unfold two_point.
    set (L1 := ln (2 * u / (u + (u - t)))). set (L3 := ln (2 * (u - t) / (u + (u - t)))).
    assert (Hs : 0 < u + (u - t)) by lra.
    assert (HL1 : 0 <= L1).
    { unfold L1. rewrite <- ln_1. apply ln_nondecr; [lra|]. apply Rmult_le_reg_r with (u + (u - t)); [lra|].
      unfold Rdiv. rewrite Rmult_assoc, Rinv_l; lra. }
    assert (HL3 : L3 <= 0).
    { unfold L3. rewrite <- ln_1. apply ln_nondecr; [apply Rdiv_lt_0_compat; lra|]. apply Rmult_le_reg_r with (u + (u - t)); [lra|].
      unfold Rdiv. rewrite Rmult_assoc, Rinv_l; lra. }
    assert (HL : L1 + L3 <= 0).
    { pose proof (ln_le_sub1 (2 * u / (u + (u - t))) ltac:(apply Rdiv_lt_0_compat; lra)) as h1.
      pose proof (ln_le_sub1 (2 * (u - t) / (u + (u - t))) ltac:(apply Rdiv_lt_0_compat; lra)) as h2.
      fold L1 in h1. fold L3 in h2.
      assert (2 * u / (u + (u - t)) + 2 * (u - t) / (u + (u - t)) = 2) by (field; lra). lra. }
    assert (E : 3 * u = 1 + g + t) by (unfold u; lra).
    destruct (Rle_dec u (p a)) as [h|h].
    + assert (L3 * (1 + g - 2 * p a) <= L3 * p b) by nra.
      assert (0 <= (L1 - 2 * L3) * (p a - u)) by (apply Rmult_le_pos; lra). nra.
    + assert (L3 * (p a - t) <= L3 * p b) by nra.
      assert (0 <= - (L1 + L3) * (u - p a)) by (apply Rmult_le_pos; lra). nra.
  - intros Hg2t.
    apply (certificate_is_least V A (single b)) in Hx; auto using single_disjoint, single_top; [|discriminate].
    destruct Hx as [(q & Hq & Hbeats & Hf & <-) _].
    set (L1 := ln (3 * u)). set (L2 := ln (3 * (u - g))). set (L3 := ln (3 * (u - t))).
    assert (Eu : 3 * u = 1 + g + t) by (unfold u; lra).
    set (f := fun i => (if mem (single a) i then L1 else 0) + (if mem (single b2) i then L2 else 0) + (if mem (single b) i then L3 else 0)).
    assert (Hset : forall r l1 l2 l3, sum (seq 0 V) (fun i => r i * ((if mem (single a) i then l1 else 0)
        + (if mem (single b2) i then l2 else 0) + (if mem (single b) i then l3 else 0))) = r a * l1 + r b2 * l2 + r b * l3).
    { intros r l1 l2 l3. rewrite (sum_ext _ _ (fun i => (if mem (single a) i then r i * l1 else 0)
        + (if mem (single b2) i then r i * l2 else 0) + (if mem (single b) i then r i * l3 else 0))).
      - rewrite !sum_plus, !sum_indicator, !sum_cons, !sum_nil; try apply NoDup_seq;
          try (repeat constructor; simpl; tauto); try (intros i [<-|[]]; now apply in_vocab). lra.
      - intros i _. destruct (mem (single a) i), (mem (single b2) i), (mem (single b) i); lra. }
    pose proof (donsker_varadhan V p q f Hp Hq Hf) as H. pose proof (tilted_mass_pos V q f Hq) as HZ.
    assert (HZ' : sum (seq 0 V) (fun i => q i * exp (f i)) =
                  1 + (q a * (g + t) + q b2 * (t - 2 * g) + q b * (g - 2 * t))).
    { rewrite (sum_ext _ _ (fun i => q i + q i * ((if mem (single a) i then g + t else 0)
        + (if mem (single b2) i then t - 2 * g else 0) + (if mem (single b) i then g - 2 * t else 0)))).
      - rewrite sum_plus, Hset, (proj2 Hq). reflexivity.
      - assert (E1 : exp L1 = 1 + (g + t)) by (unfold L1; rewrite exp_ln; lra).
        assert (E2 : exp L2 = 1 + (t - 2 * g)) by (unfold L2; rewrite exp_ln; lra).
        assert (E3 : exp L3 = 1 + (g - 2 * t)) by (unfold L3; rewrite exp_ln; lra).
        intros i _. unfold f. destruct (mem (single a) i) eqn:M1, (mem (single b2) i) eqn:M2, (mem (single b) i) eqn:M3;
          rewrite ?mem_true in M1; rewrite ?mem_true in M2; rewrite ?mem_true in M3;
          try (destruct M1 as [<-|[]]); try (destruct M2 as [<-|[]]); try (destruct M3 as [<-|[]]); try congruence;
          rewrite ?Rplus_0_r, ?Rplus_0_l, ?E1, ?E2, ?E3, ?exp_0; lra. }
    pose proof (Hbeats b a ltac:(now left) HaA) as hb1. pose proof (Hbeats b b2 ltac:(now left) Hb2A) as hb2.
    assert (HlnZ : ln (sum (seq 0 V) (fun i => q i * exp (f i))) <= 0).
    { rewrite <- ln_1. apply ln_nondecr; [assumption|]. rewrite HZ'.
      assert (q a * (g + t) <= q b * (g + t)) by (apply Rmult_le_compat_r; lra).
      assert (q b2 * (t - 2 * g) <= q b * (t - 2 * g)) by (apply Rmult_le_compat_r; lra). lra. }
    unfold f at 1 in H. rewrite Hset in H.
    apply Rle_trans with (p a * L1 + p b2 * L2 + p b * L3); [|lra].
    pose proof (ln_le_sub1 (3 * u) ltac:(lra)) as k1. pose proof (ln_le_sub1 (3 * (u - g)) ltac:(lra)) as k2.
    pose proof (ln_le_sub1 (3 * (u - t)) ltac:(lra)) as k3. fold L1 in k1. fold L2 in k2. fold L3 in k3.
    assert (HL1 : 0 <= L1) by (unfold L1; rewrite <- ln_1; apply ln_nondecr; lra).
    assert (HL2 : 0 <= L2) by (unfold L2; rewrite <- ln_1; apply ln_nondecr; lra).
    assert (HL3 : L3 <= 0) by lra.
    assert (Hval : ln 3 + (u * ln u + (u - g) * ln (u - g) + (u - t) * ln (u - t)) = u * L1 + (u - g) * L2 + (u - t) * L3).
    { unfold L1, L2, L3. rewrite !ln_mult by lra.
      assert (ln 3 = (u + (u - g) + (u - t)) * ln 3) by (replace (u + (u - g) + (u - t)) with 1 by lra; ring). lra. }
    rewrite Hval, Hg2.
    destruct (Rle_dec u (p a)) as [h|h].
    + assert (L3 * (1 - p a - (p a - g)) <= L3 * p b) by nra.
      assert (0 <= (L1 + L2 - 2 * L3) * (p a - u)) by (apply Rmult_le_pos; lra). nra.
    + assert (L3 * (p a - t) <= L3 * p b) by nra.
      assert (0 <= - (L1 + L2 + L3) * (u - p a)) by (apply Rmult_le_pos; lra). nra.
Qed.

(** M3 is sharp below [g0]: targets whose runner-up is just under the threshold, the
    rest of the mass being spread thinly, come as close to the chord as wanted. *)
Definition chord_family (N : nat) (s g : R) (i : nat) : R :=
  (1 - s) / INR N + tilt 0 1 ((s + g) / 2 - (1 - s) / INR N) ((s - g) / 2 - (1 - s) / INR N) i.

Lemma chord_family_values N s g :
  chord_family N s g 0 = (s + g) / 2 /\ chord_family N s g 1 = (s - g) / 2 /\
  forall j, j <> 0%nat -> j <> 1%nat -> chord_family N s g j = (1 - s) / INR N.
Proof.
  unfold chord_family, tilt. split; [|split].
  - rewrite (mem_in (single 0%nat)), (mem_out (single 1%nat)); [lra|intros [h|[]]; discriminate|now left].
  - rewrite (mem_out (single 0%nat)), (mem_in (single 1%nat)); [lra|now left|intros [h|[]]; discriminate].
  - intros j h0 h1. rewrite !mem_out; [lra| |]; intros [h|[]]; congruence.
Qed.

Theorem multiplicative_sharp alpha g e :
  0 < alpha < 1 -> 0 < g < g0 alpha -> 0 < e ->
  exists V p, prob V p /\ (2 <= V)%nat /\ p 1%nat = p 0%nat - g /\
    (forall j, (j < V)%nat -> j <> 0%nat -> p j <= p 1%nat) /\
    (forall i, In i (single 0%nat) <-> (i < V)%nat /\ alpha * p 0%nat <= p i) /\
    exists x, certificate V (single 0%nat) 1 p x /\ x < g / g0 alpha * phi (g0 alpha) + e.
Proof.
  intros Hal Hg He. set (h := g0 alpha) in *.
  assert (Hh : 0 < h < 1).
  { unfold h, g0. split; [apply Rdiv_lt_0_compat; lra|]. apply Rmult_lt_reg_r with (1 + alpha); [lra|].
    unfold Rdiv. rewrite Rmult_assoc, Rinv_l; lra. }
  pose proof ln2_pos as Hln2.
  (* a ratio r a little above h *)
  set (d := Rmin ((1 - h) / 2) (e * (1 - h) / (2 * ln 2))). set (r := h + d).
  assert (Hd : 0 < d).
  { apply Rmin_glb_lt; [lra|]. apply Rdiv_lt_0_compat; nra. }
  assert (Hd1 : d <= (1 - h) / 2) by apply Rmin_l.
  assert (Hd2 : d / (1 - h) * ln 2 <= e / 2).
  { apply Rle_trans with (e * (1 - h) / (2 * ln 2) / (1 - h) * ln 2); [|right; field; lra].
    apply Rmult_le_compat_r; [lra|]. apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat; lra|]. apply Rmin_r. }
  assert (Hr : h < r < 1) by (unfold r; lra).
  set (s := g / r).
  assert (Hs : g < s < 1).
  { unfold s. split; apply Rmult_lt_reg_r with r; try lra; unfold Rdiv; rewrite Rmult_assoc, Rinv_l; nra. }
  assert (Hgs : g = s * r) by (unfold s; field; lra).
  set (p1 := (s + g) / 2). set (p2 := (s - g) / 2).
  assert (Hp2 : 0 < p2) by (unfold p2; lra).
  assert (Hp12 : p2 < alpha * p1).
  { assert (E : h * (1 + alpha) = 1 - alpha) by (unfold h, g0; field; lra).
    assert (s * h < g) by (rewrite Hgs; nra). unfold p1, p2. nra. }
  assert (HN0 : 0 < p2 / (1 - s)) by (apply Rdiv_lt_0_compat; lra).
  destruct (archimed_cor1 _ HN0) as (N & HN & HNpos).
  assert (HNR : 0 < INR N) by now apply lt_0_INR.
  assert (Hy : 0 <= (1 - s) / INR N <= p2).
  { split; [apply Rmult_le_pos; [lra|left; now apply Rinv_0_lt_compat]|].
    apply Rle_trans with ((1 - s) * (p2 / (1 - s))); [|right; field; lra].
    apply Rmult_le_compat_l; lra. }
  destruct (chord_family_values N s g) as (E0 & E1 & Ej). fold p1 in E0. fold p2 in E1.
  set (p := chord_family N s g) in *. set (V := (N + 2)%nat).
  assert (Hle : forall j, j <> 0%nat -> p j <= p2).
  { intros j Hj. destruct (Nat.eq_dec j 1) as [->|h1]; [lra|]. rewrite Ej by assumption. lra. }
  assert (Hp : prob V p).
  { split.
    - intros i _. destruct (Nat.eq_dec i 0) as [->|h0]; [rewrite E0; unfold p1; lra|].
      destruct (Nat.eq_dec i 1) as [->|h1]; [lra|]. rewrite Ej by assumption. lra.
    - unfold p, chord_family. rewrite sum_plus, sum_const, seq_length.
      rewrite (sum_ext _ (fun i => tilt 0 1 _ _ i) (fun i => 1 * tilt 0 1 ((s + g) / 2 - (1 - s) / INR N) ((s - g) / 2 - (1 - s) / INR N) i)) by (intros; lra).
      rewrite (sum_tilt V 0 1 _ _ (fun _ => 1)) by (unfold V; lia). unfold V. rewrite plus_INR.
      replace (INR 2) with 2 by (simpl; lra). field. lra. }
  exists V, p. split; [assumption|]. split; [unfold V; lia|].
  split; [rewrite E0, E1; unfold p1, p2; lra|]. split; [intros j _ Hj; rewrite E1; auto|]. split.
  - intros i. split.
    + intros [<-|[]]. split; [unfold V; lia|]. rewrite E0. unfold p1 in *. nra.
    + intros [_ Hi]. destruct (Nat.eq_dec i 0) as [->|hi]; [now left|]. specialize (Hle i hi). rewrite E0 in Hi. lra.
  - exists (two_point (p 0%nat) (p 1%nat)). split.
    + apply strict_greedy; auto; try (unfold V; lia); [rewrite E0, E1; unfold p1, p2; lra|].
      intros j _ Hj. rewrite E1. auto.
    + rewrite E0, E1, two_point_phi by (unfold p1, p2; lra).
      replace (p1 + p2) with s by (unfold p1, p2; lra). replace (p1 - p2) with g by (unfold p1, p2; lra).
      replace (g / s) with r by (unfold s; field; lra).
      (* phi lies under its chord from h to 1 *)
      set (t := (1 - r) / (1 - h)).
      assert (Et : 1 - t = d / (1 - h)) by (unfold t, r; field; lra).
      assert (Ht : 0 <= t <= 1).
      { assert (0 < d / (1 - h)) by (apply Rdiv_lt_0_compat; lra).
        assert (0 < t) by (apply Rdiv_lt_0_compat; lra). lra. }
      pose proof (phi_convex h 1 t ltac:(lra) ltac:(lra) Ht) as Hc.
      replace (t * h + (1 - t) * 1) with r in Hc by (unfold t; field; lra).
      rewrite phi_1, Et in Hc. pose proof (phi_nonneg h ltac:(lra)) as Hph.
      pose proof (phi_nonneg r ltac:(lra)) as Hpr.
      assert (Hsh : s <= g / h).
      { unfold s, Rdiv. apply Rmult_le_compat_l; [lra|]. apply Rinv_le_contravar; lra. }
      assert (Hgh : 0 < g / h < 1).
      { split; [apply Rdiv_lt_0_compat; lra|]. apply Rmult_lt_reg_r with h; [lra|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l; lra. }
      assert (phi r <= phi h + e / 2) by nra. nra.
Qed.
