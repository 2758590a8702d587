(** * M6: a tree node with [m] candidates, when the gap to the last of them is known. *)

From Coq Require Import Reals List Arith Lra Lia Psatz.
From Draftcert Require Import Definitions Sums LogFacts Projection Competitors ClosedForm StrictGreedy Margins.
Open Scope R_scope.

(** ** The variational lower bound of Donsker and Varadhan *)

Lemma tilted_mass_pos V q f : prob V q -> 0 < sum (seq 0 V) (fun i => q i * exp (f i)).
Proof.
  intros Hq.
  assert (Hpos : forall i, In i (seq 0 V) -> 0 <= q i * exp (f i)).
  { intros i Hi. apply in_vocab in Hi. pose proof (exp_pos (f i)). pose proof (proj1 Hq i Hi). nra. }
  apply Rnot_le_lt. intros h.
  assert (H0 : sum (seq 0 V) q = 0).
  { rewrite (sum_ext _ _ (fun _ => 0)); [apply sum_zero|]. intros i Hi.
    pose proof (sum_zero_inv _ _ Hpos h i Hi) as h'. cbv beta in h'. pose proof (exp_pos (f i)). nra. }
  rewrite (proj2 Hq) in H0. lra.
Qed.

Lemma donsker_varadhan V p q f :
  prob V p -> prob V q -> KL_finite V p q ->
  sum (seq 0 V) (fun i => p i * f i) - ln (sum (seq 0 V) (fun i => q i * exp (f i))) <= KL V p q.
