(** * M2 for [m] candidates; which bounds are sharp; the supremum of M6. *)

From Coq Require Import Reals List Arith Lra Lia Psatz.
From Draftcert Require Statements.
From Draftcert Require Import Definitions Sums LogFacts Projection Competitors ClosedForm StrictGreedy Duality Candidates.
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

Theorem additive_margin_bounds_m : Statements.M2_candidates.
Proof.
  intros V A a b2 m p t g x Hp HaA HaV HbA HbV Hba Epb Hgt Hpos Hout Hm Hx u. set (n := INR m + 2) in *.
  assert (Hm1 : 1 <= INR m) by (change 1 with (INR 1); now apply le_INR).
  assert (En : n * u = 1 + g + INR m * t) by (unfold u, n; field; lra).
  assert (Hut : 0 < u - t) by (apply Rmult_lt_reg_l with n; unfold n in *; lra).
  assert (HS : forall M, NoDup M -> length M = m -> (forall i, In i M -> (i < V)%nat /\ ~ In i A) ->
    sum M p <= INR m * (p a - t) /\ sum M p <= 1 + g - 2 * p a).
  { intros M h1 h2 h3. split; [apply sum_at_most; auto; intros i Hi; now apply Hout; apply h3|].
    pose proof (two_and_rejected V A a b2 M p Hp HaA HbA ltac:(congruence) HaV HbV h1 h3). lra. }
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
  - intros Hg2. unfold all_levelled. simpl (INR 1). replace (1 + INR m + 1) with n by (unfold n; ring). cbv zeta.
    assert (Hg3 : (INR m + 1) * g <= INR m * t).
    { apply Rmult_le_compat_l with (r := INR m + 1) in Hg2; [|lra].
      replace ((INR m + 1) * (INR m * t / (INR m + 1))) with (INR m * t) in Hg2 by (field; lra). assumption. }
    destruct (duality V A m p x Hp Hm Hx) as (M & h1 & h2 & h3 & H). destruct (HS M h1 h2 h3) as [S1 S2].
    assert (HM : forall i, In i M -> (i < V)%nat /\ i <> a) by (intros i Hi; destruct (h3 i Hi) as [k1 k2]; split; [assumption|intros ->; tauto]).
    assert (HbM : ~ In b2 M) by (intros h; now apply (h3 b2 h)).
    set (e1 := n * u) in *. set (e2 := n * (u - g)). set (e3 := n * (u - t)).
    assert (E1 : 1 <= e1) by (rewrite En; assert (0 <= INR m * t) by (apply Rmult_le_pos; lra); lra).
    assert (E2 : 1 <= e2) by (unfold e2; rewrite Rmult_minus_distr_l; fold e1; rewrite En; unfold n; lra).
    assert (E3 : 0 < e3) by (apply Rmult_lt_0_compat; unfold n; lra).
    assert (Es : e1 + e2 + INR m * e3 = n) by (unfold e2, e3; rewrite !Rmult_minus_distr_l; fold e1; rewrite En; unfold n; ring).
    assert (E3' : e3 <= 1) by (unfold n in Es; nra).
    set (r := fun i => blocks a M e1 1 e3 i + (if mem [b2] i then e2 - 1 else 0)).
    set (L1 := ln e1). set (L2 := ln e2). set (L3 := ln e3).
    assert (Hb : forall f v, sum (seq 0 V) (fun i => f i + (if mem [b2] i then v else 0)) = sum (seq 0 V) f + v).
    { intros f v. rewrite sum_plus, sum_indicator, sum_cons, sum_nil; auto using NoDup_seq; [lra|repeat constructor; simpl; tauto|].
      intros i [<-|[]]. now apply in_vocab. }
    assert (Hr : forall i, i = b2 /\ r i = e2 \/ r i = blocks a M e1 1 e3 i /\ i <> b2).
    { intros i. unfold r. destruct (Nat.eq_dec i b2) as [->|h]; [left|right].
      - unfold blocks. rewrite (mem_out [a]), (mem_out M), (mem_in [b2]) by (auto; try (now left); intros [k|[]]; congruence). split; [reflexivity|lra].
      - rewrite mem_out by (intros [k|[]]; congruence). split; [lra|assumption]. }
    apply Rle_trans with (sum (seq 0 V) (fun i => p i * ln (r i))).
    + rewrite (sum_ext _ (fun i => p i * ln (r i)) (fun i => p i * blocks a M L1 0 L3 i + (if mem [b2] i then p b2 * L2 else 0))).
      * rewrite Hb, sum_blocks, Epb by assumption. set (S := sum M p) in *.
        assert (HL1 : 0 <= L1) by (unfold L1; rewrite <- ln_1; apply ln_nondecr; lra).
        assert (HL2 : 0 <= L2) by (unfold L2; rewrite <- ln_1; apply ln_nondecr; lra).
        pose proof (ln_le_sub1 e1 ltac:(lra)) as k1. pose proof (ln_le_sub1 e2 ltac:(lra)) as k2. pose proof (ln_le_sub1 e3 E3) as k3.
        fold L1 in k1. fold L2 in k2. fold L3 in k3. assert (HL3 : L3 <= 0) by lra.
        assert (HL : L1 + L2 + INR m * L3 <= 0).
        { assert (INR m * L3 <= INR m * (e3 - 1)) by (apply Rmult_le_compat_l; lra). unfold n in Es. lra. }
        destruct (Rle_dec u (p a)) as [h|h].
        -- assert (X1 : L3 * (1 + g - 2 * p a) <= L3 * S) by (apply Rmult_le_compat_neg_l; lra).
           assert (X2 : 0 <= (L1 + L2 - 2 * L3) * (p a - u)) by (apply Rmult_le_pos; lra).
           assert (X3 : 1 + g - 2 * u = INR m * (u - t)) by (unfold e1, n in En; lra).
           fold e1 e2 e3 L1 L2 L3. replace (INR m * ((u - t) * L3)) with (L3 * (1 + g - 2 * u)) by (rewrite X3; ring). lra.
        -- assert (X1 : L3 * (INR m * (p a - t)) <= L3 * S) by (apply Rmult_le_compat_neg_l; lra).
           assert (X2 : 0 <= - (L1 + L2 + INR m * L3) * (u - p a)) by (apply Rmult_le_pos; lra). lra.
      * intros i _. destruct (Hr i) as [[-> ->]|[-> h]].
        -- unfold blocks. rewrite (mem_out [a]), (mem_out M), (mem_in [b2]) by (auto; try (now left); intros [k|[]]; congruence). fold L2. lra.
        -- rewrite (mem_out [b2]) by (intros [k|[]]; congruence). unfold blocks. destruct (mem [a] i), (mem M i); rewrite ?ln_1; fold L1 L3; ring.
    + assert (Hrange : forall i, 0 < r i /\ (In i M -> r i <= 1) /\ (~ In i M -> 1 <= r i)).
      { intros i. destruct (Hr i) as [[-> ->]|[-> h]]; [repeat split; intros; (lra || tauto)|]. unfold blocks.
        destruct (mem [a] i) eqn:Ea.
        - apply mem_true in Ea. destruct Ea as [<-|[]]. repeat split; intros; try lra. now destruct (HM a).
        - destruct (mem M i) eqn:EM; [apply mem_true in EM|apply mem_false in EM]; repeat split; intros; (lra || tauto). }
      apply H; [intros i _; apply Hrange|intros i; apply Hrange|intros i _; apply Hrange|].
      unfold r. rewrite Hb, (sum_ext _ _ (fun i => 1 * blocks a M e1 1 e3 i)) by (intros; lra).
      rewrite sum_blocks, !sum_const, seq_length, h2 by assumption. unfold n in Es. lra.
Qed.

(** ** Where the runner-up is rejected, M2 and M3 are M7, and attained *)

Theorem runner_up_rejected : Statements.M2_M3_runner_up_rejected.
Proof.
  intros m g Hm Hg. destruct (runner_up_attained m g Hm Hg) as (h1 & E0 & h2 & h3). set (p := flat_family (m + 1) g) in *.
  assert (Hm1 : 1 <= INR m) by (change 1 with (INR 1); now apply le_INR).
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

Theorem chord_sharp_m : Statements.M3_candidates_sharp.
Proof.
  intros m alpha g e Hm Hal Hg Hgm He. assert (Hm1 : 1 <= INR m) by (change 1 with (INR 1); now apply le_INR).
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
    pose proof (above_tangent m (g + tau) tau z ts Hm ltac:(lra) Hz Hts) as Htan. cbv zeta in Htan. fold c in Htan.
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

Theorem M6_supremum : Statements.M6_supremum.
Proof.
  intros m g e Hm Hg He. assert (Hm1 : 1 <= INR m) by (change 1 with (INR 1); now apply le_INR).
  set (s := e / (4 * INR m)). assert (Hs : 0 < s) by (apply Rdiv_lt_0_compat; lra).
  destruct (archimed_cor1 (s * s) ltac:(nra)) as (N0 & HN0 & HN0').
  exists (N0 + m + 1)%nat. intros N HN. assert (HNR : 0 < INR N) by (apply lt_0_INR; lia).
  assert (HNN : INR N0 <= INR N) by (apply le_INR; lia). assert (HN0R : 0 < INR N0) by now apply lt_0_INR.
  destruct (flat_attained N 1 m g Hm (Nat.le_refl 1) ltac:(lia) ltac:(lra)) as (h1 & h2 & h3 & h4).
  set (b := (1 - g) / INR N) in *. exists (flat_family N g), (one_ahead m (g + b) b). split; [assumption|].
  split; [intros j Hj; rewrite h2, h3 by assumption; lra|]. split; [assumption|].
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

Theorem alone_supremum : Statements.M3p_supremum.
Proof.
  intros m p1 e Hm Hp1 He. assert (Hm1 : 1 <= INR m) by (change 1 with (INR 1); now apply le_INR).
  set (s := e / (8 * INR m)). assert (Hs : 0 < s) by (apply Rdiv_lt_0_compat; lra).
  assert (Hss : 0 < s * s) by (apply Rmult_lt_0_compat; assumption).
  destruct (archimed_cor1 (Rmin p1 (s * s)) ltac:(apply Rmin_glb_lt; lra)) as (n & Hn & Hn0).
  pose proof (Rmin_l p1 (s * s)) as Hn1. pose proof (Rmin_r p1 (s * s)) as Hn2.
  set (N := (n + m)%nat). assert (HnN : INR n <= INR N) by (apply le_INR; unfold N; lia). assert (HnR : 0 < INR n) by now apply lt_0_INR.
  assert (HmN : INR m <= INR N) by (apply le_INR; unfold N; lia).
  assert (Hinv : / INR N <= / INR n) by (apply Rinv_le_contravar; lra).
  set (b := (1 - p1) / INR N). assert (EN : INR N * b = 1 - p1) by (unfold b; field; lra).
  assert (Hb : 0 < b) by (apply Rdiv_lt_0_compat; lra).
  assert (Hbi : b <= / INR N) by (unfold b, Rdiv; rewrite <- (Rmult_1_l (/ INR N)) at 2; apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat|]; lra).
  set (g := p1 - b). assert (E1 : INR (N + 1) = INR N + 1) by now rewrite plus_INR.
  assert (Eb : (1 - g) / INR (N + 1) = b) by (rewrite E1; unfold g; apply Rmult_eq_reg_l with (INR N + 1); [field_simplify; lra|lra]).
  destruct (flat_attained (N + 1) 1 m g Hm (Nat.le_refl 1) ltac:(unfold N; lia) ltac:(unfold g; lra)) as (h1 & h2 & h3 & h4).
  rewrite Eb in *. exists (N + 1)%nat, (flat_family (N + 1) g), (one_ahead m (g + b) b).
  split; [assumption|]. split; [rewrite h2; unfold g; ring|]. split; [intros i j hi hj; now rewrite !h3|]. split; [assumption|].
  assert (HmNb : INR m * b <= INR N * b) by (apply Rmult_le_compat_r; lra).
  pose proof (one_ahead_near m g b Hm ltac:(unfold g; lra) ltac:(lra) ltac:(unfold g; lra)) as H.
  assert (Hsq : 0 < sqrt b <= s).
  { split; [now apply sqrt_lt_R0|]. rewrite <- (sqrt_square s) by lra. apply sqrt_le_1_alt. lra. }
  assert (Hbs : b <= sqrt b).
  { rewrite <- (sqrt_sqrt b) at 1 by lra. assert (sqrt b <= 1) by (rewrite <- sqrt_1; apply sqrt_le_1_alt; lra). nra. }
  pose proof (ln_le_sub1 (INR m + 1) ltac:(lra)) as Hln.
  assert (X1 : INR m * sqrt b <= e / 8).
  { replace (e / 8) with (INR m * s) by (unfold s; field; lra). apply Rmult_le_compat_l; lra. }
  assert (X2 : b * ln (INR m + 1) <= sqrt b * INR m) by (apply Rmult_le_compat; try lra; rewrite <- ln_1; apply ln_nondecr; lra).
  assert (X3 : g * ln (INR m + 1) = p1 * ln (INR m + 1) - b * ln (INR m + 1)) by (unfold g; ring). lra.
Qed.
