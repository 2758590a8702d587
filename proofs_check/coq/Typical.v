(** * Typical acceptance: M5t, where its bounds are attained; T6, its threshold from one token's probability. *)

From Coq Require Import Reals List Arith Lra Lia Ranalysis5.
From Draftcert Require Statements.
From Draftcert Require Import Definitions Sums LogFacts StrictGreedy Orders Guarantee Duality Candidates.
Import ListNotations.
Open Scope R_scope.

Theorem typical_attained_m : Statements.M5t_candidates_sharp.
Proof.
  intros m eps delta g Hm Hdel Hg b Hb Hpow. destruct (runner_up_attained m g Hm ltac:(lra)) as (h1 & _ & h2 & h3).
  destruct (flat_attained (m + 1) 1 m g Hm (Nat.le_refl 1) ltac:(lia) ltac:(lra)) as (_ & E0 & Ej & _).
  replace (INR (m + 1)) with (INR m + 1) in E0, Ej by (rewrite plus_INR; reflexivity). fold b in E0, Ej.
  set (p := flat_family (m + 1) g) in *. pose proof (pos_INR m) as Hm0.
  assert (Hb0 : 0 < b) by (apply Rdiv_lt_0_compat; lra). assert (Emass : g + b + INR m * b = 1) by (unfold b; field; lra).
  exists p. split; [assumption|]. split; [assumption|]. split; [|assumption].
  set (E := sum (seq 0 (m + 1)) (fun j => p j * ln (p j))).
  assert (HE : E = (g + b) * ln (g + b) + INR m * (b * ln b)).
  { unfold E. rewrite Nat.add_comm. cbn [Nat.add seq]. rewrite sum_cons, E0, (sum_ext _ _ (fun _ => b * ln b)).
    - now rewrite sum_const, seq_length.
    - intros i Hi. apply in_seq in Hi. now rewrite Ej by lia. }
  intros i. split.
  - intros [<-|[]]. split; [lia|]. apply (typical_contains_multiplicative (m + 1)%nat p (p 0%nat)); auto; try lia; try (rewrite E0; lra).
    + intros j _. destruct (Nat.eq_dec j 0) as [->|h]; [lra|rewrite E0, Ej by assumption; lra].
    + rewrite E0. nra.
  - intros [_ Hi]. destruct (Nat.eq_dec i 0) as [->|h]; [now left|exfalso]. rewrite Ej in Hi by assumption. apply (Rlt_not_le _ _ Hi).
    apply Rmin_glb; [assumption|]. rewrite <- (exp_ln delta), <- exp_plus by lra. rewrite <- (exp_ln b) at 1 by assumption.
    rewrite ln_div in Hpow by lra.
    assert (Hle : ln b <= ln delta + E).
    { rewrite HE. assert (k : ln b = (g + b + INR m * b) * ln b) by (rewrite Emass; ring). lra. }
    destruct Hle as [k|k]; [left; now apply exp_increasing|rewrite k; lra].
Qed.

(** The larger the first token, and the smaller the others, the smaller the relative threshold at which these are rejected. *)
Lemma relative_falls h b h' b' : 0 < b' -> b' < b -> b <= h -> h < h' -> h' * ln (b' / h') < h * ln (b / h).
Proof.
  intros H0 Hb Hbh Hh. rewrite !ln_div by lra. pose proof (ln_increasing b' b H0 Hb). pose proof (ln_increasing h h' ltac:(lra) Hh).
  pose proof (ln_nondecr b h ltac:(lra) Hbh). nra.
Qed.

Theorem typical_from_a_margin_on : Statements.M5t_from_a_margin_on.
Proof.
  split.
  - intros m g g' Hm Hg Hg' b relative. assert (H1 : 1 <= INR m) by (apply (le_INR 1); lia).
    assert (Eb : forall x, (INR m + 1) * b x = 1 - x) by (intros x; unfold b; field; lra).
    assert (Hb : b g' < b g) by (apply Rmult_lt_reg_l with (INR m + 1); rewrite ?Eb; lra). split; [exact Hb|].
    apply relative_falls; [apply Rdiv_lt_0_compat; lra|exact Hb|lra|].
    apply Rmult_lt_reg_l with (INR m + 1); [lra|]. rewrite !Rmult_plus_distr_l, !Eb. nra.
  - intros delta Hdel. set (f := fun x => (1 - x) * ln (x / (1 - x))).
    assert (Hmono : forall x y, 0 < x -> x < y -> y <= 1 / 2 -> f x < f y) by (intros x y hx hxy hy; apply relative_falls; lra).
    assert (Hhalf : f (1 / 2) = 0) by (unfold f; replace (1 / 2 / (1 - 1 / 2)) with 1 by field; rewrite ln_1; ring).
    assert (Hnu : exists nu, 0 < nu <= 1 / 2 /\ f nu = ln delta).
    { destruct (Req_dec delta 1) as [->|h1]; [exists (1 / 2); rewrite Hhalf, ln_1; lra|].
      assert (Hl : ln delta < 0) by (rewrite <- ln_1; apply ln_increasing; lra). set (x := delta * delta / 4).
      assert (Hx : 0 < x < 1 / 4) by (unfold x; nra).
      destruct (IVT_interv (fun y => f y - ln delta) x (1 / 2)) as (nu & Hnu & E); [|lra| |lra|exists nu; lra].
      - intros y Hy. apply (continuity_pt_minus f (fun _ => ln delta)); [|apply derivable_continuous_pt, derivable_pt_const].
        apply (continuity_pt_mult (fun y => 1 - y) (fun y => ln (y / (1 - y)))).
        + apply (continuity_pt_minus (fun _ => 1) id); apply derivable_continuous_pt; [apply derivable_pt_const|apply derivable_pt_id].
        + apply (continuity_pt_comp (fun y => y / (1 - y)) ln).
          * apply (continuity_pt_div id (fun y => 1 - y)); [apply derivable_continuous_pt, derivable_pt_id| |lra].
            apply (continuity_pt_minus (fun _ => 1) id); apply derivable_continuous_pt; [apply derivable_pt_const|apply derivable_pt_id].
          * apply derivable_continuous_pt. exists (/ (y / (1 - y))). apply derivable_pt_lim_ln, Rdiv_lt_0_compat; lra.
      - (* ln(x/(1-x)) <= ln(2x), which is negative *)
        assert (h : x / (1 - x) <= 2 * x).
        { apply Rmult_le_reg_r with (1 - x); [lra|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l by lra. nra. }
        apply ln_nondecr in h; [|apply Rdiv_lt_0_compat; lra].
        assert (E2 : ln (2 * x) = ln delta + ln delta - ln 2).
        { unfold x. replace (2 * (delta * delta / 4)) with (delta * delta / 2) by field. rewrite ln_div, ln_mult by nra. ring. }
        pose proof ln2_pos. unfold f. nra. }
    destruct Hnu as (nu & Hnu & Enu). exists nu. split; [exact Hnu|]. split; [exact Enu|]. intros eps g Hg b.
    replace (g + b) with (1 - b) by (unfold b; field). fold (f b). rewrite <- Enu.
    assert (Hb : 0 < b <= 1 / 2) by (unfold b; lra). assert (Eb : g = 1 - 2 * b) by (unfold b; field). split.
    + intros H. assert (Hm : b <= Rmin eps nu) by lra. pose proof (Rmin_l eps nu). pose proof (Rmin_r eps nu). split; [lra|].
      destruct (Rlt_dec b nu) as [h|h]; [left; apply Hmono; lra|replace b with nu by lra; lra].
    + intros [h1 h2]. enough (b <= Rmin eps nu) by lra. apply Rmin_glb; [exact h1|]. apply Rnot_lt_le. intros h.
      pose proof (Hmono nu b ltac:(lra) h ltac:(lra)). lra.
Qed.

Theorem typical_uniform : Statements.M5t_uniform.
Proof.
  intros V eps i HV Heps p. assert (HR : 0 < INR V) by (apply lt_0_INR; lia). assert (Hi : 0 < / INR V) by now apply Rinv_0_lt_compat.
  split; [split; [intros j _; unfold p; lra|unfold p; rewrite sum_const, seq_length; field; lra]|].
  change (fun j : nat => p j * ln (p j)) with (fun _ : nat => / INR V * ln (/ INR V)). rewrite sum_const, seq_length. unfold p.
  replace (INR V * (/ INR V * ln (/ INR V))) with (ln (/ INR V)) by (field; lra).
  rewrite exp_ln by assumption. apply Rmin_glb; [|lra]. apply Rmult_le_reg_l with (INR V); [assumption|]. rewrite Rinv_r; lra.
Qed.

(** [u ln(u/(u-g))] falls with [u]. *)
Lemma ratio_loss_falls g u v : 0 <= g -> g < u <= v -> v * ln (v / (v - g)) <= u * ln (u / (u - g)).
Proof.
  intros Hg Hu. assert (Hr : 0 < v / (v - g)) by (apply Rdiv_lt_0_compat; lra).
  pose proof (scaled_term u (u - g) (v / (v - g)) ltac:(lra) ltac:(lra) ltac:(lra) Hr) as H.
  pose proof (ln_le_sub1 (v / (v - g)) Hr) as H1. set (L := ln (v / (v - g))) in *.
  apply Rmult_le_compat_l with (r := v - u) in H1; [|lra].
  assert (E : (v - u) * (v / (v - g) - 1) = u - v / (v - g) * (u - g)) by (field; lra). lra.
Qed.

Theorem typical_never_whole : Statements.M5t_never_whole.
Proof.
  intros V a b p eps delta g Hp Ha Hb Hba Epb Hg Hdel Heps Hpow. pose proof (pair_mass_le_1 V a b p Hp Ha Hb ltac:(congruence)) as Hpair.
  destruct (list_min (seq 0 V) p) as (i & Hi & Hmin); [intros E; apply in_vocab in Ha; now rewrite E in Ha|].
  apply in_vocab in Hi. exists i. split; [assumption|].
  assert (Hall : forall j, (j < V)%nat -> p i <= p j) by (intros j Hj; now apply Hmin, in_vocab). pose proof (Hall b Hb) as Hib.
  apply Rmin_glb; [lra|]. destruct (proj1 Hp i Hi) as [Hpos|<-]; [|left; apply Rmult_lt_0_compat; [assumption|apply exp_pos]].
  set (E := sum (seq 0 V) (fun j => p j * ln (p j))). rewrite <- (exp_ln delta), <- exp_plus by assumption. rewrite <- (exp_ln (p i)) at 1 by assumption.
  assert (Hle : ln (p i) <= ln delta + E).
  { assert (H0 : p a * (ln (p a) - ln (p i)) <= E - ln (p i)).
    { replace (E - ln (p i)) with (sum (seq 0 V) (fun j => p j * (ln (p j) - ln (p i)))).
      - apply (single_le_sum (seq 0 V) (fun j => p j * (ln (p j) - ln (p i)))); [now apply in_vocab|]. intros j Hj. apply in_vocab in Hj. specialize (Hall j Hj).
        apply Rmult_le_pos; [lra|]. pose proof (ln_nondecr (p i) (p j) Hpos Hall). lra.
      - rewrite (sum_ext _ _ (fun j => p j * ln (p j) - ln (p i) * p j)) by (intros; ring). rewrite sum_minus, sum_scal, (proj2 Hp). fold E. ring. }
    pose proof (ratio_loss_falls g (p a) ((1 + g) / 2) ltac:(lra) ltac:(lra)) as H1.
    replace ((1 + g) / 2 / ((1 + g) / 2 - g)) with ((1 + g) / (1 - g)) in H1 by (field; lra). rewrite !ln_div in H1 by lra. rewrite ln_div in Hpow by lra.
    pose proof (ln_nondecr (p i) (p a - g) Hpos ltac:(lra)) as H2. apply Rmult_le_compat_l with (r := p a) in H2; lra. }
  destruct Hle as [k|k]; [left; now apply exp_increasing|rewrite k; lra].
Qed.

Theorem rank_of_threshold : Statements.T6_rank.
Proof.
  intros V p T tau Hp HT Hin. rewrite <- (proj2 Hp), <- sum_const. apply Rle_trans with (sum T p); [apply sum_le; intros i Hi; now apply Hin|].
  apply sum_sub_le; auto using NoDup_seq; [intros i Hi; now apply in_vocab, Hin|intros i Hi; now apply Hp, in_vocab].
Qed.

Lemma ln_concave a b t : 0 < a -> 0 < b -> 0 <= t <= 1 -> t * ln a + (1 - t) * ln b <= ln (t * a + (1 - t) * b).
Proof.
  intros Ha Hb Ht. set (m := t * a + (1 - t) * b). assert (Hm : 0 < m) by (unfold m; destruct (Req_dec t 0) as [->|h]; [lra|assert (0 < t * a) by (apply Rmult_lt_0_compat; lra); assert (0 <= (1 - t) * b) by (apply Rmult_le_pos; lra); lra]).
  pose proof (ln_le_sub1 (a / m) ltac:(now apply Rdiv_lt_0_compat)) as h1. pose proof (ln_le_sub1 (b / m) ltac:(now apply Rdiv_lt_0_compat)) as h2.
  rewrite ln_div in h1, h2 by assumption. apply Rmult_le_compat_l with (r := t) in h1; [|lra]. apply Rmult_le_compat_l with (r := 1 - t) in h2; [|lra].
  assert (E : t * (a / m - 1) + (1 - t) * (b / m - 1) = 0) by (replace (t * (a / m - 1) + (1 - t) * (b / m - 1)) with ((t * a + (1 - t) * b) / m - 1) by (field; lra); fold m; field; lra).
  lra.
Qed.

Theorem entropy_power : Statements.T6_entropy_power.
Proof.
  split; [|intros G; split; [|split]].
  - intros V p x f Hp Hx Hf s E. pose proof (prob_le_1 V p x Hp Hx) as Hs. fold s in Hs. split.
    + apply Rle_trans with (sum (seq 0 V) (fun i => ln (1 - s + f) * p i + (if mem [x] i then s * (ln (s + f) - ln (1 - s + f)) else 0))).
      * apply sum_le. intros i Hi. apply in_vocab in Hi. destruct (mem [x] i) eqn:Em.
        -- apply mem_true in Em. destruct Em as [<-|[]]. fold s. lra.
        -- apply mem_false in Em. destruct (proj1 Hp i Hi) as [h|<-]; [|lra].
           pose proof (pair_mass_le_1 V x i p Hp Hx Hi ltac:(intros ->; apply Em; now left)) as h1. fold s in h1.
           rewrite Rplus_0_r, (Rmult_comm (ln (1 - s + f))). apply Rmult_le_compat_l; [lra|]. apply ln_nondecr; lra.
      * rewrite sum_plus, sum_scal, (proj2 Hp), sum_indicator, sum_cons, sum_nil; auto using NoDup_seq; [lra|repeat constructor; simpl; tauto|].
        intros i [<-|[]]. now apply in_vocab.
    + intros Hf0. replace (ln f) with (sum (seq 0 V) (fun i => ln f * p i)) by (rewrite sum_scal, (proj2 Hp); ring).
      apply sum_le. intros i Hi. apply in_vocab in Hi. pose proof (proj1 Hp i Hi) as h. rewrite (Rmult_comm (ln f)).
      apply Rmult_le_compat_l; [assumption|]. apply ln_nondecr; lra.
  - intros f s s' t Hf Hs Hs' Ht. unfold G. set (m := t * s + (1 - t) * s').
    (* u ln(u + f) is convex *)
    assert (H : forall u v, 0 <= u -> 0 <= v -> (t * u + (1 - t) * v) * ln (t * u + (1 - t) * v + f) <= t * (u * ln (u + f)) + (1 - t) * (v * ln (v + f))).
    { intros u v Hu Hv. pose proof (xlnx_convex (u + f) (v + f) t ltac:(lra) ltac:(lra) Ht) as h.
      replace (t * (u + f) + (1 - t) * (v + f)) with (t * u + (1 - t) * v + f) in h by ring.
      destruct Hf as [Hf|<-]; [|rewrite !Rplus_0_r in *; lra].
      pose proof (ln_concave (u + f) (v + f) t ltac:(lra) ltac:(lra) Ht) as h'.
      replace (t * (u + f) + (1 - t) * (v + f)) with (t * u + (1 - t) * v + f) in h' by ring. apply Rmult_le_compat_l with (r := f) in h'; lra. }
    pose proof (H s s' ltac:(lra) ltac:(lra)) as h1. pose proof (H (1 - s) (1 - s') ltac:(lra) ltac:(lra)) as h2.
    replace (t * (1 - s) + (1 - t) * (1 - s')) with (1 - m) in h2 by (unfold m; ring). fold m in h1.
    pose proof (ln_concave s s' t ltac:(lra) ltac:(lra) Ht) as h3. fold m in h3. lra.
  - intros s s' Hs Hs'. unfold G. rewrite !Rplus_0_r. pose proof (ln_nondecr s s' ltac:(lra) ltac:(lra)).
    pose proof (ln_nondecr (1 - s') (1 - s) ltac:(lra) ltac:(lra)). pose proof (ln_nondecr s' (1 - s') ltac:(lra) ltac:(lra)).
    assert (0 <= (s' - s) * (ln (1 - s') - ln s')) by (apply Rmult_le_pos; lra).
    assert (0 <= (1 - s) * ((ln s' - ln (1 - s')) - (ln s - ln (1 - s)))) by (apply Rmult_le_pos; lra). lra.
  - intros s [Hs Hs1]. unfold G. rewrite !Rplus_0_r. destruct Hs1 as [h| ->]; [|replace (1 - 1) with 0 by ring; rewrite ln_1; lra].
    pose proof (ln_nondecr (1 - s) s ltac:(lra) ltac:(lra)). assert (0 <= (1 - s) * (ln s - ln (1 - s))) by (apply Rmult_le_pos; lra). lra.
Qed.

Lemma small_inverse (l : list R) : (forall x, In x l -> 0 < x) -> exists n, (0 < n)%nat /\ forall x, In x l -> / INR n < x.
Proof.
  induction l as [|a l IH]; intros H; [exists 1%nat; split; [lia|easy]|].
  destruct IH as (n & Hn0 & Hn); [intros x h; apply H; now right|]. destruct (archimed_cor1 a (H a (or_introl eq_refl))) as (k & Hk & Hk0).
  exists (n + k)%nat. split; [lia|]. apply lt_0_INR in Hn0. apply lt_0_INR in Hk0. rewrite plus_INR. intros x [<-|h].
  - apply Rle_lt_trans with (/ INR k); [apply Rinv_le_contravar; lra|assumption].
  - apply Rle_lt_trans with (/ INR n); [apply Rinv_le_contravar; lra|auto].
Qed.

(** What two accepted tokens certify, beside dust at [y], with the factors [a] and [b] and [z] on the competitors *)
Lemma two_and_dust m K p y a b z c :
  (1 <= m)%nat -> prob (2 + K) p -> (forall j, (1 < j)%nat -> p j = y) -> 1 <= a -> 1 <= b -> 0 < z <= 1 ->
  a + b + INR m * z <= INR m + 2 -> certificate (2 + K) [0%nat; 1%nat] m p c ->
  p 0%nat * ln a + p 1%nat * ln b + INR m * (y * ln z) <= c.
Proof.
  intros Hm Hp Ey Ha Hb Hz Hs Hc. destruct (duality _ _ m p c Hp Hm Hc) as (M & h1 & h2 & h3 & H).
  assert (HM : incl M (seq 2 K)).
  { intros i Hi. destruct (h3 i Hi) as [k1 k2]. cbn [In] in k2. apply in_seq. lia. }
  set (r := fun i : nat => match i with O => a | 1%nat => b | _ => if mem M i then z else 1 end).
  assert (Hr : forall i, (1 < i)%nat -> r i = if mem M i then z else 1) by (intros [|[|i]] k; (lia || reflexivity)).
  specialize (H r). cbn [Nat.add seq] in H. rewrite !sum_cons in H. cbn [r] in H.
  rewrite (sum_ext (seq 2 K) (fun i => p i * ln (r i)) (fun i => if mem M i then y * ln z else 0)) in H.
  2:{ intros i Hi. apply in_seq in Hi. rewrite Ey, Hr by lia. destruct (mem M i); rewrite ?ln_1; ring. }
  rewrite (sum_ext (seq 2 K) r (fun i => 1 + (if mem M i then z - 1 else 0))) in H.
  2:{ intros i Hi. apply in_seq in Hi. rewrite Hr by lia. destruct (mem M i); ring. }
  rewrite sum_plus, !sum_indicator, !sum_const, seq_length, h2 in H by (auto using seq_NoDup).
  eapply Rle_trans; [|apply H].
  - lra.
  - intros [|[|i]] _; cbn; [lra|lra|]. destruct (mem M (S (S i))); lra.
  - intros i Hi. pose proof (HM i Hi) as k. apply in_seq in k. rewrite Hr, mem_in by (assumption || lia). lra.
  - intros [|[|i]] _ Hi; cbn; [lra|lra|]. rewrite mem_out by assumption. lra.
  - rewrite !S_INR. lra.
Qed.

Theorem typical_supremum : Statements.M5t_supremum.
Proof.
  intros m g eps delta e Hm Hg Heps Hdel He. assert (Hm1 : 1 <= INR m) by (change 1 with (INR 1); now apply le_INR).
  set (L := ln (INR m + 2)). assert (HL : 0 <= L) by (unfold L; rewrite <- ln_1; apply ln_nondecr; lra).
  (* [z] on the competitors, the mass [w] of dust *)
  set (z := Rmin (/ (2 * INR m)) (e / (4 * INR m))).
  assert (Hz : 0 < z) by (apply Rmin_glb_lt; [apply Rinv_0_lt_compat|apply Rdiv_lt_0_compat]; lra).
  assert (Hz1 : INR m * z <= 1 / 2).
  { pose proof (Rmin_l (/ (2 * INR m)) (e / (4 * INR m))) as k. fold z in k. apply Rmult_le_compat_l with (r := INR m) in k; [|lra].
    replace (INR m * / (2 * INR m)) with (1 / 2) in k by (field; lra). assumption. }
  assert (Hz2 : INR m * z <= e / 4).
  { pose proof (Rmin_r (/ (2 * INR m)) (e / (4 * INR m))) as k. fold z in k. apply Rmult_le_compat_l with (r := INR m) in k; [|lra].
    replace (INR m * (e / (4 * INR m))) with (e / 4) in k by (field; lra). assumption. }
  assert (Hz3 : z <= 1) by nra. assert (Hlnz : ln z <= 0) by (rewrite <- ln_1; now apply ln_nondecr).
  set (w := Rmin ((1 - g) / 2) (e / (4 * (L + 1)))). assert (Hw : 0 < w) by (apply Rmin_glb_lt; apply Rdiv_lt_0_compat; lra).
  pose proof (Rmin_l ((1 - g) / 2) (e / (4 * (L + 1)))) as Hw1. fold w in Hw1.
  assert (Hw2 : w * L <= e / 4).
  { pose proof (Rmin_r ((1 - g) / 2) (e / (4 * (L + 1)))) as k. fold w in k. apply Rmult_le_compat_r with (r := L + 1) in k; [|lra].
    replace (e / (4 * (L + 1)) * (L + 1)) with (e / 4) in k by (field; lra). lra. }
  set (x := (1 - w + g) / 2). set (v := (1 - w - g) / 2). assert (Hv : 0 < v <= x /\ x <= 1) by (unfold v, x; lra). destruct Hv as [Hv Hx1].
  set (B := ln delta + x * ln x + v * ln v).
  destruct (small_inverse [eps; v; exp (B / (1 - w)); exp ((ln v - ln delta) / w - 1); e / (4 * INR m * (1 - ln z))]) as (n & Hn0 & Hn).
  { intros u [<-|[<-|[<-|[<-|[<-|[]]]]]]; try apply exp_pos; try lra. apply Rdiv_lt_0_compat; [assumption|apply Rmult_lt_0_compat; lra]. }
  set (K := (m + n)%nat). assert (HnR : 0 < INR n) by now apply lt_0_INR. assert (HKn : INR n <= INR K) by (apply le_INR; unfold K; lia).
  set (y := w / INR K). assert (EK : INR K * y = w) by (unfold y; field; lra). assert (Hy : 0 < y) by (apply Rdiv_lt_0_compat; lra).
  assert (Hyn : y <= / INR n).
  { apply Rle_trans with (/ INR K); [|now apply Rinv_le_contravar]. unfold y, Rdiv. rewrite <- (Rmult_1_l (/ INR K)) at 2.
    apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat|]; lra. }
  assert (Hall : forall u, In u [eps; v; exp (B / (1 - w)); exp ((ln v - ln delta) / w - 1); e / (4 * INR m * (1 - ln z))] -> y < u).
  { intros u h. specialize (Hn u h). lra. }
  assert (Hln : forall u, y < exp u -> ln y < u) by (intros u h; rewrite <- (ln_exp u); now apply ln_increasing).
  pose proof (Hall eps ltac:(cbn; tauto)) as y1. pose proof (Hall v ltac:(cbn; tauto)) as y2. pose proof (Hln _ (Hall (exp (B / (1 - w))) ltac:(cbn; tauto))) as y3.
  pose proof (Hln _ (Hall (exp ((ln v - ln delta) / w - 1)) ltac:(cbn; tauto))) as y4.
  pose proof (Hall (e / (4 * INR m * (1 - ln z))) ltac:(cbn; tauto)) as y5. clear Hall Hn.
  set (p := fun i : nat => match i with O => x | 1%nat => v | _ => y end).
  assert (Ey : forall j, (1 < j)%nat -> p j = y) by (intros [|[|j]] h; (lia || reflexivity)).
  assert (Hdust : forall f, sum (seq 0 (2 + K)) (fun i => f (p i)) = f x + (f v + INR K * f y)).
  { intros f. cbn [Nat.add seq]. rewrite !sum_cons, (sum_ext _ _ (fun _ => f y)), sum_const, seq_length; [reflexivity|].
    intros i h. apply in_seq in h. now rewrite Ey by lia. }
  assert (Hp : prob (2 + K) p).
  { split; [intros [|[|i]] _; cbn; lra|]. rewrite (Hdust (fun u => u) : sum _ p = _), EK. unfold x, v. field. }
  set (E := sum (seq 0 (2 + K)) (fun j => p j * ln (p j))).
  assert (EE : ln delta + E = B + w * ln y) by (unfold E, B; rewrite (Hdust (fun u => u * ln u)), <- EK; ring).
  assert (Hthreshold : y <= delta * exp E < v).
  { rewrite <- (exp_ln delta), <- exp_plus, EE by assumption. split.
    - rewrite <- (exp_ln y) at 1 by assumption. enough (h : ln y < B + w * ln y) by (left; now apply exp_increasing).
      apply Rmult_lt_compat_l with (r := 1 - w) in y3; [|lra]. replace ((1 - w) * (B / (1 - w))) with B in y3 by (field; lra). lra.
    - rewrite <- (exp_ln v) by lra. apply exp_increasing. apply Rmult_lt_compat_l with (r := w) in y4; [|assumption].
      replace (w * ((ln v - ln delta) / w - 1)) with (ln v - ln delta - w) in y4 by (field; lra).
      pose proof (xlnx_nonpos x ltac:(lra)). pose proof (xlnx_nonpos v ltac:(lra)). unfold B. lra. }
  destruct (proj2 (certificate_exists (2 + K)%nat [0%nat; 1%nat] m p Hp ltac:(repeat constructor; simpl; intuition discriminate)
    ltac:(intros i [<-|[<-|[]]]; lia) Hm)) as (c & Hc); [cbn [length]; unfold K; lia|].
  exists (2 + K)%nat, p, c. split; [assumption|]. split; [cbn; unfold x, v; field|]. split; [intros j h; rewrite Ey by assumption; cbn; lra|].
  split; [|split; [assumption|]].
  { fold E. pose proof (Rmin_r eps (delta * exp E)) as h. intros i. split.
    - intros [<-|[<-|[]]]; split; try lia; cbn [p]; lra.
    - intros [_ k]. destruct i as [|[|i]]; cbn [In]; [tauto|tauto|exfalso]. cbn [p] in k. apply (Rlt_not_le _ _ k). apply Rmin_glb; lra. }
  assert (Hend : forall a b, 3 / 2 <= a <= INR m + 2 -> 1 <= b <= INR m + 2 -> a + b <= INR m + 2 ->
    (1 + g) / 2 * ln a + (1 - g) / 2 * ln b - e < c).
  { intros a b Ha Hb Hab.
    pose proof (two_and_dust m K p y (a - INR m * z) b z c Hm Hp Ey ltac:(lra) ltac:(lra) ltac:(lra) ltac:(lra) Hc) as H. cbn [p] in H.
    assert (Hln1 : ln a - INR m * z <= ln (a - INR m * z)).
    { pose proof (ln_le_sub1 (a / (a - INR m * z)) ltac:(apply Rdiv_lt_0_compat; lra)) as h. rewrite ln_div in h by lra.
      assert (a / (a - INR m * z) - 1 <= INR m * z); [|lra]. apply Rmult_le_reg_r with (a - INR m * z); [lra|].
      replace ((a / (a - INR m * z) - 1) * (a - INR m * z)) with (INR m * z) by (field; lra).
      assert (0 <= INR m * z * (a - INR m * z - 1)) by (apply Rmult_le_pos; nra). lra. }
    assert (HLa : ln a <= L) by (apply ln_nondecr; lra). assert (HLb : ln b <= L) by (apply ln_nondecr; lra).
    apply Rmult_le_compat_l with (r := x) in Hln1; [|lra]. assert (x * (INR m * z) <= 1 * (INR m * z)) by (apply Rmult_le_compat_r; [nra|lra]).
    assert (w * ln a <= w * L) by (apply Rmult_le_compat_l; lra). assert (w * ln b <= w * L) by (apply Rmult_le_compat_l; lra).
    assert (Hyz : INR m * (y * - ln z) <= e / 4).
    { apply Rmult_lt_compat_l with (r := INR m * (1 - ln z)) in y5; [|apply Rmult_lt_0_compat; lra].
      replace (INR m * (1 - ln z) * (e / (4 * INR m * (1 - ln z)))) with (e / 4) in y5 by (field; lra).
      assert (0 < INR m * y) by (apply Rmult_lt_0_compat; lra). lra. }
    unfold x, v in *. lra. }
  split; intros hg.
  - pose proof (Hend ((1 + g) * ((INR m + 2) / 2)) ((1 - g) * ((INR m + 2) / 2)) ltac:(nra) ltac:(nra) ltac:(lra)) as h.
    rewrite !ln_mult in h by lra. unfold phi. replace (1 + INR m / 2) with ((INR m + 2) / 2) by field. lra.
  - pose proof (Hend (INR m + 1) 1 ltac:(lra) ltac:(lra) ltac:(lra)) as h. rewrite ln_1 in h. lra.
Qed.
