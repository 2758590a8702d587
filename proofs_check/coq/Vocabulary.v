(** * M3v and M5v: lower bounds in a vocabulary of [m + n + 1] tokens. *)

From Coq Require Import Reals List Arith Lra Lia Psatz Permutation.
From Draftcert Require Import Definitions Sums LogFacts Projection Competitors Trees Candidates.
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

Theorem threshold_bound_in_vocabulary V A a m n p g tau x :
  prob V p -> In a A -> (a < V)%nat -> V = (m + n + 1)%nat -> (1 <= m)%nat -> 0 <= g -> 0 < tau ->
  g + INR V * tau <= 1 ->
  (forall j, (j < V)%nat -> j <> a -> p j <= p a - g) -> (forall j, (j < V)%nat -> ~ In j A -> p j <= tau) ->
  certificate V A m p x ->
  one_ahead m (g + (1 - g - INR m * tau) / (INR n + 1)) tau <= x.
Proof.
  intros Hp Ha HaV HV Hm Hg Htau Hmass Hgap Hj Hx.
  assert (Hm1 : 1 <= INR m) by (change 1 with (INR 1); now apply le_INR). pose proof (pos_INR n) as Hn.
  assert (EV : INR V = INR m + INR n + 1) by (rewrite HV, !plus_INR; reflexivity).
  set (y := (1 - g - INR m * tau) / (INR n + 1)).
  assert (Ey : (INR n + 1) * y = 1 - g - INR m * tau) by (unfold y; field; lra).
  assert (Hy : tau <= y) by (apply Rmult_le_reg_l with (INR n + 1); [lra|rewrite Ey; rewrite EV in Hmass; lra]).
  destruct (ahead_tangent V A a m (g + y) tau p x Hp Ha HaV Hm ltac:(lra) Hx) as (M & h1 & h2 & h3 & H).
  destruct (slopes m (g + y) tau Hm ltac:(lra)) as (_ & _ & _ & _ & Hu & Hv & _).
  pose proof (first_token_floor V A a m n p g M Hp Ha HaV HV Hgap h1 h2 h3) as Hfloor.
  assert (HS : sum M p <= INR m * tau) by (apply sum_at_most; auto; intros i Hi; destruct (h3 i Hi); auto).
  eapply Rle_trans; [|exact H]. unfold one_ahead. cbv zeta.
  set (u := ln ((g + y) / _)) in *. set (v := ln (tau / _)) in *. set (S := sum M p) in *.
  assert (X1 : u * (1 + INR n * g) <= u * ((INR n + 1) * p a + S)) by (apply Rmult_le_compat_l; lra).
  assert (X2 : 0 <= (u - (INR n + 1) * v) * (INR m * tau - S)).
  { apply Rmult_le_pos; [|lra]. assert (0 <= - ((INR n + 1) * v)); [|lra].
    rewrite Ropp_mult_distr_r. apply Rmult_le_pos; lra. }
  assert (X3 : u * ((INR n + 1) * (g + y)) = u * (1 + INR n * g - INR m * tau)) by (rewrite Rmult_plus_distr_l, Ey; ring).
  apply Rmult_le_reg_l with (INR n + 1); [lra|]. lra.
Qed.

Theorem ratio_bound_in_vocabulary V A a m n p alpha g x :
  prob V p -> In a A -> (a < V)%nat -> V = (m + n + 1)%nat -> (1 <= m)%nat -> 0 < alpha < 1 -> 0 <= g ->
  (forall j, (j < V)%nat -> j <> a -> p j <= p a - g) -> (forall j, (j < V)%nat -> ~ In j A -> p j <= alpha * p a) ->
  certificate V A m p x ->
  (1 + INR n * g) / (1 + INR m * alpha + INR n) * one_ahead m 1 alpha <= x.
