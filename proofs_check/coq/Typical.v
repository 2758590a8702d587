(** * Typical acceptance: M5t, where its bounds are attained; T6, its threshold from one token's probability. *)

From Coq Require Import Reals List Arith Lra Lia.
From Draftcert Require Statements.
From Draftcert Require Import Definitions Sums LogFacts StrictGreedy Orders Candidates.
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