Proof.
  intros Hp Hq Hf. pose proof (tilted_mass_pos V q f Hq) as HZ.
  set (Z := sum (seq 0 V) (fun i => q i * exp (f i))) in *.
  assert (H : sum (seq 0 V) (fun i => p i - / Z * (q i * exp (f i))) <=
              sum (seq 0 V) (fun i => p i * ln (p i / q i) - p i * f i + ln Z * p i)).
  { apply sum_le. intros i Hi. apply in_vocab in Hi.
    pose proof (proj1 Hp i Hi) as Hpi. pose proof (proj1 Hq i Hi) as Hqi. specialize (Hf i Hi).
    pose proof (exp_pos (f i)) as He. assert (0 < / Z) by now apply Rinv_0_lt_compat.
    assert (Hr : 0 <= q i * exp (f i)) by nra.
    destruct Hpi as [Hpi|<-]; [|nra]. specialize (Hf Hpi).
    assert (Hr' : 0 < / Z * (q i * exp (f i))) by (repeat apply Rmult_lt_0_compat; assumption).
    pose proof (gibbs_term (p i) (/ Z * (q i * exp (f i))) ltac:(lra) ltac:(lra) ltac:(auto)) as h.
    rewrite ln_div, !ln_mult, ln_exp, ln_Rinv in h by auto using Rmult_lt_0_compat. rewrite ln_div by assumption. lra. }
  rewrite sum_minus, sum_scal, sum_plus, sum_minus, sum_scal, (proj2 Hp) in H. fold Z in H.
  rewrite Rinv_l in H by lra. unfold KL. lra.
Qed.

(** Under a feasible [q] an accepted token has mass at most [1/(m+1)]. *)
Lemma accepted_mass V A M a q :
  prob V q -> NoDup M -> (forall i, In i M -> (i < V)%nat /\ ~ In i A) -> In a A -> (a < V)%nat ->
  beats A M q -> (INR (length M) + 1) * q a <= 1.
Proof.
  intros Hq HM HM' Ha HaV Hb.
  assert (H : sum (a :: M) q <= 1).
  { rewrite <- (proj2 Hq). apply sum_sub_le; [constructor; auto; intros h; now apply (HM' a h)|apply NoDup_seq| |].
    - intros i [<-|Hi]; apply in_vocab; [assumption|now apply HM'].
    - intros i Hi. now apply Hq, in_vocab. }
  rewrite sum_cons in H.
  assert (H' : sum M (fun _ => q a) <= sum M q) by (apply sum_le; intros i Hi; now apply Hb).
  rewrite sum_const in H'. lra.
Qed.

(** ** M6: the gap to the [m]-th competitor *)

Definition tilt (a b : nat) (u v : R) (i : nat) : R :=
  (if mem (single a) i then u else 0) + (if mem (single b) i then v else 0).

Lemma sum_tilt V a b u v p :
  (a < V)%nat -> (b < V)%nat -> sum (seq 0 V) (fun i => p i * tilt a b u v i) = p a * u + p b * v.
Proof.
  intros Ha Hb. unfold tilt.
  rewrite (sum_ext _ _ (fun i => (if mem (single a) i then p i * u else 0) + (if mem (single b) i then p i * v else 0))).
  2:{ intros i _. destruct (mem (single a) i), (mem (single b) i); lra. }
  rewrite sum_plus, !sum_indicator, !sum_cons, !sum_nil; try apply NoDup_seq;
    try (repeat constructor; simpl; tauto); try (intros i [<-|[]]; now apply in_vocab). lra.
Qed.

Lemma exp_tilt a b u v i : a <> b -> exp (tilt a b u v i) = 1 + tilt a b (exp u - 1) (exp v - 1) i.
Proof.
  intros Hab. unfold tilt.
  destruct (mem (single a) i) eqn:Ea, (mem (single b) i) eqn:Eb.
  - apply mem_true in Ea. apply mem_true in Eb. destruct Ea as [<-|[]]. destruct Eb as [<-|[]]. congruence.
  - rewrite Rplus_0_r. lra.
  - rewrite Rplus_0_l. lra.
  - rewrite Rplus_0_r, exp_0. lra.
Qed.

Lemma sum_exp_tilt V a b u v q :
  prob V q -> (a < V)%nat -> (b < V)%nat -> a <> b ->
  sum (seq 0 V) (fun i => q i * exp (tilt a b u v i)) = 1 + q a * (exp u - 1) + q b * (exp v - 1).
Proof.
  intros Hq Ha Hb Hab.
  rewrite (sum_ext _ _ (fun i => q i + q i * tilt a b (exp u - 1) (exp v - 1) i)).
  - rewrite sum_plus, sum_tilt, (proj2 Hq) by assumption. lra.
  - intros i _. rewrite exp_tilt by assumption. lra.
Qed.

(** Lower bound for every tilt [th >= 0] and every competitor [b]. *)
Theorem tree_gap_lower V A M a b p q th :
  prob V p -> prob V q -> KL_finite V p q -> NoDup M ->
  (forall i, In i M -> (i < V)%nat /\ ~ In i A) -> In a A -> (a < V)%nat -> In b M -> beats A M q -> 0 <= th ->
  th * (p a - p b) - ln ((INR (length M) - 1 + (exp th + exp (- th))) / (INR (length M) + 1)) <= KL V p q.
Proof.
  intros Hp Hq Hf HM HM' Ha HaV Hb Hbeats Hth.
  assert (Hab : a <> b) by (intros ->; now apply (HM' b Hb)). destruct (HM' b Hb) as [HbV _].
  pose proof (donsker_varadhan V p q (tilt a b th (- th)) Hp Hq Hf) as H.
  pose proof (tilted_mass_pos V q (tilt a b th (- th)) Hq) as HZ.
  rewrite sum_tilt, sum_exp_tilt in * by assumption.
  pose proof (accepted_mass V A M a q Hq HM HM' Ha HaV Hbeats) as Hmass.
  pose proof (pos_INR (length M)) as Hm. specialize (Hbeats b a Hb Ha).
  pose proof (proj1 Hq a HaV) as Hqa.
  assert (He1 : 1 <= exp th) by (pose proof (exp_ineq1_le th); lra).
  assert (He2 : exp th * exp (- th) = 1) by (rewrite <- exp_plus, Rplus_opp_r; apply exp_0).
  pose proof (exp_pos (- th)) as He3. assert (He4 : exp (- th) <= 1) by nra.
  assert (He5 : 2 <= exp th + exp (- th)) by nra.
  eapply Rle_trans; [|exact H].
  enough (ln (1 + q a * (exp th - 1) + q b * (exp (- th) - 1)) <=
          ln ((INR (length M) - 1 + (exp th + exp (- th))) / (INR (length M) + 1))) by lra.
  apply ln_nondecr; [assumption|].
  apply Rmult_le_reg_r with (INR (length M) + 1); [lra|].
  unfold Rdiv. rewrite Rmult_assoc, Rinv_l by lra.
  assert (q b * (exp (- th) - 1) <= q a * (exp (- th) - 1)) by nra.
  assert (q a * (exp th + exp (- th) - 2) * (INR (length M) + 1) <= exp th + exp (- th) - 2) by nra.
  nra.
Qed.

Lemma tree_y_facts m g : (1 <= m)%nat -> 0 <= g < 1 ->
  1 <= tree_y m g /\ tree_y m g - / tree_y m g = g * (INR m - 1 + (tree_y m g + / tree_y m g)).
Proof.
  intros Hm Hg. assert (Hm1 : 1 <= INR m) by (change 1 with (INR 1); now apply le_INR).
  set (D := g * g * ((INR m - 1) * (INR m - 1)) + 4 * (1 - g * g)).
  assert (HD0 : 0 <= g * g * ((INR m - 1) * (INR m - 1))) by (repeat apply Rmult_le_pos; lra).
  assert (HD : 0 <= D) by (unfold D; nra).
  assert (Hsq : sqrt D * sqrt D = D) by now apply sqrt_sqrt.
  assert (Hr : 2 * (1 - g) <= sqrt D).
  { rewrite <- (sqrt_square (2 * (1 - g))) by lra. apply sqrt_le_1_alt. unfold D. nra. }
  assert (Hy : tree_y m g * (2 * (1 - g)) = g * (INR m - 1) + sqrt D).
  { unfold tree_y. fold D. field. lra. }
  set (y := tree_y m g) in *.
  assert (H1 : 1 <= y).
  { apply Rmult_le_reg_r with (2 * (1 - g)); [lra|]. rewrite Hy. nra. }
  split; [assumption|].
  assert (Hquad : (1 - g) * (y * y) - g * (INR m - 1) * y - (1 + g) = 0).
  { assert (Hs : sqrt D = y * (2 * (1 - g)) - g * (INR m - 1)) by lra.
    rewrite Hs in Hsq. unfold D in Hsq.
    assert (4 * (1 - g) * ((1 - g) * (y * y) - g * (INR m - 1) * y - (1 + g)) = 0) by nra. nra. }
  apply Rmult_eq_reg_r with y; [|lra].
  replace ((y - / y) * y) with (y * y - 1) by (field; lra).
  replace (g * (INR m - 1 + (y + / y)) * y) with (g * (INR m - 1) * y + g * (y * y) + g) by (field; lra). lra.
Qed.

(** M6, lower bound: [M] holds the [m] most likely rejected tokens and [b] is one of them
    (the least likely gives the bound its strength). *)
Theorem M6_lower V A M a b m p x g :
  prob V p -> NoDup A -> (forall i, In i A -> (i < V)%nat) -> In a A ->
  NoDup M -> length M = m -> (forall i, In i M -> (i < V)%nat /\ ~ In i A) -> top_rejected V A M p ->
  In b M -> p a - p b = g -> 0 <= g < 1 -> certificate V A m p x -> tree_gap_value m g <= x.
Proof.
  intros Hp HA HA' Ha HM Hlen HM' Htop Hb Hgap Hg Hx.
  assert (Hne : M <> nil) by (intros ->; easy).
  assert (Hm : (1 <= m)%nat) by (subst m; destruct M; [easy|simpl; lia]).
  apply (certificate_is_least V A M) in Hx; auto; [|now repeat split; auto; apply HM'].
  destruct Hx as [(q & h1 & h2 & h3 & <-) _].
  destruct (tree_y_facts m g Hm Hg) as [Hy _].
  assert (Hth : 0 <= ln (tree_y m g)) by (rewrite <- ln_1; apply ln_nondecr; lra).
  pose proof (tree_gap_lower V A M a b p q (ln (tree_y m g)) Hp h1 h3 HM HM' Ha (HA' a Ha) Hb h2 Hth) as H.
  rewrite exp_Ropp, exp_ln, Hgap, Hlen in H by lra. exact H.
Qed.

(** M6, the extremal family p ~ (y, 1, ..., 1, 1/y) on [m + 1] tokens. *)
Definition tree_family (m : nat) (y : R) (i : nat) : R :=
  exp (tilt 0 m (ln y) (- ln y) i) / (INR m - 1 + (y + / y)).

Definition uniform (V : nat) (_ : nat) : R := / INR V.

Lemma uniform_prob V : (1 <= V)%nat -> prob V (uniform V).
Proof.
  intros HV. assert (H : 0 < INR V) by (apply lt_0_INR; lia). unfold uniform. split.
  - intros i _. left. now apply Rinv_0_lt_compat.
  - rewrite sum_const, seq_length. field. lra.
Qed.

Lemma head_tail_disjoint m : disjoint_sets (m + 1) (single 0%nat) (seq 1 m).
Proof.
  repeat split; [repeat constructor; simpl; tauto|apply seq_NoDup| | |].
  - intros i [<-|[]]. lia.
  - apply in_seq in H. lia.
  - intros [<-|[]]. apply in_seq in H. lia.
Qed.

Lemma uniform_rejects m : rejects (m + 1) (single 0%nat) m (uniform (m + 1)).
Proof.
  destruct (head_tail_disjoint m) as (_ & h1 & _ & h2).
  exists (seq 1 m). repeat split; auto using seq_length; try now apply h2. intros i a _ _. unfold uniform. lra.
Qed.

Theorem M6_attained m g : (1 <= m)%nat -> 0 <= g < 1 ->
  let p := tree_family m (tree_y m g) in
  prob (m + 1) p /\ p 0%nat - p m = g /\ (forall i, p m <= p i <= p 0%nat) /\
  certificate (m + 1) (single 0%nat) m p (tree_gap_value m g).
Proof.
  intros Hm Hg p. destruct (tree_y_facts m g Hm Hg) as [Hy Hgap].
  assert (Hm1 : 1 <= INR m) by (change 1 with (INR 1); now apply le_INR).
  unfold p, tree_gap_value. set (y := tree_y m g) in *. cbv zeta.
  set (Z := INR m - 1 + (y + / y)) in *. set (th := ln y).
  assert (Hyi : 0 < / y <= 1).
  { split; [apply Rinv_0_lt_compat; lra|]. rewrite <- Rinv_1. apply Rinv_le_contravar; lra. }
  assert (HZ : 0 < Z) by (unfold Z; lra).
  assert (Hth : 0 <= th) by (unfold th; rewrite <- ln_1; apply ln_nondecr; lra).
  assert (E1 : exp th = y) by (apply exp_ln; lra).
  assert (E2 : exp (- th) = / y) by now rewrite exp_Ropp, E1.
  assert (F0 : tilt 0 m th (- th) 0 = th).
  { unfold tilt. rewrite mem_in, mem_out; [lra| |now left]. intros [h|[]]. lia. }
  assert (Fm : tilt 0 m th (- th) m = - th).
  { unfold tilt. rewrite (mem_out (single 0%nat)), mem_in; [lra|now left|]. intros [h|[]]. lia. }
  assert (Frange : forall i, - th <= tilt 0 m th (- th) i <= th).
  { intros i. destruct (Nat.eq_dec i 0) as [->|h0]; [rewrite F0; lra|].
    destruct (Nat.eq_dec i m) as [->|hm]; [rewrite Fm; lra|].
    unfold tilt. rewrite !mem_out; [lra| |]; intros [h|[]]; congruence. }
  assert (Hn : INR (m + 1) = INR m + 1) by (now rewrite plus_INR).
  set (f := tilt 0 m th (- th)) in *.
  assert (Hpf : forall i, tree_family m y i = exp (f i) / Z) by reflexivity.
  assert (Hpos : forall i, 0 < tree_family m y i).
  { intros i. rewrite Hpf. apply Rdiv_lt_0_compat; [apply exp_pos|assumption]. }
  assert (Hprob : prob (m + 1) (tree_family m y)).
  { split; [intros i _; now left|].
    pose proof (sum_exp_tilt (m + 1) 0 m th (- th) (uniform (m + 1)) (uniform_prob (m + 1) ltac:(lia))
                  ltac:(lia) ltac:(lia) ltac:(lia)) as H.
    fold f in H. unfold uniform in H. rewrite sum_scal, E1, E2, Hn in H.
    rewrite (sum_ext _ _ (fun i => / Z * exp (f i))) by (intros; rewrite Hpf; unfold Rdiv; ring).
    rewrite sum_scal. apply Rmult_eq_reg_l with (/ (INR m + 1) * Z); [|apply Rmult_integral_contrapositive_currified; [apply Rinv_neq_0_compat|]; lra].
    replace (/ (INR m + 1) * Z * (/ Z * sum (seq 0 (m + 1)) (fun i => exp (f i))))
      with (/ (INR m + 1) * sum (seq 0 (m + 1)) (fun i => exp (f i))) by (field; lra).
    rewrite H. unfold Z. field. lra. }
  assert (Hdiff : tree_family m y 0 - tree_family m y m = g).
  { rewrite !Hpf, F0, Fm, E1, E2. apply Rmult_eq_reg_r with Z; [|lra]. rewrite <- Hgap. field. lra. }
  split; [assumption|]. split; [assumption|].
  assert (Hord : forall i, tree_family m y m <= tree_family m y i <= tree_family m y 0).
  { intros i. rewrite !Hpf, F0, Fm. specialize (Frange i).
    assert (Hexp : forall u v, u <= v -> exp u / Z <= exp v / Z).
    { intros u v [h| ->]; [|lra]. apply Rmult_le_compat_r; [left; now apply Rinv_0_lt_compat|]. left. now apply exp_increasing. }
    split; apply Hexp; lra. }
  split; [assumption|].
  destruct (head_tail_disjoint m) as (d1 & d2 & d3 & d4).
  assert (Htop : top_rejected (m + 1) (single 0%nat) (seq 1 m) (tree_family m y)).
  { intros i j _ Hj Hj0 Hj1. exfalso. apply Hj1, in_seq. assert (j <> 0%nat) by (intros ->; apply Hj0; now left). lia. }
  destruct (least_exists (m + 1) (single 0%nat) (seq 1 m) (tree_family m y)) as [x Hx];
    [assumption|now repeat split; try apply d4|destruct m; [lia|discriminate]|].
  assert (Hc : certificate (m + 1) (single 0%nat) m (tree_family m y) x).
  { rewrite <- (seq_length m 1) at 2. apply top_competitors; auto. repeat split; auto; now apply d4. }
  assert (Hlow : tree_gap_value m g <= x).
  { apply (M6_lower (m + 1) (single 0%nat) (seq 1 m) 0 m m (tree_family m y) x g); auto using seq_length; [now left|]. apply in_seq. lia. }
  assert (Hup : x <= tree_gap_value m g).
  { eapply Rle_trans; [apply Hc; [apply uniform_prob; lia|apply uniform_rejects|]|].
    - intros i _ _. unfold uniform. apply Rinv_0_lt_compat. rewrite Hn. lra.
    - unfold KL, uniform. rewrite Hn.
      rewrite (sum_ext _ _ (fun i => tree_family m y i * f i + (- ln (Z / (INR m + 1))) * tree_family m y i)).
      + rewrite sum_plus, sum_scal, (proj2 Hprob). unfold f at 1. rewrite sum_tilt by lia.
        unfold tree_gap_value. fold y. fold Z. fold th. rewrite <- Hdiff at 1. right. ring.
      + intros i _. rewrite (ln_div (tree_family m y i)), (ln_div Z), ln_Rinv by (auto; try apply Rinv_0_lt_compat; lra).
        replace (ln (tree_family m y i)) with (f i - ln Z); [ring|].
        rewrite Hpf, ln_div, ln_exp; auto using exp_pos. }
  assert (Hxe : x = tree_gap_value m g) by (apply Rle_antisym; assumption). rewrite Hxe in Hc. exact Hc.
Qed.
