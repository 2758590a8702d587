(** * T7: the two-point bound. *)

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
