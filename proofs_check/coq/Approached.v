(** * Infima that are approached: a certificate rises by no more than [s ln(m+1)] where [s] of another target is mixed in. *)

From Coq Require Import Reals List Arith Lra Lia.
From Draftcert Require Statements.
From Draftcert Require Import Definitions Sums LogFacts Projection Competitors Ceilings StrictGreedy Margins Guarantee Candidates Vocabulary TreeSuprema.
Import ListNotations.
Open Scope R_scope.

Lemma little e L : 0 < e -> 0 <= L -> exists s, 0 < s < 1 /\ s <= e /\ s * L < e.
Proof.
  intros He HL. exists (Rmin (/ 2) (e / (2 * (L + 1)))). set (s := Rmin _ _). assert (Hl : s <= / 2) by apply Rmin_l.
  assert (Hr : s <= e / (2 * (L + 1))) by apply Rmin_r. assert (Hs : 0 < s) by (apply Rmin_glb_lt; [lra|apply Rdiv_lt_0_compat; lra]).
  apply Rmult_le_compat_r with (r := L + 1) in Hr; [|lra]. replace (e / (2 * (L + 1)) * (L + 1)) with (e / 2) in Hr by (field; lra).
  assert (0 <= s * L) by (apply Rmult_le_pos; lra). lra.
Qed.

