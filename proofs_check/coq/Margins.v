(** * T7 (two-point bound) and M3 (multiplicative rule, margin known). *)

From Coq Require Import Reals List Arith Lra Lia Psatz.
From Draftcert Require Import Definitions Sums LogFacts Projection Competitors ClosedForm StrictGreedy.
Open Scope R_scope.

Lemma certificate_is_least V A M m p x :
  prob V p -> disjoint_sets V A M -> M <> nil -> length M = m -> top_rejected V A M p ->
  certificate V A m p x -> least V A M p x.
Proof.
  intros Hp Hd HM <- Htop Hx. destruct (least_exists V A M p Hp Hd HM) as [y Hy].
  pose proof (top_competitors V A M p y Hp Hd Htop Hy) as Hy'.
  now rewrite (certificate_unique _ _ _ _ _ _ Hx Hy').
Qed.

Lemma single_disjoint V A b :
  NoDup A -> (forall a, In a A -> (a < V)%nat) -> (b < V)%nat -> ~ In b A -> disjoint_sets V A (single b).
Proof.
  intros. repeat split; auto; [repeat constructor; simpl; tauto| |]; destruct H3 as [<-|[]]; assumption.
Qed.

Lemma single_top V A b p :
  (forall j, (j < V)%nat -> ~ In j A -> p j <= p b) -> top_rejected V A (single b) p.
Proof. intros H i j [<-|[]] Hj Hj' _. auto. Qed.

(** T7: for one candidate, any accepted token [a] and the most likely rejected token [b]. *)
Theorem two_point_bound V A a b p x :
  prob V p -> NoDup A -> (forall i, In i A -> (i < V)%nat) -> In a A ->
  (b < V)%nat -> ~ In b A -> (forall j, (j < V)%nat -> ~ In j A -> p j <= p b) -> p b <= p a ->
  certificate V A 1 p x -> two_point (p a) (p b) <= x.
Proof.
  intros Hp HA HA' Ha Hb HbA Htop Hle Hx.
  apply (certificate_is_least V A (single b)) in Hx; auto using single_disjoint, single_top; [|discriminate].
  destruct Hx as [(q & h1 & h2 & h3 & <-) _].
  apply (pair_least V a b p); auto; [intros ->; tauto|].
  intros i c Hi [<-|[]]. auto.
Qed.

(** Equality holds exactly when no other accepted token exceeds the mean of the pair. *)
Theorem two_point_equality V A a b p x :
  prob V p -> NoDup A -> (forall i, In i A -> (i < V)%nat) -> In a A ->
  (b < V)%nat -> ~ In b A -> (forall j, (j < V)%nat -> ~ In j A -> p j <= p b) -> p b <= p a ->
  certificate V A 1 p x ->
  (x = two_point (p a) (p b) <-> forall i, In i A -> i <> a -> p i <= (p a + p b) / 2).
Proof.
  intros Hp HA HA' Ha Hb HbA Htop Hle Hx.
  assert (Hab : a <> b) by (intros ->; tauto).
  pose proof (single_disjoint V A b HA HA' Hb HbA) as Hd.
  pose proof (single_disjoint V (single a) b) as Hd2.
  assert (Hd2' : disjoint_sets V (single a) (single b)).
  { apply Hd2; auto; [repeat constructor; simpl; tauto|intros i [<-|[]]; auto|intros [h|[]]; congruence]. }
  clear Hd2. pose proof (proj1 Hp b Hb) as Hpb.
  apply (certificate_is_least V A (single b)) in Hx; auto using single_top; [|discriminate].
  assert (Hpool : forall B, In a B -> (forall i, In i B -> i <> a -> p i <= (p a + p b) / 2) ->
                  pool_of B (single b) p ((p a + p b) / 2) (single a) (single b)).
  { intros B HaB HB. unfold pool_of. repeat match goal with |- _ /\ _ => split end.
    - apply Hd2'.
    - apply Hd2'.
    - intros i [<-|[]]. assumption.
    - apply incl_refl.
    - intros i [<-|[]]. lra.
    - intros i Hi Hi'. apply HB; auto. intros ->. apply Hi'. now left.
    - intros i [<-|[]]. lra.
    - tauto.
    - cbn [app length]. rewrite !sum_cons, !sum_nil. replace (INR 2) with 2 by (simpl; lra). field. }
  pose proof (pair_least V a b p Hp (HA' a Ha) Hb Hab Hle) as Hpair.
  assert (Hc : 0 <= (p a + p b) / 2) by lra.
  split.
  - intros -> i Hi Hia. destruct (Rle_dec (p i) ((p a + p b) / 2)) as [|Hn]; [assumption|exfalso].
    destruct Hx as [(q & h1 & h2 & h3 & h4) _].
    assert (Hl : level_eq (single a) (single b) p ((p a + p b) / 2)).
    { eapply pool_level; [exact Hd2'|]. apply Hpool; [now left|]. intros j [<-|[]]; congruence. }
    assert (Hb2 : beats (single a) (single b) q) by (intros j c Hj [<-|[]]; auto).
    assert (Hq : forall j, (j < V)%nat -> q j = levelled (single a) (single b) p ((p a + p b) / 2) j).
    { apply levelled_unique; auto; [discriminate|]. rewrite h4. apply Hpair.
      - now apply levelled_prob.
      - now apply levelled_beats with V.
      - now apply levelled_finite. }
    specialize (h2 b i ltac:(now left) Hi). rewrite (Hq b Hb), (Hq i (HA' i Hi)) in h2.
    unfold levelled in h2. rewrite (mem_out (single a) i), (mem_out (single b) i), (mem_out (single a) b), mem_in in h2.
    + rewrite Rmax_right in h2; lra.
    + now left.
    + intros [h|[]]; congruence.
    + intros [h|[]]. subst. tauto.
    + intros [h|[]]; congruence.
  - intros Hall. apply (least_unique V A (single b) p); [assumption|].
    assert (Hl : forall B, disjoint_sets V B (single b) -> In a B ->
        (forall i, In i B -> i <> a -> p i <= (p a + p b) / 2) ->
        least V B (single b) p (sum (single a ++ single b) (fun i => p i * ln (p i / ((p a + p b) / 2))))).
    { intros B HBd HaB HB. rewrite <- (pool_value B (single b) (single a) (single b)); try apply HBd; auto.
      apply level_projection; auto; [discriminate|]. eapply pool_level; eauto. }
    replace (two_point (p a) (p b)) with (sum (single a ++ single b) (fun i => p i * ln (p i / ((p a + p b) / 2)))); [auto|].
    apply (least_unique V (single a) (single b) p); [|assumption].
    apply Hl; [assumption|now left|]. intros j [<-|[]]; congruence.
Qed.

(** A lower competitor costs more. *)
Lemma two_point_decr p1 y y' : 0 <= y -> y <= y' -> y' <= p1 -> two_point p1 y' <= two_point p1 y.
Proof.
  intros Hy Hyy Hp. destruct (Req_dec y' 0) as [->|Hn]; [replace y with 0 by lra; lra|].
  unfold two_point. set (c := p1 + y). set (c' := p1 + y').
  assert (Hc : 0 < c) by (unfold c; lra). assert (Hc' : 0 < c') by (unfold c'; lra).
  assert (Hpc : 0 < p1 / c') by (apply Rdiv_lt_0_compat; lra).
  assert (Hyc : 0 < y' / c') by (apply Rdiv_lt_0_compat; lra).
  assert (H1 : p1 - c * (p1 / c') <= p1 * ln (2 * p1 / c) - p1 * ln (2 * p1 / c')).
  { pose proof (gibbs_term p1 (c * (p1 / c')) ltac:(lra) ltac:(nra) ltac:(intros; nra)) as h.
    replace (p1 / (c * (p1 / c'))) with ((2 * p1 / c) / (2 * p1 / c')) in h by (field; lra).
    rewrite ln_div in h by (apply Rdiv_lt_0_compat; lra). lra. }
  assert (H2 : y - c * (y' / c') <= y * ln (2 * y / c) - y * ln (2 * y' / c')).
  { destruct Hy as [Hy|<-]; [|rewrite !Rmult_0_l; nra].
    pose proof (gibbs_term y (c * (y' / c')) ltac:(lra) ltac:(nra) ltac:(intros; nra)) as h.
    replace (y / (c * (y' / c'))) with ((2 * y / c) / (2 * y' / c')) in h by (field; lra).
    rewrite ln_div in h by (apply Rdiv_lt_0_compat; lra). lra. }
  assert (H3 : c * (p1 / c') + c * (y' / c') = c) by (unfold c, c'; field; unfold c' in Hc'; lra).
  assert (H4 : ln (2 * y' / c') <= 0).
  { rewrite <- ln_1. apply ln_nondecr; [apply Rdiv_lt_0_compat; lra|].
    apply Rmult_le_reg_r with c'; [assumption|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l; unfold c'; lra. }
  assert (y' * ln (2 * y' / c') <= y * ln (2 * y' / c')) by nra.
  unfold c in *; lra.
Qed.

(** The most likely rejected token exists where any token is rejected. *)
Lemma top_rejected_exists V A m p x :
  (1 <= m)%nat -> certificate V A m p x ->
  exists b, (b < V)%nat /\ ~ In b A /\ forall j, (j < V)%nat -> ~ In j A -> p j <= p b.
Proof.
  intros Hm [(q & _ & (M & _ & Hlen & Hin & _) & _) _].
  destruct M as [|i M]; [simpl in Hlen; lia|]. destruct (Hin i) as [Hi HiA]; [now left|].
  set (l := filter (fun j => negb (mem A j)) (seq 0 V)).
  assert (Hl : forall j, In j l <-> (j < V)%nat /\ ~ In j A).
  { intros j. unfold l. rewrite filter_In, in_vocab, Bool.negb_true_iff, mem_false. tauto. }
  destruct (list_min l (fun j => - p j)) as (b & Hb & Hmin).
  - intros h. assert (Hil : In i l) by (apply Hl; auto). rewrite h in Hil. easy.
  - apply Hl in Hb. exists b. split; [tauto|]. split; [tauto|]. intros j Hj HjA.
    specialize (Hmin j). assert (h : In j l) by (apply Hl; auto). specialize (Hmin h). lra.
Qed.

Definition g0 (alpha : R) : R := (1 - alpha) / (1 + alpha).

(** M3: multiplicative(alpha); [g] is at most the gap to every other token. *)
Theorem multiplicative_bounds V A a p alpha g x :
  prob V p -> NoDup A -> (a < V)%nat ->
  (forall i, In i A <-> (i < V)%nat /\ alpha * p a <= p i) ->
  0 < alpha < 1 -> 0 <= g -> (forall j, (j < V)%nat -> j <> a -> p j <= p a - g) ->
  certificate V A 1 p x ->
  phi g <= x /\ g / g0 alpha * phi (g0 alpha) <= x /\ (1 + alpha) * p a * phi (g0 alpha) <= x.
Proof.
  intros Hp HnA Ha HA Hal Hg Hgap Hx.
  destruct (top_rejected_exists V A 1 p x (Nat.le_refl 1) Hx) as (b & Hb & HbA & Htop).
  pose proof (proj1 Hp a Ha) as Hpa. pose proof (proj1 Hp b Hb) as Hpb.
  assert (HaA : In a A) by (apply HA; split; [assumption|nra]).
  assert (Hba : p b < alpha * p a).
  { apply Rnot_le_lt. intros h. apply HbA, HA. auto. }
  assert (Hab : a <> b) by (intros ->; tauto).
  specialize (Hgap b Hb ltac:(congruence)).
  assert (Hlow : two_point (p a) (p b) <= x).
  { apply (two_point_bound V A a b p); auto; [intros i Hi; now apply HA|lra]. }
  pose proof (pair_mass_le_1 V a b p Hp Ha Hb Hab) as Hs1.
  assert (Hpa0 : 0 < p a) by nra.
  assert (Hg0 : 0 < g0 alpha < 1).
  { unfold g0. split; [apply Rdiv_lt_0_compat; lra|]. apply Rmult_lt_reg_r with (1 + alpha); [lra|].
    unfold Rdiv. rewrite Rmult_assoc, Rinv_l; lra. }
  set (s := p a + p b). set (d := p a - p b). set (r := d / s).
  assert (Hs : 0 < s) by (unfold s; lra). assert (Hd : g <= d) by (unfold d; lra).
  assert (Hr : 0 <= r <= 1) by (apply ratio_range; unfold d, s; lra).
  assert (Hrs : r * s = d) by (unfold r; field; lra).
  assert (Hg0r : g0 alpha <= r).
  { apply Rmult_le_reg_r with s; [assumption|]. rewrite Hrs. unfold g0, d, s.
    apply Rmult_le_reg_r with (1 + alpha); [lra|].
    replace ((1 - alpha) / (1 + alpha) * (p a + p b) * (1 + alpha)) with ((1 - alpha) * (p a + p b)) by (field; lra). nra. }
  split; [|split].
  - apply Rle_trans with (phi d).
    + apply phi_nondecr; unfold d in *; lra.
    + apply Rle_trans with (two_point (p a) (p b)); [|assumption]. apply two_point_ge_phi; lra.
  - eapply Rle_trans; [|exact Hlow]. rewrite two_point_phi by lra. fold s. fold d. fold r.
    (* phi(r)/r increases and d is at least g *)
    assert (H1 : phi (g0 alpha) <= g0 alpha / r * phi r).
    { pose proof (phi_star (g0 alpha / r) r (ratio_range (g0 alpha) r ltac:(lra) ltac:(lra)) ltac:(lra)) as h.
      replace (g0 alpha / r * r) with (g0 alpha) in h by (field; lra). assumption. }
    pose proof (phi_nonneg r Hr) as Hphi.
    assert (Hgg : 0 <= g / g0 alpha) by (apply Rmult_le_pos; [lra|left; apply Rinv_0_lt_compat; lra]).
    apply Rle_trans with (g / g0 alpha * (g0 alpha / r * phi r)); [apply Rmult_le_compat_l; assumption|].
    replace (g / g0 alpha * (g0 alpha / r * phi r)) with (g / r * phi r) by (field; lra).
    apply Rmult_le_compat_r; [assumption|]. apply Rmult_le_reg_r with r; [lra|].
    unfold Rdiv. rewrite Rmult_assoc, Rinv_l by lra. lra.
  - apply Rle_trans with (two_point (p a) (alpha * p a)).
    + rewrite two_point_phi by nra.
      replace ((p a - alpha * p a) / (p a + alpha * p a)) with (g0 alpha) by (unfold g0; field; split; nra). right. ring.
    + apply Rle_trans with (two_point (p a) (p b)); [|assumption]. apply two_point_decr; nra.
Qed.
