(** * M3v and M5v: lower bounds in a vocabulary of [m + n + 1] tokens. *)

From Coq Require Import Reals List Arith Lra Lia Psatz Permutation.
From Draftcert Require Statements.
From Draftcert Require Import Definitions Sums LogFacts Projection Competitors StrictGreedy Duality Candidates.
Import ListNotations.
Open Scope R_scope.

(** The first token, [m] competitors and [n] others, each [g] or more below the first, hold all of the mass. *)
Lemma first_token_floor V A a m n p g M :
  prob V p -> In a A -> (a < V)%nat -> V = (m + n + 1)%nat -> (forall j, (j < V)%nat -> j <> a -> p j <= p a - g) ->
  NoDup M -> length M = m -> (forall i, In i M -> (i < V)%nat /\ ~ In i A) ->
  1 + INR n * g <= (INR n + 1) * p a + sum M p.
Proof.
  intros Hp Ha HaV HV Hgap HM Hlen HM'.
  assert (Hn : NoDup (a :: M)) by (constructor; [intros h; now apply (HM' a h)|assumption]).
  destruct (perm_split (a :: M) (seq 0 V) Hn (NoDup_seq V)) as [r Hr].
  { intros i [<-|Hi]; apply in_vocab; [assumption|now apply HM']. }
  assert (Hnr : NoDup ((a :: M) ++ r)) by (eapply Permutation_NoDup; [exact Hr|apply NoDup_seq]).
  assert (Hl : length r = n).
  { pose proof (Permutation_length Hr) as h. rewrite seq_length, app_length in h. cbn [length] in h. lia. }
  assert (Hsum : p a + sum M p + sum r p = 1).
  { rewrite <- (proj2 Hp), (sum_perm _ _ p Hr), sum_app, sum_cons. lra. }
  assert (Hrest : sum r p <= INR n * (p a - g)).
  { rewrite <- Hl, <- sum_const. apply sum_le. intros i Hi. apply Hgap.
    - apply in_vocab. apply (Permutation_in _ (Permutation_sym Hr)), in_app_iff. now right.
    - intros ->. cbn [app] in Hnr. inversion_clear Hnr as [|? ? h _]. apply h, in_app_iff. now right. }
  lra.
Qed.

(** All tokens are levelled at [1/V]. *)
Lemma level_of_all V A a m n p u y z x :
  prob V p -> In a A -> (a < V)%nat -> V = (m + n + 1)%nat -> (1 <= m)%nat ->
  u + INR n * y + INR m * z = 1 -> 0 < z -> y <= u -> 1 <= INR V * y -> certificate V A m p x ->
  exists M, NoDup M /\ length M = m /\ (forall i, In i M -> (i < V)%nat /\ ~ In i A) /\
    let L w := ln (INR V * w) in L z <= 0 /\ 0 <= L y <= L u /\
    L u * p a + L z * sum M p + L y * (1 - p a - sum M p) <= x.
Proof.
  intros Hp Ha HaV HV Hm Hs Hz Hy HVy Hx. assert (EV : INR V = INR m + INR n + 1) by (rewrite HV, !plus_INR; reflexivity).
  assert (Hm1 : 1 <= INR m) by (change 1 with (INR 1); now apply le_INR). pose proof (pos_INR n) as Hn.
  assert (HVz : 0 < INR V * z) by (apply Rmult_lt_0_compat; lra).
  assert (HVu : INR V * y <= INR V * u) by (apply Rmult_le_compat_l; lra).
  assert (E : INR V * u + INR n * (INR V * y) + INR m * (INR V * z) = INR V) by (rewrite <- (Rmult_1_r (INR V)) at 4; rewrite <- Hs; ring).
  assert (Hz1 : INR V * z <= 1).
  { apply Rmult_le_reg_l with (INR m); [lra|]. assert (INR n * 1 <= INR n * (INR V * y)) by (apply Rmult_le_compat_l; lra). lra. }
  destruct (tangent V A a m _ _ _ p x Hp Ha HaV Hm (Rle_trans _ _ _ HVy HVu) HVy (conj HVz Hz1) ltac:(rewrite EV at 4; lra) Hx)
    as (M & h1 & h2 & h3 & H).
  exists M. split; [assumption|]. split; [assumption|]. split; [assumption|]. cbv zeta.
  repeat split; try lra; [rewrite <- ln_1; now apply ln_nondecr|rewrite <- ln_1; apply ln_nondecr; lra|apply ln_nondecr; lra].
Qed.

Theorem threshold_bound_in_vocabulary : Statements.M5v_candidates.
Proof.
  intros V A a m n p g tau x Hp Ha HaV HV Hm Hg Htau Hmass Hgap Hj Hx y.
  assert (Hm1 : 1 <= INR m) by (change 1 with (INR 1); now apply le_INR). pose proof (pos_INR n) as Hn.
  assert (EV : INR V = INR m + INR n + 1) by (rewrite HV, !plus_INR; reflexivity).
  assert (Ey : (INR n + 1) * y = 1 - g - INR m * tau) by (unfold y; field; lra).
  assert (Hy : tau <= y) by (apply Rmult_le_reg_l with (INR n + 1); [lra|rewrite Ey; rewrite EV in Hmass; lra]).
  (* each is linear in the first token and what the competitors weigh *)
  assert (Hlin : forall k v w M, 0 <= w <= k -> v <= 0 -> NoDup M -> length M = m -> (forall i, In i M -> (i < V)%nat /\ ~ In i A) ->
    k * (g + y) + v * (INR m * tau) + w * (INR n * y) <= k * p a + v * sum M p + w * (1 - p a - sum M p)).
  { intros k v w M Hw Hv h1 h2 h3. pose proof (first_token_floor V A a m n p g M Hp Ha HaV HV Hgap h1 h2 h3) as Hfloor.
    assert (HS : sum M p <= INR m * tau) by (apply sum_at_most; auto; intros i Hi; destruct (h3 i Hi); auto).
    set (S := sum M p) in *.
    assert (X1 : 0 <= (k - w) * ((INR n + 1) * p a + S - (1 + INR n * g))) by (apply Rmult_le_pos; lra).
    assert (X2 : 0 <= (k - w + (INR n + 1) * (w - v)) * (INR m * tau - S)).
    { apply Rmult_le_pos; [|lra]. assert (0 <= (INR n + 1) * (w - v)) by (apply Rmult_le_pos; lra). lra. }
    apply Rmult_le_reg_l with (INR n + 1); [lra|].
    assert (X3 : (k - w) * ((INR n + 1) * y) = (k - w) * (1 - g - INR m * tau)) by now rewrite Ey.
    assert (X4 : w * ((INR n + 1) * y) = w * (1 - g - INR m * tau)) by now rewrite Ey.
    assert (X5 : INR n * (w * ((INR n + 1) * y)) = INR n * (w * (1 - g - INR m * tau))) by now rewrite X4. lra. }
  split.
  - destruct (ahead_tangent V A a m (g + y) tau p x Hp Ha HaV Hm ltac:(lra) Hx) as (M & h1 & h2 & h3 & H).
    destruct (slopes m (g + y) tau Hm ltac:(lra)) as (_ & _ & _ & _ & Hu & Hv & _).
    eapply Rle_trans; [|exact H]. unfold one_ahead. cbv zeta. set (u := ln ((g + y) / _)) in *. set (v := ln (tau / _)) in *.
    specialize (Hlin u v 0 M ltac:(lra) Hv h1 h2 h3). lra.
  - intros HVy. destruct (level_of_all V A a m n p (g + y) y tau x Hp Ha HaV HV Hm ltac:(lra) ltac:(lra) ltac:(lra) HVy Hx)
      as (M & h1 & h2 & h3 & Hv & Hw & H). cbv zeta in *.
    eapply Rle_trans; [|exact H]. unfold all_levelled. cbv zeta. replace (INR n + INR m + 1) with (INR V) by lra.
    specialize (Hlin _ _ _ M Hw Hv h1 h2 h3). lra.
Qed.

Theorem ratio_bound_in_vocabulary : Statements.M3v_candidates.
Proof.
  intros V A a m n p alpha g x Hp Ha HaV HV Hm Hal Hg Hgap Hj Hx s u rho.
  assert (Hm1 : 1 <= INR m) by (change 1 with (INR 1); now apply le_INR). pose proof (pos_INR n) as Hn.
  assert (EV : INR V = INR m + INR n + 1) by (rewrite HV, !plus_INR; reflexivity).
  assert (Hma : 0 < INR m * alpha) by (apply Rmult_lt_0_compat; lra).
  assert (HS : forall M, NoDup M -> length M = m -> (forall i, In i M -> (i < V)%nat /\ ~ In i A) ->
    sum M p <= INR m * (alpha * p a) /\ u <= p a).
  { intros M h1 h2 h3. pose proof (first_token_floor V A a m n p g M Hp Ha HaV HV Hgap h1 h2 h3) as Hfloor.
    assert (S1 : sum M p <= INR m * (alpha * p a)) by (apply sum_at_most; auto; intros i Hi; destruct (h3 i Hi); auto).
    split; [assumption|]. unfold u, s. apply Rmult_le_reg_r with (1 + INR m * alpha + INR n); [lra|].
    unfold Rdiv. rewrite Rmult_assoc, Rinv_l by lra. lra. }
  assert (Hu : 0 < u).
  { unfold u, s. apply Rdiv_lt_0_compat; [|lra]. assert (0 <= INR n * g) by (apply Rmult_le_pos; lra). lra. }
  assert (Eu : u + INR n * (u - g) + INR m * (alpha * u) = 1) by (unfold u, s; field; lra).
  pose proof Hx as [(q & _ & (M0 & k1 & k2 & k3 & _) & _) _]. destruct (HS M0 k1 k2 k3) as [_ Hpa].
  assert (Hrho : s * ln rho = INR m * alpha * ln alpha) by (unfold rho; rewrite ln_exp; unfold s; field; lra).
  assert (Hr0 : 0 < rho) by apply exp_pos.
  assert (Hla : ln alpha < 0) by (rewrite <- ln_1; apply ln_increasing; lra).
  assert (Hra : alpha <= rho <= 1).
  { unfold rho. assert (X : ln alpha <= INR m * alpha * ln alpha / s <= 0).
    { unfold s. split; apply Rmult_le_reg_r with (1 + INR m * alpha); try lra; unfold Rdiv; rewrite Rmult_assoc, Rinv_l by lra; nra. }
    assert (Hexp : forall c d, c <= d -> exp c <= exp d) by (intros c d [h| ->]; [left; now apply exp_increasing|lra]).
    rewrite <- exp_0. rewrite <- (exp_ln alpha) at 1 by lra. split; apply Hexp; lra. }
  split; [|split].
  - destruct (ratio_bounds_m V A a m p alpha g x Hp Ha HaV Hal Hg ltac:(lra) Hm) as [_ H]; [|assumption|].
    + intros j h k. split; [auto|]. apply Hgap; [assumption|]. intros ->. tauto.
    + eapply Rle_trans; [|exact H]. apply Rmult_le_compat_r; [|assumption]. apply one_ahead_nonneg; lra.
  - intros HVy Hom. assert (Hy0 : 0 < u - g) by (apply Rnot_le_lt; intros h; nra).
    destruct (level_of_all V A a m n p u (u - g) (alpha * u) x Hp Ha HaV HV Hm Eu ltac:(nra) ltac:(lra) HVy Hx)
      as (M & h1 & h2 & h3 & Hv & Hw & H). destruct (HS M h1 h2 h3) as [S1 _]. cbv zeta in *. set (S := sum M p) in *.
    eapply Rle_trans; [|exact H]. unfold all_levelled. cbv zeta. replace (INR n + INR m + 1) with (INR V) by lra.
    assert (HVu : forall w, 0 < w -> ln (INR V * (w * u)) = ln w + ln (INR V * u)).
    { intros w h. replace (INR V * (w * u)) with (w * (INR V * u)) by ring. apply ln_mult; [assumption|apply Rmult_lt_0_compat; lra]. }
    assert (Hy : ln (INR V * (u - g)) <= ln rho + ln (INR V * u)).
    { rewrite <- HVu by assumption. apply ln_nondecr; [lra|]. apply Rmult_le_compat_l; lra. }
    rewrite (HVu alpha) in * by lra. set (k := ln (INR V * u)) in *. set (w := ln (INR V * (u - g))) in *.
    assert (X1 : 0 <= (w - (ln alpha + k)) * (INR m * (alpha * p a) - S)) by (apply Rmult_le_pos; lra).
    assert (X2 : 0 <= (k - w + INR m * alpha * (ln alpha + k - w)) * (p a - u)).
    { apply Rmult_le_pos; [|lra]. assert (s * w <= s * (ln rho + k)) by (apply Rmult_le_compat_l; unfold s; lra). unfold s in *. lra. }
    assert (X3 : w * (u + INR n * (u - g) + INR m * (alpha * u)) = w) by (rewrite Eu; ring). lra.
  - set (d := s + INR n * rho). assert (Hd : 0 < d) by (unfold d, s; assert (0 <= INR n * rho) by (apply Rmult_le_pos; lra); lra).
    destruct (Rle_dec 1 (INR V * rho / d)) as [h|h].
    2:{ apply Rle_trans with 0; [|now apply (certificate_nonneg V A m p)]. rewrite <- ln_1.
        apply ln_nondecr; [apply Rdiv_lt_0_compat; [apply Rmult_lt_0_compat|]; lra|lra]. }
    assert (Ed : / d + INR n * (rho / d) + INR m * (alpha / d) = 1) by (unfold d, s; field; unfold d, s in Hd; lra).
    assert (Hi : 0 < / d) by now apply Rinv_0_lt_compat.
    destruct (level_of_all V A a m n p (/ d) (rho / d) (alpha / d) x Hp Ha HaV HV Hm Ed) as (M & h1 & h2 & h3 & Hv & Hw & H);
      [unfold Rdiv; apply Rmult_lt_0_compat; lra|
       unfold Rdiv; rewrite <- (Rmult_1_l (/ d)) at 2; apply Rmult_le_compat_r; lra|unfold Rdiv in *; lra|assumption|].
    destruct (HS M h1 h2 h3) as [S1 _]. cbv zeta in *. set (S := sum M p) in *.
    replace (INR V * rho / d) with (INR V * (rho / d)) by (unfold Rdiv; ring).
    assert (HVd : forall w, 0 < w -> ln (INR V * (w / d)) = ln w + ln (INR V * / d)).
    { intros w k. replace (INR V * (w / d)) with (w * (INR V * / d)) by (unfold Rdiv; ring). apply ln_mult; [assumption|apply Rmult_lt_0_compat; lra]. }
    rewrite !HVd in * by lra. set (k := ln (INR V * / d)) in *. set (r := ln rho) in *.
    assert (X1 : 0 <= (r - ln alpha) * (INR m * (alpha * p a) - S)) by (apply Rmult_le_pos; lra).
    assert (X2 : p a * (s * r) = p a * (INR m * alpha * ln alpha)) by now rewrite Hrho. unfold s in X2. lra.
Qed.

Theorem first_token_in_vocabulary : Statements.M3pv_candidates.
Proof.
  intros V A a m n p alpha x Hp Ha HaV HV Hm Hn1 Hal Hmax Hj Hx y.
  assert (Hm1 : 1 <= INR m) by (change 1 with (INR 1); now apply le_INR).
  assert (Hn : 1 <= INR n) by (change 1 with (INR 1); now apply le_INR).
  assert (EV : INR V = INR m + INR n + 1) by (rewrite HV, !plus_INR; reflexivity).
  assert (Ey : INR n * y = 1 - (1 + INR m * alpha) * p a) by (unfold y; field; lra).
  assert (HS : forall M, NoDup M -> length M = m -> (forall i, In i M -> (i < V)%nat /\ ~ In i A) ->
    sum M p <= INR m * (alpha * p a) /\ 1 <= (INR n + 1) * p a + sum M p).
  { intros M h1 h2 h3. split; [apply sum_at_most; auto; intros i Hi; destruct (h3 i Hi); auto|].
    enough (1 + INR n * 0 <= (INR n + 1) * p a + sum M p) by lra. apply (first_token_floor V A a m n p 0 M); auto.
    intros j h _. rewrite Rminus_0_r. auto. }
  pose proof Hx as [(q & _ & (M0 & k1 & k2 & k3 & _) & _) _]. destruct (HS M0 k1 k2 k3) as [T1 T2].
  assert (Hy : y <= p a) by (apply Rmult_le_reg_l with (INR n); lra). split; [assumption|]. intros HVy.
  assert (Hpa : 0 < p a) by (assert (0 < INR V * y) by lra; nra).
  assert (Hma : 0 < INR m * alpha) by (apply Rmult_lt_0_compat; lra).
  assert (Hz : 0 < alpha * p a) by (apply Rmult_lt_0_compat; lra).
  destruct (level_of_all V A a m n p (p a) y (alpha * p a) x Hp Ha HaV HV Hm ltac:(lra) Hz Hy HVy Hx) as (M & h1 & h2 & h3 & Hv & Hw & H).
  destruct (HS M h1 h2 h3) as [S1 _]. cbv zeta in *. set (S := sum M p) in *.
  eapply Rle_trans; [|exact H]. unfold all_levelled. cbv zeta. replace (INR n + INR m + 1) with (INR V) by lra.
  set (k := ln (INR V * p a)) in *. set (v := ln (INR V * (alpha * p a))) in *. set (w := ln (INR V * y)) in *.
  assert (X1 : 0 <= (w - v) * (INR m * (alpha * p a) - S)) by (apply Rmult_le_pos; lra).
  assert (X2 : w * (INR n * y) = w * (1 - (1 + INR m * alpha) * p a)) by now rewrite Ey. lra.
Qed.

(** The rows that attain these bounds. *)
Theorem crowded_rows : Statements.crowded_rows.
Proof.
  intros m n x y z Hm Hz Hy Hs V. set (p := fun i => if Nat.eq_dec i 0 then x else if le_dec i n then y else z).
  assert (Hm1 : 1 <= INR m) by (change 1 with (INR 1); now apply le_INR). pose proof (pos_INR n) as Hn.
  assert (EV : INR V = 1 + (INR n + INR m)) by (unfold V; rewrite !plus_INR; reflexivity).
  assert (E0 : p 0%nat = x) by reflexivity.
  assert (E1 : forall i, (1 <= i <= n)%nat -> p i = y).
  { intros i Hi. unfold p. destruct Nat.eq_dec; [lia|]. destruct le_dec; [reflexivity|lia]. }
  assert (E2 : forall i, (n < i)%nat -> p i = z).
  { intros i Hi. unfold p. destruct Nat.eq_dec; [lia|]. destruct le_dec; [lia|reflexivity]. }
  assert (Hsum1 : forall f, sum (seq 1 n) (fun i => f (p i)) = INR n * f y).
  { intros f. rewrite (sum_ext _ _ (fun _ => f y)) by (intros i Hi; apply in_seq in Hi; rewrite E1 by lia; reflexivity).
    now rewrite sum_const, seq_length. }
  assert (Hsum2 : forall f, sum (seq (1 + n) m) (fun i => f (p i)) = INR m * f z).
  { intros f. rewrite (sum_ext _ _ (fun _ => f z)) by (intros i Hi; apply in_seq in Hi; rewrite E2 by lia; reflexivity).
    now rewrite sum_const, seq_length. }
  assert (Hsum : forall f, sum (seq 0 (1 + n) ++ seq (1 + n) m) (fun i => f (p i)) = f x + INR n * f y + INR m * f z).
  { intros f. rewrite sum_app, Hsum2. cbn [seq Nat.add]. rewrite sum_cons, Hsum1, E0. lra. }
  assert (Hp : prob V p).
  { split.
    - intros i _. destruct (Nat.eq_dec i 0) as [->|h]; [rewrite E0; lra|].
      destruct (le_dec i n); [rewrite E1 by lia; lra|rewrite E2 by lia; lra].
    - unfold V. rewrite Nat.add_assoc, seq_app. pose proof (Hsum (fun w => w)) as h. cbv beta in h. simpl (0 + _)%nat. rewrite <- Hs. exact h. }
  exists p. split; [assumption|]. split; [assumption|]. split; [assumption|]. split; [assumption|].
  assert (Hd : disjoint_sets V (seq 0 (1 + n)) (seq (1 + n) m)).
  { unfold V. repeat split; try apply seq_NoDup; [intros i Hi; apply in_seq in Hi; lia|apply in_seq in H; lia|].
    intros h. apply in_seq in H. apply in_seq in h. lia. }
  assert (HM : seq (1 + n) m <> nil) by (destruct m; [lia|discriminate]).
  assert (Htop : top_rejected V (seq 0 (1 + n)) (seq (1 + n) m) p).
  { intros i j _ Hj HjA HjM. exfalso. apply HjM, in_seq. rewrite in_seq in HjA. unfold V in Hj. lia. }
  assert (HA : forall i, In i (seq 0 (1 + n)) -> p i = x \/ p i = y).
  { intros i Hi. apply in_seq in Hi. destruct (Nat.eq_dec i 0) as [->|h]; [now left|right; apply E1; lia]. }
  assert (HB : forall i, In i (seq (1 + n) m) -> p i = z) by (intros i Hi; apply in_seq in Hi; apply E2; lia).
  rewrite <- (seq_length m (1 + n)) at 1 2 3. split; intros HVy.
  - apply (ahead_attained V (seq 0 (1 + n)) (seq (1 + n) m) 0 p); auto; [apply in_seq; lia|lra|].
    intros b Hb hb. apply in_seq in Hb. rewrite E1, seq_length by lia. apply Rmult_le_reg_r with (INR m + 1); [lra|].
    unfold Rdiv. rewrite Rmult_assoc, Rinv_l by lra. rewrite EV in HVy. lra.
  - apply top_competitors; auto. assert (HVi : 0 < / INR V) by (apply Rinv_0_lt_compat; lra).
    assert (Hyi : / INR V <= y) by (apply Rmult_le_reg_l with (INR V); [lra|]; rewrite Rinv_r by lra; assumption).
    assert (Hzi : z <= / INR V).
    { apply Rmult_le_reg_l with (INR V); [lra|]. rewrite Rinv_r by lra. apply Rmult_le_reg_l with (INR m); [lra|].
      assert ((INR n + 1) * 1 <= (INR n + 1) * (INR V * y)) by (apply Rmult_le_compat_l; lra).
      assert (INR V * y <= INR V * x) by (apply Rmult_le_compat_l; lra).
      assert (INR V * (x + INR n * y + INR m * z) = INR V) by (rewrite Hs; ring). lra. }
    replace (all_levelled n m x y z) with (sum (seq 0 (1 + n) ++ seq (1 + n) m) (fun i => p i * ln (p i / / INR V))).
    + apply (pool_least V); auto; [lra|]. unfold pool_of. repeat split; try apply seq_NoDup; try apply incl_refl; try tauto.
      * intros a h. destruct (HA a h) as [-> | ->]; lra.
      * intros i h. rewrite (HB i h). lra.
      * pose proof (Hsum (fun w => w)) as h. cbv beta in h. change (sum _ p) with (sum (seq 0 (1 + n) ++ seq (1 + n) m) (fun i => p i)).
        rewrite h, Hs, app_length, !seq_length, plus_INR, S_INR. rewrite EV in *. field. lra.
    + rewrite (Hsum (fun w => w * ln (w / / INR V))). unfold all_levelled, Rdiv. rewrite Rinv_inv, EV. cbv zeta.
      replace (INR n + INR m + 1) with (1 + (INR n + INR m)) by ring. rewrite !(Rmult_comm (1 + (INR n + INR m))). ring.
Qed.

Theorem M3p_sharp : Statements.M3p_sharp.
Proof.
  intros m alpha p1 Hm Hal Hp1 Hmass. assert (Hm1 : 1 <= INR m) by (change 1 with (INR 1); now apply le_INR).
  assert (Ht : 0 < alpha * p1) by (apply Rmult_lt_0_compat; lra).
  destruct (archimed_cor1 (alpha * p1) Ht) as (n & Hn & Hn0). assert (HnR : 0 < INR n) by now apply lt_0_INR.
  assert (Hn1 : 1 <= INR n * (alpha * p1)).
  { apply Rmult_le_reg_l with (/ INR n); [now apply Rinv_0_lt_compat|]. rewrite <- Rmult_assoc, Rinv_l, Rmult_1_l; lra. }
  assert (0 <= INR m * (alpha * p1)) by (apply Rmult_le_pos; lra).
  destruct (threshold_attained_m m n ((1 - alpha) * p1) (alpha * p1) Hm ltac:(lia)) as (p & h1 & h2 & h3 & _ & h5); try lra.
  { apply Rmult_le_pos; lra. }
  exists (1 + (m + n))%nat, p. split; [assumption|]. split; [rewrite h2; ring|]. split; [assumption|].
  replace (p1 * one_ahead m 1 alpha) with (one_ahead m ((1 - alpha) * p1 + alpha * p1) (alpha * p1)); [assumption|].
  rewrite <- one_ahead_scale by lra. f_equal; ring.
Qed.

Theorem second_always_rejected : Statements.M3p_one_candidate.
Proof.
  intros alpha p1 Hal Hp1. assert (Hinv : 1 < p1 * (1 + alpha)).
  { destruct Hp1 as [h _]. apply Rmult_lt_compat_r with (r := 1 + alpha) in h; [|lra]. unfold Rdiv in h. rewrite Rmult_assoc, Rinv_l in h; lra. }
  assert (Hhalf : 1 / 2 < p1) by nra. split.
  - intros V p Hp HV E0. assert (Hle : forall j, (j < V)%nat -> j <> 0%nat -> p j <= 1 - p1).
    { intros j Hj h. pose proof (pair_mass_le_1 V 0 j p Hp HV Hj ltac:(congruence)). lra. }
    split.
    + intros i. rewrite E0. split; [intros [<-|[]]; split; [assumption|rewrite E0; nra]|].
      intros [h1 h2]. destruct (Nat.eq_dec i 0) as [->|h]; [now left|]. specialize (Hle i h1 h). lra.
    + intros x Hx. assert (H2 : (2 <= V)%nat).
      { destruct Hx as [(q & _ & (M & _ & h2 & h3 & _) & _) _]. destruct M as [|i M]; [discriminate|].
        destruct (h3 i ltac:(now left)) as [k1 k2]. cbn in k2. lia. }
      destruct (list_min (seq 1 (V - 1)) (fun i => - p i)) as (b & Hb & Hmin); [destruct V as [|[|V]]; [lia|lia|discriminate]|].
      apply in_seq in Hb. assert (Hpb : p b <= 1 - p1) by (apply Hle; lia).
      pose proof (strict_greedy V 0 b p Hp HV ltac:(lia) ltac:(lia) ltac:(lra)
        ltac:(intros j Hj h; specialize (Hmin j ltac:(apply in_seq; lia)); lra)) as H.
      pose proof (proj1 Hp b ltac:(lia)). rewrite (certificate_unique _ _ _ _ _ _ Hx H).
      apply Rle_trans with (phi (p 0%nat - p b)); [apply phi_nondecr; lra|]. apply two_point_ge_phi; [lra|].
      now apply (pair_mass_le_1 V); try lia.
  - set (p := fun i : nat => match i with O => p1 | _ => 1 - p1 end). exists p.
    assert (Hp : prob 2 p) by (split; [intros [|i] _; cbn; lra|unfold sum; cbn; lra]). split; [assumption|]. split; [reflexivity|].
    pose proof (strict_greedy 2 0 1 p Hp ltac:(lia) ltac:(lia) ltac:(lia) ltac:(cbn; lra)) as H.
    assert (Htop : forall j, (j < 2)%nat -> j <> 0%nat -> p j <= p 1%nat) by (intros [|j] h1 h2; [easy|cbn; lra]). specialize (H Htop).
    pose proof (two_point_phi (p 0%nat) (p 1%nat) ltac:(cbn; lra)) as E.
    rewrite E in H. cbn in H. replace (p1 + (1 - p1)) with 1 in H by ring. replace ((p1 - (1 - p1)) / 1) with (2 * p1 - 1) in H by field.
    now rewrite Rmult_1_l in H.
Qed.

Theorem spike : Statements.MS_attained.
Proof.
  intros m g Hm Hg p. assert (Hm1 : 1 <= INR m) by (apply (le_INR 1); lia).
  destruct (crowded_rows m 1%nat ((1 + g) / 2) ((1 - g) / 2) 0 Hm ltac:(lra) ltac:(lra) ltac:(simpl; lra)) as (r & Hr & E0 & E1 & Eo & Hsmall & Hlarge).
  assert (Er : forall i, p i = r i).
  { intros [|[|i]]; cbn; [now rewrite E0|now rewrite E1 by lia|now rewrite Eo by lia]. }
  assert (EV : INR (1 + (1 + m)) = INR m + 2) by (rewrite !plus_INR; simpl; lra). rewrite EV in Hsmall, Hlarge.
  assert (Hset : forall a, 0 < a -> a <= p 0%nat -> a <= p 1%nat -> forall i, In i [0%nat; 1%nat] <-> (i < 2 + m)%nat /\ a <= p i).
  { intros a h h0 h1 i. split; [intros [<-|[<-|[]]]; (split; [lia|assumption])|].
    intros [_ k]. destruct i as [|[|i]]; [now left|right; now left|cbn in k; lra]. }
  split; [now apply (prob_ext _ r)|]. split; [|split; [|split; [|split]]].
  - intros h. apply (certificate_ext _ _ _ r); [|exact Er]. replace (ln (1 + INR m / 2) + phi g) with (all_levelled 1%nat m ((1 + g) / 2) ((1 - g) / 2) 0); [apply Hlarge; lra|].
    unfold all_levelled, phi. cbv zeta. simpl (INR 1). replace (1 + INR m + 1) with (2 * (1 + INR m / 2)) by field.
    replace (2 * (1 + INR m / 2) * ((1 + g) / 2)) with ((1 + INR m / 2) * (1 + g)) by field.
    replace (2 * (1 + INR m / 2) * ((1 - g) / 2)) with ((1 + INR m / 2) * (1 - g)) by field. rewrite !ln_mult by lra. field.
  - intros h. apply (certificate_ext _ _ _ r); [|exact Er]. replace ((1 + g) / 2 * ln (INR m + 1)) with (one_ahead m ((1 + g) / 2) 0); [apply Hsmall; lra|].
    unfold one_ahead. cbv zeta. replace ((1 + g) / 2 / (((1 + g) / 2 + INR m * 0) / (INR m + 1))) with (INR m + 1) by (field; lra). ring.
  - intros t Ht. apply Hset; cbn; lra.
  - intros alpha Ha Hag. apply Hset; cbn; nra.
  - intros tau Ht. apply Hset; cbn; lra.
Qed.
