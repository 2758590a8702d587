(** * M2 for [m] candidates; which bounds are sharp; the supremum of M6. *)

From Coq Require Import Reals List Arith Lra Lia Psatz.
From Draftcert Require Import Definitions Sums LogFacts Projection Competitors ClosedForm StrictGreedy Margins Trees Candidates.
Import ListNotations.
Open Scope R_scope.

(** ** M2: the runner-up [b2] is accepted, at gap [g] *)

Lemma two_and_rejected V A a b2 M p :
  prob V p -> In a A -> In b2 A -> a <> b2 -> (a < V)%nat -> (b2 < V)%nat -> NoDup M ->
  (forall i, In i M -> (i < V)%nat /\ ~ In i A) -> p a + p b2 + sum M p <= 1.
Proof.
  intros Hp Ha Hb Hab HaV HbV HM HM'. rewrite <- (proj2 Hp).
  apply Rle_trans with (sum (a :: b2 :: M) p); [rewrite !sum_cons; lra|].
  apply sum_sub_le; [|apply NoDup_seq| |intros j Hj; now apply Hp, in_vocab].
  - constructor; [intros [h|h]; [congruence|now apply (HM' a h)]|]. constructor; [intros h; now apply (HM' b2 h)|assumption].
  - intros j [<-|[<-|Hj]]; apply in_vocab; auto. now apply HM'.
Qed.

Theorem additive_margin_bounds_m V A a b2 m p t g x :
  prob V p -> (a < V)%nat -> (forall i, In i A <-> (i < V)%nat /\ p a - t <= p i) ->
  (b2 < V)%nat -> b2 <> a -> p b2 = p a - g -> 0 <= g <= t -> 2 * t - 1 < g -> (1 <= m)%nat -> certificate V A m p x ->
  let n := INR m + 2 in let u := (1 + g + INR m * t) / n in
  one_ahead m u (u - t) <= x /\
  (g <= INR m * t / (INR m + 1) ->
   u * ln (n * u) + (u - g) * ln (n * (u - g)) + INR m * ((u - t) * ln (n * (u - t))) <= x).
Proof.
  intros Hp HaV HA HbV Hba Epb Hgt Hpos Hm Hx n u.
  assert (Hm1 : 1 <= INR m) by (change 1 with (INR 1); now apply le_INR).
  assert (HaA : In a A) by (apply HA; split; [assumption|lra]).
  assert (HbA : In b2 A) by (apply HA; split; [assumption|lra]).
  assert (En : n * u = 1 + g + INR m * t) by (unfold u, n; field; lra).
  assert (Hut : 0 < u - t) by (apply Rmult_lt_reg_l with n; unfold n in *; lra).
  assert (HS : forall M, NoDup M -> length M = m -> (forall i, In i M -> (i < V)%nat /\ ~ In i A) ->
    sum M p <= INR m * (p a - t) /\ sum M p <= 1 + g - 2 * p a).
  { intros M h1 h2 h3. split.
    - apply sum_at_most; auto. intros i Hi. destruct (h3 i Hi) as [k1 k2]. left. apply Rnot_le_lt. intros k. now apply k2, HA.
    - pose proof (two_and_rejected V A a b2 M p Hp HaA HbA ltac:(congruence) HaV HbV h1 h3). lra. }
  split.
  - destruct (ahead_tangent V A a m u (u - t) p x Hp HaA HaV Hm ltac:(lra) Hx) as (M & h1 & h2 & h3 & H).
    destruct (slopes m u (u - t) Hm ltac:(lra)) as (_ & _ & _ & _ & Hu & Hv & Huv).
    destruct (HS M h1 h2 h3) as [S1 S2]. eapply Rle_trans; [|exact H]. unfold one_ahead. cbv zeta.
    set (k := ln (u / _)) in *. set (v := ln ((u - t) / _)) in *. set (S := sum M p) in *.
    destruct (Rle_dec u (p a)) as [h|h].
    + assert (E1 : v * (1 + g - 2 * p a) <= v * S) by (apply Rmult_le_compat_neg_l; lra).
      assert (E2 : 0 <= (k - 2 * v) * (p a - u)) by (apply Rmult_le_pos; lra).
      assert (E3 : 1 + g - 2 * u = INR m * (u - t)) by (unfold n in En; lra).
      replace (INR m * ((u - t) * v)) with (v * (1 + g - 2 * u)) by (rewrite E3; ring). lra.
    + assert (E1 : v * (INR m * (p a - t)) <= v * S) by (apply Rmult_le_compat_neg_l; lra).
      assert (E2 : 0 <= - (k + INR m * v) * (u - p a)) by (apply Rmult_le_pos; lra). lra.
  - intros Hg2. assert (Hg3 : (INR m + 1) * g <= INR m * t).
    { apply Rmult_le_compat_l with (r := INR m + 1) in Hg2; [|lra].
      replace ((INR m + 1) * (INR m * t / (INR m + 1))) with (INR m * t) in Hg2 by (field; lra). assumption. }
    destruct Hx as [(q & Hq & (M & h1 & h2 & h3 & Hbeats) & Hf & <-) _].
    destruct (HS M h1 h2 h3) as [S1 S2].
    assert (HaM : ~ In a M) by (intros h; now apply (h3 a h)). assert (HbM : ~ In b2 M) by (intros h; now apply (h3 b2 h)).
    set (e1 := n * u). set (e2 := n * (u - g)). set (e3 := n * (u - t)).
    assert (E1 : 1 <= e1) by (unfold e1; rewrite En; assert (0 <= INR m * t) by (apply Rmult_le_pos; lra); lra).
    assert (E2 : 1 <= e2) by (unfold e2; rewrite Rmult_minus_distr_l, En; unfold n; lra).
    assert (E3 : 0 < e3) by (apply Rmult_lt_0_compat; unfold n; lra).
    assert (Es : e1 + e2 + INR m * e3 = n).
    { unfold e1, e2, e3. rewrite !Rmult_minus_distr_l, En. unfold n. ring. }
    assert (E3' : e3 <= 1) by (unfold n in Es; nra).
    set (L1 := ln e1). set (L2 := ln e2). set (L3 := ln e3).
    assert (HL1 : 0 <= L1) by (unfold L1; rewrite <- ln_1; apply ln_nondecr; lra).
    assert (HL2 : 0 <= L2) by (unfold L2; rewrite <- ln_1; apply ln_nondecr; lra).
    pose proof (ln_le_sub1 e1 ltac:(lra)) as k1. pose proof (ln_le_sub1 e2 ltac:(lra)) as k2. pose proof (ln_le_sub1 e3 E3) as k3.
    fold L1 in k1. fold L2 in k2. fold L3 in k3. assert (HL3 : L3 <= 0) by lra.
    assert (HL : L1 + L2 + INR m * L3 <= 0).
    { assert (INR m * L3 <= INR m * (e3 - 1)) by (apply Rmult_le_compat_l; lra). unfold n in Es. lra. }
    set (f := fun i => (if mem [a] i then L1 else 0) + (if mem [b2] i then L2 else 0) + (if mem M i then L3 else 0)).
    assert (Hset : forall r l1 l2 l3, sum (seq 0 V) (fun i => r i * ((if mem [a] i then l1 else 0)
        + (if mem [b2] i then l2 else 0) + (if mem M i then l3 else 0))) = r a * l1 + r b2 * l2 + l3 * sum M r).
    { intros r l1 l2 l3. rewrite (sum_ext _ _ (fun i => (if mem [a] i then r i * l1 else 0)
        + (if mem [b2] i then r i * l2 else 0) + (if mem M i then l3 * r i else 0))).
      - rewrite !sum_plus, !sum_indicator, !sum_cons, !sum_nil, sum_scal; try apply NoDup_seq; auto;
          try (repeat constructor; simpl; tauto); try (intros i [<-|[]]; now apply in_vocab); [lra|].
        intros i Hi. now apply in_vocab, h3.
      - intros i _. destruct (mem [a] i), (mem [b2] i), (mem M i); lra. }
    pose proof (donsker_varadhan V p q f Hp Hq Hf) as H. pose proof (tilted_mass_pos V q f Hq) as HZ.
    assert (HZ' : sum (seq 0 V) (fun i => q i * exp (f i)) = 1 + (q a * (e1 - 1) + q b2 * (e2 - 1) + (e3 - 1) * sum M q)).
    { rewrite (sum_ext _ _ (fun i => q i + q i * ((if mem [a] i then e1 - 1 else 0)
          + (if mem [b2] i then e2 - 1 else 0) + (if mem M i then e3 - 1 else 0)))).
      - rewrite sum_plus, Hset, (proj2 Hq). reflexivity.
      - assert (X1 : exp L1 = e1) by (apply exp_ln; lra). assert (X2 : exp L2 = e2) by (apply exp_ln; lra).
        assert (X3 : exp L3 = e3) by (apply exp_ln; lra).
        intros i _. unfold f. destruct (mem [a] i) eqn:M1, (mem [b2] i) eqn:M2, (mem M i) eqn:M3;
          rewrite ?mem_true in M1; rewrite ?mem_true in M2; rewrite ?mem_true in M3;
          try (destruct M1 as [<-|[]]); try (destruct M2 as [<-|[]]); try congruence; try tauto;
          rewrite ?Rplus_0_r, ?Rplus_0_l, ?X1, ?X2, ?X3, ?exp_0; lra. }
    assert (HM0 : M <> nil) by (intros ->; simpl in h2; lia).
    destruct (list_min M q HM0) as (j & Hj & Hmin).
    assert (HlnZ : ln (sum (seq 0 V) (fun i => q i * exp (f i))) <= 0).
    { rewrite <- ln_1. apply ln_nondecr; [assumption|]. rewrite HZ'.
      pose proof (Hbeats j a Hj HaA) as b1. pose proof (Hbeats j b2 Hj HbA) as b3.
      assert (X1 : q a * (e1 - 1) <= q j * (e1 - 1)) by (apply Rmult_le_compat_r; lra).
      assert (X2 : q b2 * (e2 - 1) <= q j * (e2 - 1)) by (apply Rmult_le_compat_r; lra).
      assert (X3 : INR m * q j <= sum M q).
      { rewrite <- h2, <- sum_const. apply sum_le. intros i Hi. auto. }
      assert (X4 : (e3 - 1) * sum M q <= (e3 - 1) * (INR m * q j)) by (apply Rmult_le_compat_neg_l; lra).
      assert (X5 : q j * (e1 + e2 + INR m * e3 - n) = 0) by (rewrite Es; ring). unfold n in X5. lra. }
    unfold f at 1 in H. rewrite Hset in H. set (S := sum M p) in *.
    apply Rle_trans with (p a * L1 + p b2 * L2 + L3 * S); [|lra]. rewrite Epb.
    destruct (Rle_dec u (p a)) as [h|h].
    + assert (X1 : L3 * (1 + g - 2 * p a) <= L3 * S) by (apply Rmult_le_compat_neg_l; lra).
      assert (X2 : 0 <= (L1 + L2 - 2 * L3) * (p a - u)) by (apply Rmult_le_pos; lra).
      assert (X3 : 1 + g - 2 * u = INR m * (u - t)) by (unfold n in En; lra).
      replace (INR m * ((u - t) * L3)) with (L3 * (1 + g - 2 * u)) by (rewrite X3; ring). lra.
    + assert (X1 : L3 * (INR m * (p a - t)) <= L3 * S) by (apply Rmult_le_compat_neg_l; lra).
      assert (X2 : 0 <= - (L1 + L2 + INR m * L3) * (u - p a)) by (apply Rmult_le_pos; lra). lra.
Qed.

(** ** Where the runner-up is rejected, M2 and M3 are M7, and attained *)

Theorem runner_up_rejected m g : (1 <= m)%nat -> 0 <= g < 1 ->
  exists p, prob (m + 1) p /\ (forall j, j <> 0%nat -> p j = p 0%nat - g) /\
  certificate (m + 1) [0%nat] m p (runner_up_value m g) /\
  (forall t, 0 <= t < g -> forall i, In i [0%nat] <-> (i < m + 1)%nat /\ p 0%nat - t <= p i) /\
  (forall alpha, 0 < alpha <= 1 -> (1 - alpha) / (1 + INR m * alpha) < g ->
     forall i, In i [0%nat] <-> (i < m + 1)%nat /\ alpha * p 0%nat <= p i).
Proof.
  intros Hm Hg. destruct (M7_attained m g Hm Hg) as (h1 & h2 & h3). set (p := flat_family (m + 1) g) in *.
  assert (Hm1 : 1 <= INR m) by (change 1 with (INR 1); now apply le_INR).
  assert (E0 : p 0%nat = (1 + INR m * g) / (INR m + 1)).
  { unfold p, flat_family. rewrite mem_in, plus_INR by now left. simpl (INR 1). field. lra. }
  assert (H0 : 0 < p 0%nat) by (rewrite E0; apply Rdiv_lt_0_compat; nra).
  exists p. split; [assumption|]. split; [assumption|]. split; [assumption|]. split.
  - intros t Ht i. split; [intros [<-|[]]; split; [lia|lra]|].
    intros [_ h]. destruct (Nat.eq_dec i 0) as [->|hi]; [now left|]. rewrite (h2 i hi) in h. lra.
  - intros alpha Hal Hlt i. split; [intros [<-|[]]; split; [lia|nra]|].
    intros [_ h]. destruct (Nat.eq_dec i 0) as [->|hi]; [now left|exfalso]. rewrite (h2 i hi) in h.
    assert (X : 1 - alpha < g * (1 + INR m * alpha)).
    { apply Rmult_lt_reg_r with (/ (1 + INR m * alpha)); [apply Rinv_0_lt_compat; nra|].
      replace (g * (1 + INR m * alpha) * / (1 + INR m * alpha)) with g by (field; nra). assumption. }
    rewrite E0 in h. apply Rmult_le_compat_r with (r := INR m + 1) in h; [|lra].
    replace ((1 + INR m * g) / (INR m + 1) * (INR m + 1)) with (1 + INR m * g) in h by (field; lra).
    replace (((1 + INR m * g) / (INR m + 1) - g) * (INR m + 1)) with (1 + INR m * g - g * (INR m + 1)) in h by (field; lra).
    replace (alpha * ((1 + INR m * g) / (INR m + 1)) * (INR m + 1)) with (alpha * (1 + INR m * g)) in h by (field; lra).
    nra.
Qed.

(** ** M3: the chord is approached, by competitors just below the ratio *)

Theorem chord_sharp_m m alpha g e :
  (1 <= m)%nat -> 0 < alpha < 1 -> 0 < g -> g * (1 + INR m * alpha) <= 1 - alpha -> 0 < e ->
  exists V p x, prob V p /\ p 1%nat = p 0%nat - g /\ (forall j, j <> 0%nat -> p j <= p 1%nat) /\
    (forall i, In i [0%nat] <-> (i < V)%nat /\ alpha * p 0%nat <= p i) /\
    certificate V [0%nat] m p x /\ x < g / (1 - alpha) * one_ahead m 1 alpha + e.
Proof.
  intros Hm Hal Hg Hgm He. assert (Hm1 : 1 <= INR m) by (change 1 with (INR 1); now apply le_INR).
  set (z := g / (1 - alpha)). assert (Hz : 0 < z) by (apply Rdiv_lt_0_compat; lra).
  assert (Ez : z * (1 - alpha) = g) by (unfold z; field; lra).
  set (ts := alpha * z). assert (Hts : 0 < ts) by (apply Rmult_lt_0_compat; lra).
  set (d := Rmin (ts / 2) (e * ts / (4 * INR m))).
  assert (Hd : 0 < d) by (apply Rmin_glb_lt; [lra|apply Rdiv_lt_0_compat; nra]).
  assert (Hd1 : d <= ts / 2) by apply Rmin_l.
  assert (Hd2 : d * (2 * INR m) <= e * ts / 2).
  { assert (d <= e * ts / (4 * INR m)) by apply Rmin_r. apply Rmult_le_compat_r with (r := 2 * INR m) in H; [|lra].
    replace (e * ts / (4 * INR m) * (2 * INR m)) with (e * ts / 2) in H by (field; lra). assumption. }
  set (tau := ts - d). assert (Htau : ts / 2 <= tau < ts) by (unfold tau; lra).
  assert (Hmass : g + (INR m + 1) * ts <= 1).
  { unfold ts. assert (z * (1 + INR m * alpha) <= 1).
    { apply Rmult_le_reg_r with (1 - alpha); [lra|]. replace (z * (1 + INR m * alpha) * (1 - alpha)) with (g * (1 + INR m * alpha)) by (rewrite <- Ez; ring). lra. }
    rewrite <- Ez. lra. }
  destruct (archimed_cor1 tau ltac:(lra)) as (n & Hn & Hn0).
  assert (Hn1 : 1 <= INR n) by (change 1 with (INR 1); apply le_INR; lia).
  assert (Hnt : 1 <= INR n * tau).
  { left. apply Rmult_lt_compat_l with (r := INR n) in Hn; [|lra]. rewrite Rinv_r in Hn by lra. assumption. }
  destruct (threshold_attained_m m n g tau Hm ltac:(lia) ltac:(lra) ltac:(lra)) as (p & h1 & h2 & h3 & h4 & h5).
  { apply Rle_trans with (g + (INR m + 1) * ts); [|assumption]. apply Rplus_le_compat_l, Rmult_le_compat_l; lra. }
  { assert (0 <= (INR m + 1) * tau) by (apply Rmult_le_pos; lra). lra. }
  exists (1 + (m + n))%nat, p, (one_ahead m (g + tau) tau). split; [assumption|].
  split; [rewrite h2, h4; lra|]. split; [intros j Hj; rewrite h4; auto|]. split; [|split; [assumption|]].
  - intros i. split.
    + intros [<-|[]]. split; [lia|]. rewrite h2. nra.
    + intros [_ h]. destruct (Nat.eq_dec i 0) as [->|hi]; [now left|exfalso]. specialize (h3 i hi). rewrite h2 in h.
      assert (X : (1 - alpha) * tau < (1 - alpha) * ts) by (apply Rmult_lt_compat_l; lra).
      assert (Y : (1 - alpha) * ts = alpha * g) by (unfold ts; rewrite <- Ez; ring). lra.
  - unfold z at 1. fold z. rewrite <- one_ahead_scale by lra. rewrite Rmult_1_r, (Rmult_comm z alpha). fold ts.
    assert (Exz : z = g + ts) by (unfold ts; lra).
    destruct (slopes m (g + tau) tau Hm ltac:(lra)) as (Hc & _ & HW & _ & Hu & Hv & Huv).
    set (c := (g + tau + INR m * tau) / (INR m + 1)) in *.
    (* the tangent at [tau] *)
    assert (Htan : z * ln ((g + tau) / c) + INR m * (ts * ln (tau / c)) <= one_ahead m z ts).
    { unfold one_ahead. cbv zeta. set (c' := (z + INR m * ts) / (INR m + 1)).
      assert (Hc' : 0 < c') by (apply Rdiv_lt_0_compat; nra).
      assert (Hgen : forall w r, 0 < w -> 0 < r -> w - c' * (r / c) <= w * ln (w / c') - w * ln (r / c)).
      { intros w r hw hr. assert (hr' : 0 < c' * (r / c)) by (apply Rmult_lt_0_compat; [assumption|now apply Rdiv_lt_0_compat]).
        pose proof (gibbs_term w (c' * (r / c)) ltac:(lra) ltac:(lra) ltac:(auto)) as k.
        replace (w / (c' * (r / c))) with ((w / c') / (r / c)) in k by (field; lra).
        rewrite ln_div in k by (apply Rdiv_lt_0_compat; lra). lra. }
      pose proof (Hgen z (g + tau) Hz ltac:(lra)) as k1. pose proof (Hgen ts tau Hts ltac:(lra)) as k2.
      apply Rmult_le_compat_l with (r := INR m) in k2; [|lra].
      assert (k3 : c' * ((g + tau) / c) + INR m * (c' * (tau / c)) = z + INR m * ts).
      { unfold c', c. field. split; [lra|]. nra. }
      lra. }
    set (u := ln ((g + tau) / c)) in *. set (v := ln (tau / c)) in *.
    assert (Hval : one_ahead m (g + tau) tau = (g + tau) * u + INR m * (tau * v)) by reflexivity.
    assert (Hcle : c <= 1).
    { apply Rmult_le_reg_r with (INR m + 1); [lra|]. unfold c, Rdiv. rewrite Rmult_assoc, Rinv_l by lra.
      assert ((INR m + 1) * tau <= (INR m + 1) * ts) by (apply Rmult_le_compat_l; lra). lra. }
    assert (Hv2 : - v <= 2 / ts).
    { assert (E : - v = ln (c / tau)) by (unfold v; rewrite !ln_div by lra; lra).
      rewrite E. pose proof (ln_le_sub1 (c / tau) ltac:(apply Rdiv_lt_0_compat; lra)) as k.
      assert (c / tau <= 2 / ts); [|lra]. apply Rle_trans with (1 / tau).
      - unfold Rdiv. apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat; lra|assumption].
      - apply Rmult_le_reg_r with (tau * ts); [nra|]. replace (1 / tau * (tau * ts)) with ts by (field; lra).
        replace (2 / ts * (tau * ts)) with (2 * tau) by (field; lra). lra. }
    assert (Hdv : d * (INR m * - v) <= e / 2).
    { apply Rle_trans with (d * (INR m * (2 / ts))).
      - apply Rmult_le_compat_l; [lra|]. apply Rmult_le_compat_l; lra.
      - apply Rmult_le_reg_r with ts; [lra|]. replace (d * (INR m * (2 / ts)) * ts) with (d * (2 * INR m)) by (field; lra). lra. }
    assert (Hdu : 0 <= d * u) by (apply Rmult_le_pos; lra).
    assert (E1 : z = g + tau + d) by (unfold tau; lra). assert (E2 : ts = tau + d) by (unfold tau; lra).
    assert (X1 : z * u = (g + tau) * u + d * u) by (rewrite E1; ring).
    assert (X2 : INR m * (ts * v) = INR m * (tau * v) - d * (INR m * - v)) by (rewrite E2; ring).
    rewrite Hval. lra.
Qed.

(** ** M6: its supremum over all vocabularies *)

Theorem M6_flat N m g : (1 <= m)%nat -> (m + 1 <= N)%nat -> 0 <= g <= 1 ->
  let b := (1 - g) / INR N in
  exists p, prob N p /\ (forall j, j <> 0%nat -> p j = p 0%nat - g) /\ certificate N [0%nat] m p (one_ahead m (g + b) b).
Proof.
  intros Hm HN Hg b. set (p := flat_family N g). assert (HNR : 0 < INR N) by (apply lt_0_INR; lia).
  assert (Hp : prob N p) by (apply flat_family_prob; [assumption|lia]).
  assert (Hb : 0 <= b) by (unfold b, Rdiv; apply Rmult_le_pos; [lra|left; now apply Rinv_0_lt_compat]).
  assert (Ej : forall j, j <> 0%nat -> p j = b).
  { intros j Hj. unfold p, flat_family. rewrite mem_out by (intros [h|[]]; congruence). unfold b. lra. }
  assert (E0 : p 0%nat = g + b).
  { unfold p, flat_family. rewrite mem_in by now left. unfold b. lra. }
  exists p. split; [assumption|]. split; [intros j Hj; rewrite Ej, E0 by assumption; lra|].
  assert (Hd : disjoint_sets N [0%nat] (seq 1 m)).
  { repeat split; [repeat constructor; simpl; tauto|apply seq_NoDup| | |].
    - intros i [<-|[]]. lia.
    - apply in_seq in H. lia.
    - intros [<-|[]]. apply in_seq in H. lia. }
  rewrite <- (seq_length m 1) at 1 2. apply (ahead_attained N [0%nat] (seq 1 m) 0 p); auto.
  - destruct m; [lia|discriminate].
  - intros i j Hi Hj Hj0 _. apply in_seq in Hi. rewrite !Ej; [lra|lia|]. intros ->. apply Hj0. now left.
  - now left.
  - lra.
  - intros i Hi. apply in_seq in Hi. apply Ej. lia.
  - intros j [<-|[]] h. congruence.
Qed.

Lemma one_ahead_near m g b : (1 <= m)%nat -> 0 < g <= 1 -> 0 < b <= 1 -> g + (INR m + 1) * b <= INR m + 1 ->
  g * ln (INR m + 1) - 3 * (INR m * sqrt b) <= one_ahead m (g + b) b.
Proof.
  intros Hm Hg Hb Hmass. assert (Hm1 : 1 <= INR m) by (change 1 with (INR 1); now apply le_INR).
  destruct (slopes m (g + b) b Hm ltac:(lra)) as (Hc & HU & HW & _ & Hu & Hv & _).
  unfold one_ahead. cbv zeta. set (c := (g + b + INR m * b) / (INR m + 1)) in *.
  assert (Ec : (INR m + 1) * c = g + (INR m + 1) * b) by (unfold c; field; lra).
  assert (Hc1 : c <= 1) by (apply Rmult_le_reg_l with (INR m + 1); lra).
  assert (Hs : 0 < sqrt b) by (apply sqrt_lt_R0; lra). assert (Hss : sqrt b * sqrt b = b) by (apply sqrt_sqrt; lra).
  assert (Hs1 : sqrt b <= 1) by (rewrite <- sqrt_1; apply sqrt_le_1_alt; lra).
  assert (Hbs : b <= sqrt b) by (rewrite <- Hss at 1; nra).
  assert (H1 : g * ln (INR m + 1) - INR m * b <= (g + b) * ln ((g + b) / c)).
  { apply Rle_trans with (g * ln ((g + b) / c)); [|nra].
    replace ((g + b) / c) with ((INR m + 1) / ((g + (INR m + 1) * b) / (g + b))).
    2:{ rewrite <- Ec. field. repeat split; lra. }
    assert (Hr : 0 < (g + (INR m + 1) * b) / (g + b)) by (apply Rdiv_lt_0_compat; nra).
    rewrite ln_div by lra. pose proof (ln_le_sub1 _ Hr) as k.
    replace ((g + (INR m + 1) * b) / (g + b) - 1) with (INR m * b / (g + b)) in k by (field; lra).
    apply Rmult_le_compat_l with (r := g) in k; [|lra].
    assert (g * (INR m * b / (g + b)) <= INR m * b).
    { apply Rmult_le_reg_r with (g + b); [lra|]. replace (g * (INR m * b / (g + b)) * (g + b)) with (g * (INR m * b)) by (field; lra).
      assert (0 <= b * (INR m * b)) by (apply Rmult_le_pos; [lra|nra]). lra. }
    lra. }
  assert (H2 : - (2 * sqrt b) <= b * ln (b / c)).
  { (* ln(c/b) <= 2 sqrt(c/b), c <= 1 *)
    assert (Hln : ln (c / b) <= 2 * (/ sqrt b)).
    { apply Rle_trans with (ln (/ b)).
      - apply ln_nondecr; [apply Rdiv_lt_0_compat; lra|]. unfold Rdiv. rewrite <- (Rmult_1_l (/ b)) at 2.
        apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat; lra|assumption].
      - assert (Hi : 0 < / sqrt b) by now apply Rinv_0_lt_compat.
        replace (/ b) with (/ sqrt b * / sqrt b) by (rewrite <- Hss at 3; field; lra).
        rewrite ln_mult by assumption. pose proof (ln_le_sub1 _ Hi). lra. }
    rewrite ln_div in Hln |- * by lra.
    assert (b * (ln c - ln b) <= b * (2 * / sqrt b)) by (apply Rmult_le_compat_l; lra).
    assert (X : b * (2 * / sqrt b) = 2 * sqrt b).
    { transitivity ((sqrt b * sqrt b) * (2 * / sqrt b)); [now rewrite Hss|field; lra]. }
    lra. }
  assert (INR m * (- (2 * sqrt b)) <= INR m * (b * ln (b / c))) by (apply Rmult_le_compat_l; lra).
  assert (INR m * b <= INR m * sqrt b) by (apply Rmult_le_compat_l; lra). lra.
Qed.

Theorem M6_supremum m g e : (1 <= m)%nat -> 0 < g < 1 -> 0 < e ->
  exists V, forall N, (V <= N)%nat -> exists p x, prob N p /\ (forall j, j <> 0%nat -> p j = p 0%nat - g) /\
  certificate N [0%nat] m p x /\ g * ln (INR m + 1) - e < x.
Proof.
  intros Hm Hg He. assert (Hm1 : 1 <= INR m) by (change 1 with (INR 1); now apply le_INR).
  set (s := e / (4 * INR m)). assert (Hs : 0 < s) by (apply Rdiv_lt_0_compat; lra).
  destruct (archimed_cor1 (s * s) ltac:(nra)) as (N0 & HN0 & HN0').
  exists (N0 + m + 1)%nat. intros N HN. assert (HNR : 0 < INR N) by (apply lt_0_INR; lia).
  assert (HNN : INR N0 <= INR N) by (apply le_INR; lia). assert (HN0R : 0 < INR N0) by now apply lt_0_INR.
  destruct (M6_flat N m g Hm ltac:(lia) ltac:(lra)) as (p & h1 & h2 & h3). set (b := (1 - g) / INR N) in *.
  exists p, (one_ahead m (g + b) b). split; [assumption|]. split; [assumption|]. split; [assumption|].
  assert (Hb : 0 < b) by (apply Rdiv_lt_0_compat; lra).
  assert (Hbi : b <= / INR N).
  { unfold b, Rdiv. rewrite <- (Rmult_1_l (/ INR N)) at 2. apply Rmult_le_compat_r; [left; now apply Rinv_0_lt_compat|lra]. }
  assert (Hinv : / INR N <= / INR N0) by (apply Rinv_le_contravar; assumption).
  assert (H1N : INR m + 1 <= INR N) by (rewrite <- (S_INR m); apply le_INR; lia).
  assert (HbN : (INR m + 1) * b <= 1 - g).
  { apply Rle_trans with (INR N * b); [apply Rmult_le_compat_r; lra|]. unfold b. right. field. lra. }
  assert (Hsb : sqrt b <= s).
  { rewrite <- (sqrt_square s) by lra. apply sqrt_le_1_alt. lra. }
  pose proof (one_ahead_near m g b Hm ltac:(lra) ltac:(split; [assumption|nra]) ltac:(lra)) as h.
  assert (INR m * sqrt b <= INR m * s) by (apply Rmult_le_compat_l; lra).
  assert (E : INR m * s = e / 4) by (unfold s; field; lra). lra.
Qed.