Lemma mixed_in V A M p p' s v :
  prob V p -> prob V p' -> 0 < s < 1 -> disjoint_sets V A M -> M <> nil -> top_rejected V A M p -> top_rejected V A M p' ->
  certificate V A (length M) p v -> exists c, certificate V A (length M) (fun i => (1 - s) * p i + s * p' i) c /\ c <= v + s * ln (INR (length M) + 1).
Proof.
  intros Hp Hp' Hs Hd HM Htop Htop' Hv. set (r := fun i => (1 - s) * p i + s * p' i).
  assert (Hr : prob V r).
  { split; [intros i Hi; pose proof (proj1 Hp i Hi); pose proof (proj1 Hp' i Hi); unfold r; apply Rplus_le_le_0_compat; apply Rmult_le_pos; lra|].
    unfold r. rewrite sum_plus, !sum_scal, (proj2 Hp), (proj2 Hp'). ring. }
  destruct Hd as (HA & HM0 & HAV & HMV). assert (Hd : disjoint_sets V A M) by (repeat split; auto; now apply HMV).
  destruct (proj2 (certificate_exists V A (length M) r Hr HA HAV ltac:(destruct M; [easy|simpl; lia]))) as (c & Hc).
  { apply (certificate_exists V A (length M) p Hp HA HAV); [destruct M; [easy|simpl; lia]|now exists v]. }
  exists c. split; [assumption|]. destruct (least_exists V A M p' Hp' Hd HM) as (x & Hx).
  pose proof (certificate_is_least V A M (length M) p v Hp Hd HM eq_refl Htop Hv) as Hlv.
  assert (Hle : x <= ln (INR (length M) + 1)).
  { apply (ceiling_log V A (length M) p' x Hp'); [|assumption]. now apply top_competitors. }
  pose proof (certificate_convex V A M p p' (1 - s) v x c Hp Hp' ltac:(lra) Hd Hlv Hx) as H. replace (1 - (1 - s)) with s in H by ring. specialize (H Hc).
  pose proof (certificate_nonneg V A (length M) p v Hp Hv) as Hv0. assert (0 <= s * v) by (apply Rmult_le_pos; lra).
  assert (s * x <= s * ln (INR (length M) + 1)) by (apply Rmult_le_compat_l; lra). lra.
Qed.

Theorem crowded_rows_approached : Statements.crowded_rows_approached.
Proof.
  intros m n x y z x' y' alpha beta e Hm Hz Hyx Hmass Hx' Hy' Hmass' Ez Hth Hth' He V.
  pose proof (pos_INR m) as Hm0. destruct (crowded_rows m n x y z Hm Hz Hyx Hmass) as (p & Hp & E0 & Ey & Eo & Hsmall & Hlarge). fold V in Hp, Hsmall, Hlarge.
  destruct (little e (ln (INR m + 1)) He) as (s & Hs & Hse & HsL); [rewrite <- ln_1; apply ln_nondecr; lra|].
  set (p' := fun i : nat => match i with O => x' | _ => if le_dec i n then y' else 0 end).
  assert (Ey' : forall i, (1 <= i <= n)%nat -> p' i = y') by (intros [|i] h; [lia|unfold p'; destruct (le_dec (S i) n); [reflexivity|lia]]).
  assert (Eo' : forall i, (n < i)%nat -> p' i = 0) by (intros [|i] h; [lia|unfold p'; destruct (le_dec (S i) n); [lia|reflexivity]]).
  assert (Hp' : prob V p').
  { split; [intros [|i] _; unfold p'; [assumption|destruct (le_dec (S i) n); lra]|]. unfold V. rewrite seq_app, sum_app. cbn [Nat.add seq].
    rewrite sum_cons, sum_nil, seq_app, sum_app, (sum_ext (seq 1 n) _ (fun _ => y')), (sum_ext (seq (1 + n) m) _ (fun _ => 0)), sum_zero, sum_const, seq_length.
    - cbn. lra.
    - intros i h. apply in_seq in h. apply Eo'. lia.
    - intros i h. apply in_seq in h. apply Ey'. lia. }
  set (M := seq (1 + n) m). assert (EM : length M = m) by apply seq_length.
  assert (Hd : disjoint_sets V (seq 0 (1 + n)) M).
  { unfold M, V. repeat split; try apply seq_NoDup; intros; rewrite ?in_seq in *; lia. }
  assert (HM : M <> nil) by (intros E; rewrite E in EM; cbn in EM; lia).
  assert (Htop : forall p, top_rejected V (seq 0 (1 + n)) M p).
  { intros r i j _ Hj h1 h2. exfalso. apply h2. unfold M, V in *. rewrite in_seq in *. lia. }
  set (r := fun i => (1 - s) * p i + s * p' i).
  assert (Er0 : r 0%nat = (1 - s) * x + s * x') by (unfold r; now rewrite E0).
  assert (Ery : forall i, (1 <= i <= n)%nat -> r i = (1 - s) * y + s * y') by (intros i h; unfold r; now rewrite Ey, Ey').
  assert (Ero : forall i, (n < i)%nat -> r i = (1 - s) * z) by (intros i h; unfold r; rewrite Eo, Eo' by assumption; ring).
  assert (Hv : exists v, certificate V (seq 0 (1 + n)) m p v /\ (INR V * y <= 1 -> v = one_ahead m x z) /\ (1 <= INR V * y -> v = all_levelled n m x y z)).
  { destruct (Rle_dec (INR V * y) 1) as [h|h].
    - exists (one_ahead m x z). split; [now apply Hsmall|]. split; [reflexivity|]. intros k.
      exact (certificate_unique _ _ _ _ _ _ (Hsmall h) (Hlarge k)).
    - exists (all_levelled n m x y z). split; [apply Hlarge; lra|]. split; [lra|reflexivity]. }
  destruct Hv as (v & Hv & Ev1 & Ev2). rewrite <- EM in Hv.
  destruct (mixed_in V (seq 0 (1 + n)) M p p' s v Hp Hp' Hs Hd HM (Htop p) (Htop p') Hv) as (c & Hc & Hle). fold r in Hc. rewrite EM in Hc, Hle.
  exists s, r, c. split; [assumption|]. split; [assumption|]. split.
  { split; [intros i h; pose proof (proj1 Hp i h); pose proof (proj1 Hp' i h); unfold r; apply Rplus_le_le_0_compat; apply Rmult_le_pos; lra|].
    unfold r. rewrite sum_plus, !sum_scal, (proj2 Hp), (proj2 Hp'). ring. }
  split; [assumption|]. split; [assumption|]. split; [assumption|]. split; [|split; [assumption|split; intros h]].
  2:{ rewrite <- Ev1 by assumption. lra. }
  2:{ rewrite <- Ev2 by assumption. lra. }
  (* the threshold moves as the row does *)
  assert (Eth : alpha * r 0%nat + beta = (1 - s) * z + s * (alpha * x' + beta)) by (rewrite Er0, Ez; ring).
  assert (Hw : forall u u', z <= u -> alpha * x' + beta <= u' -> alpha * r 0%nat + beta <= (1 - s) * u + s * u').
  { intros u u' h h'. rewrite Eth. apply Rplus_le_compat; apply Rmult_le_compat_l; lra. }
  intros i. rewrite in_seq. split.
  - intros h. split; [unfold V; lia|]. destruct i as [|i]; [apply Rle_trans with ((1 - s) * x + s * x'); [apply Hw; lra|lra]|]. rewrite (Ery (S i)) by lia. apply Hw; lra.
  - intros [h1 h2]. destruct (le_dec i n) as [h|h]; [lia|exfalso]. rewrite (Ero i), Eth in h2 by lia.
    assert (0 < s * (alpha * x' + beta)) by (apply Rmult_lt_0_compat; lra). lra.
Qed.

Theorem threshold_infimum_approached : Statements.M5_approached.
Proof.
  intros m g tau e Hm Hg Htau Hmass He. assert (Hm1 : 1 <= INR m) by (change 1 with (INR 1); now apply le_INR).
  destruct (archimed_cor1 tau Htau) as (n & Hn & Hn0). assert (HnR : 0 < INR n) by now apply lt_0_INR.
  assert (Hnt : 1 < INR n * tau) by (apply Rmult_lt_compat_l with (r := INR n) in Hn; [rewrite Rinv_r in Hn|]; lra).
  assert (Hmt : 0 <= (INR m + 1) * tau) by (apply Rmult_le_pos; lra).
  destruct (threshold_attained_m m n g tau Hm ltac:(lia) ltac:(lra) Htau Hmass ltac:(lra)) as (p & Hp & E0 & Hle & E1 & Hcert).
  set (V := (1 + (m + n))%nat) in *. assert (EV : INR V = INR m + 1 + INR n) by (unfold V; rewrite !plus_INR; simpl (INR 1); ring).
  destruct (flat_attained V 1 m g Hm (Nat.le_refl 1) ltac:(unfold V; lia) ltac:(lra)) as (Hp' & E0' & Ej' & _). set (b := (1 - g) / INR V) in *.
  set (p' := flat_family V g) in *. assert (Eb : INR V * b = 1 - g) by (unfold b; field; lra).
  assert (Hb : 0 <= b < tau).
  { split; [apply Rmult_le_reg_l with (INR V); lra|]. apply Rmult_lt_reg_l with (INR V); [lra|]. rewrite Eb, EV. lra. }
  destruct (little (Rmin e (g / tau)) (ln (INR m + 1))) as (s & Hs & Hse & HsL);
    [apply Rmin_glb_lt; [assumption|now apply Rdiv_lt_0_compat]|rewrite <- ln_1; apply ln_nondecr; lra|].
  pose proof (Rmin_l e (g / tau)) as He1. pose proof (Rmin_r e (g / tau)) as He2.
  assert (Hst : s * tau <= g).
  { apply Rle_trans with (g / tau * tau); [apply Rmult_le_compat_r; lra|right; field; lra]. }
  destruct (most_likely p m (others V [0%nat]) (others_NoDup V _)) as (M & h1 & h2 & h3 & h4).
  { pose proof (others_length V [0%nat] ltac:(repeat constructor; simpl; tauto) ltac:(intros i [<-|[]]; unfold V; lia)) as k. cbn [length] in k.
    assert (eV : V = (1 + (m + n))%nat) by reflexivity. lia. }
  assert (Hd : disjoint_sets V [0%nat] M).
  { repeat split; auto; [repeat constructor; simpl; tauto|intros i [<-|[]]; unfold V; lia| |]; apply h3, in_others in H; tauto. }
  assert (Htop : top_rejected V [0%nat] M p) by (intros i j Hi Hj k1 k2; apply h4; auto; now apply in_others).
  assert (Htop' : top_rejected V [0%nat] M p').
  { intros i j Hi _ k _. apply h3, in_others in Hi. destruct Hi as [_ Hi].
    rewrite !Ej'; [lra|intros ->; apply Hi; now left|intros ->; apply k; now left]. }
  rewrite <- h2 in Hcert. destruct (mixed_in V [0%nat] M p p' s _ Hp Hp' Hs Hd ltac:(intros ->; cbn in h2; lia) Htop Htop' Hcert) as (c & Hc & Hlc). rewrite h2 in *.
  set (r := fun i => (1 - s) * p i + s * p' i) in *.
  assert (Hr : forall i, i <> 0%nat -> r i <= (1 - s) * tau + s * b).
  { intros i h. unfold r. rewrite (Ej' i h). apply Rplus_le_compat_r, Rmult_le_compat_l; [lra|auto]. }
  assert (Er1 : r 1%nat = (1 - s) * tau + s * b) by (unfold r; now rewrite E1, (Ej' 1%nat) by discriminate).
  assert (Er0 : r 0%nat = g + ((1 - s) * tau + s * b)) by (unfold r; rewrite E0, E0'; ring).
  assert (Hsb : 0 <= s * b < s * tau) by (split; [apply Rmult_le_pos|apply Rmult_lt_compat_l]; lra).
  exists V, r, c. split.
  { split; [intros i h; pose proof (proj1 Hp i h); pose proof (proj1 Hp' i h); unfold r; apply Rplus_le_le_0_compat; apply Rmult_le_pos; lra|].
    unfold r. rewrite sum_plus, !sum_scal, (proj2 Hp), (proj2 Hp'). ring. }
  split; [lra|]. split; [intros j _ h; rewrite Er1; now apply Hr|]. split; [|split; [assumption|lra]].
  intros i. split; [intros [<-|[]]; split; [unfold V; lia|lra]|]. intros [_ h]. destruct (Nat.eq_dec i 0) as [->|k]; [now left|].
  specialize (Hr i k). lra.
Qed.

Theorem first_token_approached : Statements.M3p_approached.
Proof.
  intros m alpha p1 e Hm Hal Hp1 Hmass He. pose proof (pos_INR m) as Hm0. set (K := - ln (alpha / 2)).
  assert (HK : 0 <= K) by (pose proof (ln_nondecr (alpha / 2) 1 ltac:(lra) ltac:(lra)) as h; rewrite ln_1 in h; unfold K; lra).
  destruct (little (Rmin e (alpha / 2)) (INR m * K)) as (s & Hs & Hse & HsL); [apply Rmin_glb_lt; lra|now apply Rmult_le_pos|].
  pose proof (Rmin_l e (alpha / 2)) as He1. pose proof (Rmin_r e (alpha / 2)) as He2. set (beta := alpha - s).
  assert (Hp1' : p1 <= 1) by (assert (0 <= INR m * alpha * p1) by (repeat apply Rmult_le_pos; lra); lra).
  destruct (M3p_sharp m beta p1 Hm ltac:(unfold beta; lra) Hp1) as (V & p & Hp & E0 & Hle & Hc).
  { apply Rle_trans with ((1 + INR m * alpha) * p1); [|assumption]. apply Rmult_le_compat_r; [lra|].
    apply Rplus_le_compat_l, Rmult_le_compat_l; unfold beta; lra. }
  exists V, p, (p1 * one_ahead m 1 beta). split; [assumption|]. split; [assumption|]. split; [|split; [assumption|]].
  - intros i. split.
    + intros [<-|[]]. rewrite E0. split; [|nra]. destruct V; [destruct Hp as [_ h]; cbn in h; lra|lia].
    + intros [_ h]. destruct (Nat.eq_dec i 0) as [->|k]; [now left|exfalso]. specialize (Hle i k). rewrite E0 in h.
      assert (beta * p1 < alpha * p1) by (apply Rmult_lt_compat_r; unfold beta; lra). lra.
  - pose proof (above_tangent m 1 beta 1 alpha Hm ltac:(unfold beta; lra) ltac:(lra) ltac:(lra)) as Htan.
    destruct (slopes m 1 beta Hm ltac:(unfold beta; lra)) as (Hc0 & _). cbv zeta in Htan, Hc0.
    assert (Eb : one_ahead m 1 beta = 1 * ln (1 / ((1 + INR m * beta) / (INR m + 1))) + INR m * (beta * ln (beta / ((1 + INR m * beta) / (INR m + 1))))) by reflexivity.
    set (c := (1 + INR m * beta) / (INR m + 1)) in *. assert (Hc1 : c <= 1).
    { apply Rmult_le_reg_r with (INR m + 1); [lra|]. unfold c, Rdiv. rewrite Rmult_assoc, Rinv_l by lra. unfold beta. nra. }
    assert (Hv : - ln (beta / c) <= K).
    { rewrite ln_div by (unfold beta; lra). pose proof (ln_nondecr c 1 Hc0 Hc1) as k. rewrite ln_1 in k.
      pose proof (ln_nondecr (alpha / 2) beta ltac:(lra) ltac:(unfold beta; lra)). unfold K. lra. }
    set (v := ln (beta / c)) in *. assert (H1 : one_ahead m 1 beta <= one_ahead m 1 alpha + INR m * s * - v) by (rewrite Eb; unfold beta in *; lra).
    assert (H2 : INR m * s * - v <= s * (INR m * K)).
    { replace (s * (INR m * K)) with (INR m * s * K) by ring. apply Rmult_le_compat_l; [apply Rmult_le_pos; lra|assumption]. }
    assert (H3 : p1 * one_ahead m 1 beta <= p1 * (one_ahead m 1 alpha + s * (INR m * K))) by (apply Rmult_le_compat_l; lra).
    assert (0 <= INR m * K) by (now apply Rmult_le_pos). assert (0 <= s * (INR m * K)) by (apply Rmult_le_pos; lra).
    assert (p1 * (s * (INR m * K)) <= 1 * (s * (INR m * K))) by (apply Rmult_le_compat_r; lra). lra.
Qed.