Proof.
  intros Hp Ha HaV HV Hm Hal Hg Hgap Hj Hx.
  assert (Hm1 : 1 <= INR m) by (change 1 with (INR 1); now apply le_INR). pose proof (pos_INR n) as Hn.
  assert (Hma : 0 < INR m * alpha) by (apply Rmult_lt_0_compat; lra).
  pose proof Hx as [(q & _ & (M & h1 & h2 & h3 & _) & _) _].
  pose proof (first_token_floor V A a m n p g M Hp Ha HaV HV Hgap h1 h2 h3) as Hfloor.
  assert (HS : sum M p <= INR m * (alpha * p a)) by (apply sum_at_most; auto; intros i Hi; destruct (h3 i Hi); auto).
  assert (Hng : 0 <= INR n * g) by (apply Rmult_le_pos; lra).
  assert (Hpa : (1 + INR n * g) / (1 + INR m * alpha + INR n) <= p a).
  { apply Rmult_le_reg_r with (1 + INR m * alpha + INR n); [lra|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l by lra. lra. }
  assert (H0 : 0 < p a).
  { eapply Rlt_le_trans; [|exact Hpa]. apply Rdiv_lt_0_compat; lra. }
  destruct (ratio_bounds_m V A a m p alpha g x Hp Ha HaV Hal Hg H0 Hm) as [_ H]; [|assumption|].
  - intros j h k. split; [auto|]. apply Hgap; [assumption|]. intros ->. tauto.
  - eapply Rle_trans; [|exact H]. apply Rmult_le_compat_r; [|assumption]. apply one_ahead_nonneg; lra.
Qed.

(** M5v's bound is attained where the accepted others are not above the level. *)
Definition crowded (n : nat) (x y : R) (z : R) (i : nat) : R :=
  if Nat.eq_dec i 0 then x else if le_dec i n then y else z.

Theorem threshold_attained_in_vocabulary m n g tau : (1 <= m)%nat -> 0 <= g -> 0 < tau ->
  let y := (1 - g - INR m * tau) / (INR n + 1) in
  tau <= y -> INR m * y <= g + INR m * tau ->
  exists p, prob (1 + (n + m)) p /\ p 0%nat = g + y /\ (forall i, (1 <= i <= n)%nat -> p i = y) /\
    (forall i, (n < i)%nat -> p i = tau) /\
    certificate (1 + (n + m)) (seq 0 (1 + n)) m p (one_ahead m (g + y) tau).
Proof.
  intros Hm Hg Htau y Hy Hlevel. set (p := crowded n (g + y) y tau).
  assert (Hm1 : 1 <= INR m) by (change 1 with (INR 1); now apply le_INR). pose proof (pos_INR n) as Hn.
  assert (Ey : (INR n + 1) * y = 1 - g - INR m * tau) by (unfold y; field; lra).
  assert (E0 : p 0%nat = g + y) by reflexivity.
  assert (E1 : forall i, (1 <= i <= n)%nat -> p i = y).
  { intros i Hi. unfold p, crowded. destruct Nat.eq_dec; [lia|]. destruct le_dec; [reflexivity|lia]. }
  assert (E2 : forall i, (n < i)%nat -> p i = tau).
  { intros i Hi. unfold p, crowded. destruct Nat.eq_dec; [lia|]. destruct le_dec; [lia|reflexivity]. }
  assert (Hp : prob (1 + (n + m)) p).
  { split.
    - intros i _. destruct (Nat.eq_dec i 0) as [->|h]; [rewrite E0; lra|].
      destruct (le_dec i n); [rewrite E1 by lia; lra|rewrite E2 by lia; lra].
    - cbn [seq Nat.add]. rewrite sum_cons, seq_app, sum_app, E0.
      rewrite (sum_ext (seq 1 n) p (fun _ => y)) by (intros i Hi; apply in_seq in Hi; apply E1; lia).
      rewrite (sum_ext (seq (1 + n) m) p (fun _ => tau)) by (intros i Hi; apply in_seq in Hi; apply E2; lia).
      rewrite !sum_const, !seq_length. lra. }
  exists p. split; [assumption|]. split; [assumption|]. split; [assumption|]. split; [assumption|].
  assert (Hd : disjoint_sets (1 + (n + m)) (seq 0 (1 + n)) (seq (1 + n) m)).
  { repeat split; try apply seq_NoDup.
    - intros i Hi. apply in_seq in Hi. lia.
    - apply in_seq in H. lia.
    - intros h. apply in_seq in H. apply in_seq in h. lia. }
  rewrite <- (seq_length m (1 + n)) at 2 3.
  apply (ahead_attained (1 + (n + m)) (seq 0 (1 + n)) (seq (1 + n) m) 0 p); auto.
  - destruct m; [lia|discriminate].
  - intros i j _ Hj HjA HjM. exfalso. apply HjM, in_seq. rewrite in_seq in HjA. lia.
  - apply in_seq. lia.
  - lra.
  - intros i Hi. apply in_seq in Hi. apply E2. lia.
  - intros b Hb hb. apply in_seq in Hb. rewrite E1, seq_length by lia.
    apply Rmult_le_reg_r with (INR m + 1); [lra|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l by lra. lra.
Qed.
