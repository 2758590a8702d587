(** * Weak duality: what every certificate is at least. *)

From Coq Require Import Reals List Arith Lra Lia.
From Draftcert Require Import Definitions Sums LogFacts Projection Competitors Guarantee.
Import ListNotations.
Open Scope R_scope.

(** Factors that are at most 1 where the draft is above [t] and at least 1 where it is below. *)
Theorem dual_bound V p q t r :
  prob V p -> prob V q -> KL_finite V p q -> 0 <= t ->
  (forall i, (i < V)%nat -> 0 < r i /\ (q i - t) * (r i - 1) <= 0) -> sum (seq 0 V) r <= INR V ->
  sum (seq 0 V) (fun i => p i * ln (r i)) <= KL V p q.
Proof.
  intros Hp Hq Hf Ht Hr Hs.
  assert (H1 : sum (seq 0 V) (fun i => p i + p i * ln (r i) - r i * q i) <= KL V p q).
  { apply sum_le. intros i Hi. apply in_vocab in Hi. apply scaled_term; [now apply Hp|now apply Hq|now apply Hf|now apply Hr]. }
  assert (H2 : sum (seq 0 V) (fun i => r i * q i) <= sum (seq 0 V) (fun i => q i + t * r i - t)).
  { apply sum_le. intros i Hi. apply in_vocab in Hi. destruct (Hr i Hi). lra. }
  rewrite sum_minus, sum_plus, (proj2 Hp) in H1. rewrite (sum_minus _ (fun i => q i + t * r i)), sum_plus, sum_scal, (proj2 Hq) in H2.
  rewrite sum_const, seq_length in H2. nra.
Qed.

(** The worst draft has [m] most likely tokens, all rejected. *)
Theorem duality V A m p x :
  prob V p -> (1 <= m)%nat -> certificate V A m p x ->
  exists M, NoDup M /\ length M = m /\ (forall i, In i M -> (i < V)%nat /\ ~ In i A) /\
  forall r, (forall i, (i < V)%nat -> 0 < r i) -> (forall i, In i M -> r i <= 1) ->
    (forall i, (i < V)%nat -> ~ In i M -> 1 <= r i) -> sum (seq 0 V) r <= INR V ->
    sum (seq 0 V) (fun i => p i * ln (r i)) <= x.
Proof.
  intros Hp Hm [(q & Hq & Hr & Hf & <-) _]. destruct (rejected_choice V A m q Hr) as (M & (h1 & h2 & h3 & h4) & h5).
  exists M. split; [assumption|]. split; [assumption|]. split; [auto|]. intros r H0 HM Hout Hs.
  destruct (list_min M q) as (k & Hk & Hmin); [intros ->; simpl in h2; lia|].
  apply (dual_bound V p q (q k)); auto; [now apply Hq, h3|]. intros i Hi. split; [auto|].
  destruct (in_dec Nat.eq_dec i M) as [h|h]; [specialize (HM i h); specialize (Hmin i h)|specialize (Hout i Hi h); specialize (h4 k i Hk Hi h)]; nra.
Qed.

(** The same factor for all tokens of [M], and for all that are neither in it nor [a]. *)
Definition blocks (a : nat) (M : list nat) (u w z : R) (i : nat) : R := if mem [a] i then u else if mem M i then z else w.

Lemma sum_blocks V a M u w z p :
  (a < V)%nat -> NoDup M -> (forall i, In i M -> (i < V)%nat /\ i <> a) ->
  sum (seq 0 V) (fun i => p i * blocks a M u w z i) = u * p a + z * sum M p + w * (sum (seq 0 V) p - p a - sum M p).
Proof.
  intros Ha HM HM'.
  rewrite (sum_ext _ _ (fun i => w * p i + ((if mem [a] i then (u - w) * p i else 0) + (if mem M i then (z - w) * p i else 0)))).
  - rewrite !sum_plus, !sum_indicator, !sum_scal, sum_cons, sum_nil; auto using NoDup_seq; [lra| | |].
    + intros i Hi. now apply in_vocab, HM'.
    + repeat constructor; simpl; tauto.
    + intros i [<-|[]]. now apply in_vocab.
  - intros i _. unfold blocks. destruct (mem [a] i) eqn:E1, (mem M i) eqn:E2; try lra.
    apply mem_true in E1. apply mem_true in E2. destruct E1 as [<-|[]]. now destruct (HM' a E2).
Qed.

Theorem tangent V A a m U W Z p x :
  prob V p -> In a A -> (a < V)%nat -> (1 <= m)%nat -> 1 <= U -> 1 <= W -> 0 < Z <= 1 ->
  U + INR m * Z + W * (INR V - 1 - INR m) <= INR V -> certificate V A m p x ->
  exists M, NoDup M /\ length M = m /\ (forall i, In i M -> (i < V)%nat /\ ~ In i A) /\
    ln U * p a + ln Z * sum M p + ln W * (1 - p a - sum M p) <= x.
Proof.
  intros Hp Ha HaV Hm HU HW HZ Hs Hx. destruct (duality V A m p x Hp Hm Hx) as (M & h1 & h2 & h3 & H).
  assert (HM : forall i, In i M -> (i < V)%nat /\ i <> a) by (intros i Hi; destruct (h3 i Hi) as [k1 k2]; split; [assumption|intros ->; tauto]).
  exists M. split; [assumption|]. split; [assumption|]. split; [assumption|].
  rewrite <- (proj2 Hp), <- sum_blocks by assumption.
  rewrite (sum_ext _ _ (fun i => p i * ln (blocks a M U W Z i))) by (intros i _; unfold blocks; destruct (mem [a] i), (mem M i); reflexivity).
  apply H.
  - intros i _. unfold blocks. destruct (mem [a] i), (mem M i); lra.
  - intros i Hi. unfold blocks. rewrite (mem_out [a]), (mem_in M) by (auto; intros [k|[]]; now apply (HM i Hi)). lra.
  - intros i _ Hi. unfold blocks. rewrite (mem_out M i Hi). destruct (mem [a] i); lra.
  - rewrite (sum_ext _ _ (fun i => 1 * blocks a M U W Z i)) by (intros; lra).
    rewrite sum_blocks, !sum_const, seq_length, h2 by assumption. lra.
Qed.
