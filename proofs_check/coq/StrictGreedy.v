(** * T5 strict greedy, and M1: sharp bounds from the margin alone. *)

From Coq Require Import Reals List Arith Lra Lia Psatz.
From Draftcert Require Import Definitions Sums LogFacts Projection Competitors ClosedForm.
Open Scope R_scope.

Notation single a := (@cons nat a (@nil nat)).

Definition two_point (p1 p2 : R) : R :=
  p1 * ln (2 * p1 / (p1 + p2)) + p2 * ln (2 * p2 / (p1 + p2)).

Lemma two_point_phi p1 p2 :
  0 <= p2 <= p1 -> two_point p1 p2 = (p1 + p2) * phi ((p1 - p2) / (p1 + p2)).
Proof.
  intros H. unfold two_point, phi. destruct (Req_dec p1 0) as [->|Hn].
  - replace p2 with 0 by lra. lra.
  - replace (1 + (p1 - p2) / (p1 + p2)) with (2 * p1 / (p1 + p2)) by (field; lra).
    replace (1 - (p1 - p2) / (p1 + p2)) with (2 * p2 / (p1 + p2)) by (field; lra).
    field. lra.
Qed.

Lemma ratio_range g s : 0 <= g <= s -> 0 < s -> 0 <= g / s <= 1.
Proof.
  intros H Hs. split; [apply Rmult_le_pos; [lra|left; now apply Rinv_0_lt_compat]|].
  apply Rmult_le_reg_r with s; [assumption|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l; lra.
Qed.

(** One accepted token [a], one competitor [b]. *)
Lemma pair_least V a b p :
  prob V p -> (a < V)%nat -> (b < V)%nat -> a <> b -> p b <= p a ->
  least V (single a) (single b) p (two_point (p a) (p b)).
Proof.
  intros Hp Ha Hb Hab Hle.
  pose proof (proj1 Hp b Hb) as Hpb. pose proof (proj1 Hp a Ha) as Hpa.
  assert (Hd : disjoint_sets V (single a) (single b)).
  { repeat split; try (repeat constructor; simpl; tauto).
    - intros i [<-|[]]. assumption.
    - destruct H as [<-|[]]. assumption.
    - intros [h|[]]. destruct H as [h'|[]]. congruence. }
  pose proof (closed_form V (single a) (single b) (single a) (single b) p) as H.
  cbv zeta in H. cbn [app length] in H. rewrite !sum_cons, !sum_nil in H. cbv beta in H.
  replace (INR 2) with 2 in H by (simpl; lra).
  match type of H with _ -> _ -> _ -> _ -> _ -> least _ _ _ _ ?v => replace (two_point (p a) (p b)) with v end.
  - apply H; auto; [discriminate|lra|].
    repeat split; try apply Hd; auto using incl_refl.
    + intros i [<-|[]]. lra.
    + tauto.
    + intros i [<-|[]]. lra.
    + tauto.
    + cbn [app length]. rewrite !sum_cons, !sum_nil. replace (INR 2) with 2 by (simpl; lra). field.
  - unfold two_point. destruct (Req_dec (p a) 0) as [h|h].
    + rewrite h. replace (p b) with 0 by lra. lra.
    + assert (Hs : 0 < (p a + p b) / 2) by lra.
      replace (2 * p a / (p a + p b)) with (p a / ((p a + p b) / 2)) by (field; lra).
      replace (2 * p b / (p a + p b)) with (p b / ((p a + p b) / 2)) by (field; lra).
      rewrite (pln_div (p a)), (pln_div (p b)) by lra. replace ((p a + (p b + 0)) / 2) with ((p a + p b) / 2) by lra. ring.
Qed.

(** T5: [a] is a most likely token and [b] a most likely other token. *)
Theorem strict_greedy V a b p :
  prob V p -> (a < V)%nat -> (b < V)%nat -> a <> b -> p b <= p a ->
  (forall j, (j < V)%nat -> j <> a -> p j <= p b) ->
  certificate V (single a) 1 p (two_point (p a) (p b)).
Proof.
  intros Hp Ha Hb Hab Hle Htop. change 1%nat with (length (single b)). apply top_competitors; auto.
  - repeat split; try (repeat constructor; simpl; tauto).
    + intros i [<-|[]]. assumption.
    + destruct H as [<-|[]]. assumption.
    + intros [h|[]]. destruct H as [h'|[]]. congruence.
  - intros i j [<-|[]] Hj HjA _. apply Htop; auto. intros ->. apply HjA. now left.
  - now apply pair_least.
Qed.

(** ** M1: what the margin [g = p a - p b] alone implies *)

Lemma pair_mass_le_1 V a b p : prob V p -> (a < V)%nat -> (b < V)%nat -> a <> b -> p a + p b <= 1.
Proof.
  intros Hp Ha Hb Hab. rewrite <- (proj2 Hp).
  assert (H : sum (a :: b :: nil) p <= sum (seq 0 V) p).
  { apply sum_sub_le; [repeat constructor; simpl; intuition|apply NoDup_seq| |].
    - intros i [<-|[<-|[]]]; now apply in_vocab.
    - intros i Hi. now apply Hp, in_vocab. }
  rewrite !sum_cons, sum_nil in H. lra.
Qed.

Lemma two_point_ge_phi p1 p2 : 0 <= p2 <= p1 -> p1 + p2 <= 1 -> phi (p1 - p2) <= two_point p1 p2.
Proof.
  intros H Hs. rewrite two_point_phi by assumption.
  destruct (Req_dec p1 0) as [->|Hn].
  - replace p2 with 0 by lra. rewrite Rminus_0_r, phi_0. lra.
  - replace (phi (p1 - p2)) with (1 * phi ((p1 - p2) / 1)) by (unfold Rdiv; rewrite Rinv_1, Rmult_1_r, Rmult_1_l; reflexivity).
    apply perspective_decr; lra.
Qed.

Lemma xlnx_nonpos x : 0 <= x <= 1 -> x * ln x <= 0.
Proof.
  intros [[H|<-] H1]; [|lra]. pose proof (ln_nondecr x 1 H H1) as h. rewrite ln_1 in h. nra.
Qed.

Lemma phi_lt_chord x : 0 < x < 1 -> phi x < x * ln 2.
Proof.
  intros Hx. unfold phi.
  assert (H1 : ln ((1 + x) / 2) < (1 + x) / 2 - 1) by (apply ln_lt_sub1; lra).
  rewrite ln_div in H1 by lra.
  assert (H2 : ln (1 + x) <= (1 + x) - 1) by (apply ln_le_sub1; lra).
  assert (H3 : (1 - x) * ln (1 - x) <= 0) by (apply xlnx_nonpos; lra).
  assert (H1' : 2 * x * (ln (1 + x) - ln 2) < 2 * x * ((1 + x) / 2 - 1)) by (apply Rmult_lt_compat_l; lra).
  assert (H2' : (1 - x) * ln (1 + x) <= (1 - x) * ((1 + x) - 1)) by (apply Rmult_le_compat_l; lra).
  lra.
Qed.

Lemma two_point_le_g_ln2 p1 p2 : 0 <= p2 <= p1 -> two_point p1 p2 <= (p1 - p2) * ln 2.
Proof.
  intros H. rewrite two_point_phi by assumption. destruct (Req_dec p1 0) as [->|Hn].
  - replace p2 with 0 by lra. rewrite Rminus_0_r, !Rplus_0_r. lra.
  - assert (Hs : 0 < p1 + p2) by lra.
    pose proof (phi_le_chord _ (ratio_range (p1 - p2) (p1 + p2) ltac:(lra) Hs)) as Hc.
    apply Rmult_le_compat_l with (r := p1 + p2) in Hc; [|lra].
    replace ((p1 + p2) * ((p1 - p2) / (p1 + p2) * ln 2)) with ((p1 - p2) * ln 2) in Hc by (field; lra). lra.
Qed.

Lemma two_point_lt_g_ln2 p1 p2 : 0 < p2 < p1 -> two_point p1 p2 < (p1 - p2) * ln 2.
Proof.
  intros H. rewrite two_point_phi by lra.
  assert (Hr : 0 < (p1 - p2) / (p1 + p2) < 1).
  { split; [apply Rdiv_lt_0_compat; lra|]. apply Rmult_lt_reg_r with (p1 + p2); [lra|].
    unfold Rdiv. rewrite Rmult_assoc, Rinv_l; lra. }
  pose proof (phi_lt_chord _ Hr) as Hc.
  apply Rmult_lt_compat_l with (r := p1 + p2) in Hc; [|lra].
  replace ((p1 + p2) * ((p1 - p2) / (p1 + p2) * ln 2)) with ((p1 - p2) * ln 2) in Hc by (field; lra). lra.
Qed.

(** For a vocabulary of [V] tokens the runner-up cannot be below [(1-g)/V]. *)
Lemma runner_up_floor V a b p :
  prob V p -> (a < V)%nat -> (b < V)%nat -> a <> b ->
  (forall j, (j < V)%nat -> j <> a -> p j <= p b) -> (1 - (p a - p b)) / INR V <= p b.
Proof.
  intros Hp Ha Hb Hab Htop. assert (HV : 0 < INR V) by (apply lt_0_INR; lia).
  assert (H : sum (seq 0 V) p <= sum (seq 0 V) (fun j => p b + (if mem (single a) j then p a - p b else 0))).
  { apply sum_le. intros j Hj. apply in_vocab in Hj. destruct (Nat.eq_dec j a) as [->|h].
    - rewrite mem_in by now left. lra.
    - rewrite mem_out by (intros [h'|[]]; congruence). specialize (Htop j Hj h). lra. }
  rewrite sum_plus, sum_const, sum_indicator, seq_length, sum_cons, sum_nil, (proj2 Hp) in H;
    [|repeat constructor; simpl; tauto|apply NoDup_seq|intros j [<-|[]]; now apply in_vocab].
  apply Rmult_le_reg_r with (INR V); [assumption|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l; lra.
Qed.

Theorem strict_upper_finite V a b p :
  prob V p -> (a < V)%nat -> (b < V)%nat -> a <> b -> p b <= p a ->
  (forall j, (j < V)%nat -> j <> a -> p j <= p b) ->
  let g := p a - p b in let s := g + 2 * (1 - g) / INR V in
  two_point (p a) (p b) <= s * phi (g / s).
Proof.
  intros Hp Ha Hb Hab Hle Htop g s.
  pose proof (runner_up_floor V a b p Hp Ha Hb Hab Htop) as Hfl. fold g in Hfl.
  pose proof (proj1 Hp b Hb) as Hpb. pose proof (pair_mass_le_1 V a b p Hp Ha Hb Hab) as H1.
  assert (HV : 0 < / INR V) by (apply Rinv_0_lt_compat, lt_0_INR; lia).
  assert (Hs : s <= p a + p b) by (unfold s, g in *; lra).
  assert (Hd : 0 <= 2 * (1 - g) / INR V) by (apply Rmult_le_pos; unfold g; lra).
  assert (Hs0 : 0 < s).
  { unfold s, g in *. destruct (Req_dec (p a) (p b)) as [e|e]; [|lra].
    rewrite e, Rminus_diag_eq by reflexivity. unfold Rdiv. nra. }
  rewrite two_point_phi by lra. fold g. apply perspective_decr; unfold s, g in *; lra.
Qed.

(** The family with margin [g] that attains both ends: all other tokens equal. *)
Definition flat_family (V : nat) (g : R) (i : nat) : R :=
  (1 - g) / INR V + (if mem (single 0%nat) i then g else 0).

Lemma flat_family_prob V g : 0 <= g <= 1 -> (1 <= V)%nat -> prob V (flat_family V g).
Proof.
  intros Hg HV. assert (H : 0 < INR V) by (apply lt_0_INR; lia). split.
  - intros i _. unfold flat_family. assert (0 <= (1 - g) / INR V).
    { apply Rmult_le_pos; [lra|left; now apply Rinv_0_lt_compat]. }
    destruct (mem (single 0%nat) i); lra.
  - unfold flat_family. rewrite sum_plus, sum_const, sum_indicator, seq_length, sum_cons, sum_nil;
      [field; lra|repeat constructor; simpl; tauto|apply NoDup_seq|intros j [<-|[]]; apply in_vocab; lia].
Qed.

Theorem flat_family_certificate V g :
  0 <= g <= 1 -> (2 <= V)%nat ->
  let s := g + 2 * (1 - g) / INR V in
  prob V (flat_family V g) /\ flat_family V g 0 - flat_family V g 1 = g /\
  certificate V (single 0%nat) 1 (flat_family V g) (s * phi (g / s)).
Proof.
  intros Hg HV s. split; [apply flat_family_prob; auto; lia|]. unfold flat_family.
  assert (E0 : mem (single 0%nat) 0 = true) by (now apply mem_in; left).
  assert (E1 : forall j, j <> 0%nat -> mem (single 0%nat) j = false).
  { intros j Hj. apply mem_out. intros [h|[]]. congruence. }
  split; [rewrite E0, E1 by lia; lra|].
  assert (H0 : 0 <= (1 - g) / INR V).
  { apply Rmult_le_pos; [lra|left; apply Rinv_0_lt_compat, lt_0_INR; lia]. }
  pose proof (strict_greedy V 0 1 (flat_family V g)) as H. unfold flat_family in H.
  rewrite E0, E1 in H by lia. rewrite two_point_phi in H by lra.
  replace ((1 - g) / INR V + g + ((1 - g) / INR V + 0)) with s in H by (unfold s, Rdiv; lra).
  replace ((1 - g) / INR V + g - ((1 - g) / INR V + 0)) with g in H by lra.
  apply H; try lia; try lra.
  - apply flat_family_prob; auto; lia.
  - intros j _ Hj. rewrite E1 by assumption. lra.
Qed.
