(** * The guarantee itself: what a drafter's [m] most likely tokens hold; and when a certificate exists. *)

From Coq Require Import Reals List Arith Lra Lia Psatz Permutation.
From Draftcert Require Statements.
From Draftcert Require Import Definitions Sums LogFacts Projection Competitors.
Open Scope R_scope.

(** Some [m] of a list's tokens are its most likely ones. *)
Lemma most_likely (q : nat -> R) : forall m L, NoDup L -> (m <= length L)%nat ->
  exists T, NoDup T /\ length T = m /\ incl T L /\ forall i j, In i T -> In j L -> ~ In j T -> q j <= q i.
Proof.
  induction m as [|m IH]; intros L HL Hm.
  - exists nil. repeat split; [constructor|intros i []|intros i j []].
  - destruct (list_min L (fun i => - q i)) as (x & Hx & Hmax); [now intros ->|].
    destruct (in_split x L Hx) as (l1 & l2 & ->).
    pose proof (NoDup_remove_1 _ _ _ HL) as HL'. pose proof (NoDup_remove_2 _ _ _ HL) as Hx'.
    destruct (IH (l1 ++ l2) HL') as (T & h1 & h2 & h3 & h4).
    { rewrite app_length in *. cbn [length] in Hm. lia. }
    assert (Hin : forall j, In j (l1 ++ x :: l2) <-> j = x \/ In j (l1 ++ l2)).
    { intros j. rewrite !in_app_iff. cbn [In]. split; intros [h|[h|h]]; auto. }
    exists (x :: T). split; [constructor; auto|]. split; [simpl; auto|]. split.
    + intros i [<-|Hi]; [assumption|]. apply Hin. right. auto.
    + intros i j [<-|Hi] Hj HjT.
      * specialize (Hmax j Hj). lra.
      * apply h4; auto.
        -- apply Hin in Hj. destruct Hj as [->|Hj]; [|assumption]. exfalso. apply HjT. now left.
        -- intros h. apply HjT. now right.
Qed.

(** The tokens outside [A]. *)
Definition others (V : nat) (A : list nat) : list nat := filter (fun i => negb (mem A i)) (seq 0 V).

Lemma in_others V A i : In i (others V A) <-> (i < V)%nat /\ ~ In i A.
Proof.
  unfold others. rewrite filter_In, in_vocab. destruct (in_dec Nat.eq_dec i A) as [h|h].
  - rewrite mem_in by assumption. simpl. intuition discriminate.
  - rewrite mem_out by assumption. simpl. tauto.
Qed.

Lemma others_NoDup V A : NoDup (others V A).
Proof. apply NoDup_filter, NoDup_seq. Qed.

Lemma others_length V A : NoDup A -> (forall a, In a A -> (a < V)%nat) -> (length A + length (others V A) = V)%nat.
Proof.
  intros HA HV. transitivity (length (seq 0 V)); [|apply seq_length].
  rewrite <- app_length. apply Permutation_length, NoDup_Permutation.
  - revert HA. generalize (fun i => proj1 (in_others V A i)). generalize (others_NoDup V A). generalize (others V A).
    clear HV. induction A as [|a A IH]; intros L HL Hout HA; [exact HL|]. inversion_clear HA as [|? ? h1 h2].
    cbn [app]. constructor.
    + rewrite in_app_iff. intros [h|h]; [now apply h1|]. destruct (Hout a h) as [_ h']. apply h'. now left.
    + apply IH; auto. intros i Hi. destruct (Hout i Hi) as [k1 k2]. split; [assumption|]. intros h. apply k2. now right.
  - apply NoDup_seq.
  - intros i. rewrite in_app_iff, in_others, in_vocab. split; [intros [h|h]; [auto|tauto]|].
    intros h. destruct (in_dec Nat.eq_dec i A); auto.
Qed.

(** A rejected draft has [m] most likely tokens none of which is accepted ... *)
Lemma rejected_choice V A m q :
  rejects V A m q -> exists T, proposes V m q T /\ forall i, In i T -> ~ In i A.
Proof.
  intros (M & HM & Hlen & HM' & Hb).
  destruct (most_likely q m (others V A) (others_NoDup V A)) as (T & h1 & h2 & h3 & h4).
  { rewrite <- Hlen. apply NoDup_incl_length; [assumption|]. intros i Hi. apply in_others. auto. }
  exists T. split; [|intros i Hi; now apply (in_others V A), h3].
  split; [assumption|]. split; [assumption|]. split; [intros i Hi; now apply (in_others V A), h3|].
  intros i j Hi Hj HjT. destruct (in_dec Nat.eq_dec j A) as [HjA|HjA].
  - (* [j] is accepted: below all of [M], one of which [i] is or is above *)
    destruct (in_dec Nat.eq_dec i M) as [HiM|HiM]; [auto|].
    destruct (Exists_dec (fun k => ~ In k T) M) as [E|E].
    { intros k. destruct (in_dec Nat.eq_dec k T); [right|left]; tauto. }
    + apply Exists_exists in E. destruct E as (k & Hk & HkT). apply Rle_trans with (q k); [auto|].
      apply h4; auto. apply in_others. auto.
    + exfalso. apply HiM. apply (NoDup_length_incl (l := M) (l' := T)); auto; [lia|].
      intros k Hk. destruct (in_dec Nat.eq_dec k T) as [|h]; [assumption|].
      exfalso. apply E, Exists_exists. eauto.
  - apply h4; auto. apply in_others. auto.
Qed.

(** ... and only such a one has. *)
Lemma choice_rejected V A m q T :
  (forall a, In a A -> (a < V)%nat) -> proposes V m q T -> (forall i, In i T -> ~ In i A) -> rejects V A m q.
Proof.
  intros HA (h1 & h2 & h3 & h4) Hout. exists T. repeat split; auto.
  intros i a Hi Ha. apply h4; auto. intros h. now apply (Hout a h).
Qed.

Theorem guarantee_of_candidates : Statements.guarantee_of_candidates.
Proof.
  intros V A m p x HA Hx. split.
  - intros q T Hq Hf Hlt HT. destruct (Exists_dec (fun i => In i A) T) as [E|E].
    { intros i. apply in_dec, Nat.eq_dec. }
    + apply Exists_exists in E. exact E.
    + exfalso. apply (guarantee V A m p x q Hx Hq Hf Hlt). apply (choice_rejected V A m q T HA HT).
      intros i Hi HiA. apply E, Exists_exists. eauto.
  - intros e He. destruct Hx as [(q & h1 & h2 & h3 & h4) _]. destruct (rejected_choice V A m q h2) as (T & k1 & k2).
    exists q, T. repeat split; try apply h1; try apply k1; auto. lra.
Qed.

Theorem certificate_exists : Statements.certificate_exists.
Proof.
  intros V A m p Hp HA HA' Hm. pose proof (others_length V A HA HA') as Hlen. split.
  - intros (x & (q & _ & (M & h1 & h2 & h3 & _) & _) & _).
    enough (length M <= length (others V A))%nat by lia.
    apply NoDup_incl_length; [assumption|]. intros i Hi. apply in_others. auto.
  - intros Hle. destruct (most_likely p m (others V A) (others_NoDup V A)) as (M & h1 & h2 & h3 & h4); [lia|].
    assert (Hd : disjoint_sets V A M).
    { repeat split; auto; apply h3 in H; apply in_others in H; tauto. }
    destruct (least_exists V A M p Hp Hd) as [x Hx]; [intros ->; simpl in h2; lia|].
    exists x. rewrite <- h2. apply top_competitors; auto.
    intros i j Hi Hj HjA HjM. apply h4; auto. apply in_others. auto.
Qed.

(** ** A witness file: a rejected draft [q], and multipliers [l] of the accepted tokens and the competitors. *)

Theorem witness_is_proof : Statements.witness_is_proof.
Proof.
  intros V A M p q l Hp Hd HM Htop Hq Hb HlA HlM Hl Hqr. pose proof Hd as (d1 & d2 & d3 & d4).
  set (r := factor A M l) in *.
  assert (Hpos : forall i, (i < V)%nat -> 0 < p i -> 0 < q i).
  { intros i Hi h. destruct (proj1 Hq i Hi) as [|E]; [assumption|].
    rewrite <- (Hqr i Hi), <- E, Rmult_0_l in h. lra. }
  assert (Hr : forall i, 0 <= r i).
  { intros i. unfold r, factor. destruct (mem A i) eqn:EA; [apply mem_true in EA; specialize (HlA i EA); lra|].
    destruct (mem M i) eqn:EM; [apply mem_true in EM; specialize (HlM i EM); lra|lra]. }
  assert (Hval : KL V p q = sum (A ++ M) (fun i => p i * ln (r i))).
  { rewrite sum_app. rewrite <- (sum_indicator A (seq 0 V)), <- (sum_indicator M (seq 0 V)), <- sum_plus;
      auto using NoDup_seq; try (intros i Hi; apply in_vocab; (now apply d3) || (now apply d4)).
    apply sum_ext. intros i Hi. apply in_vocab in Hi.
    assert (E : p i * ln (p i / q i) = p i * ln (r i)).
    { destruct (proj1 Hp i Hi) as [h|<-]; [|lra]. f_equal. f_equal. pose proof (Hpos i Hi h).
      rewrite <- (Hqr i Hi). field. lra. }
    rewrite E. destruct (mem A i) eqn:EA.
    - rewrite mem_out; [lra|]. apply mem_true in EA. intros h. now apply (d4 i h).
    - destruct (mem M i) eqn:EM; [lra|]. unfold r, factor. rewrite EA, EM, ln_1. lra. }
  apply top_competitors; auto. rewrite <- Hval. split.
  - exists q. repeat split; auto; apply Hq.
  - intros q' Hq' Hb' Hf'. destruct (list_min M q' HM) as (j & Hj & Hmin).
    assert (H : sum (seq 0 V) (fun i => p i - r i * q' i) <=
                sum (seq 0 V) (fun i => p i * ln (p i / q' i) - p i * ln (p i / q i))).
    { apply sum_le. intros i Hi. apply in_vocab in Hi. pose proof (proj1 Hq' i Hi).
      pose proof (gibbs_shift (p i) (q' i) (q i) (proj1 Hp i Hi)) as h.
      eapply Rle_trans; [|apply h; auto]. pose proof (Hr i).
      destruct (proj1 Hp i Hi) as [k|<-]; [|unfold Rdiv; rewrite !Rmult_0_l; nra].
      pose proof (Hpos i Hi k). replace (p i / q i) with (r i); [lra|]. rewrite <- (Hqr i Hi). field. lra. }
    rewrite !sum_minus in H. fold (KL V p q') in H. fold (KL V p q) in H. rewrite (proj2 Hp) in H.
    assert (E : sum (seq 0 V) (fun i => r i * q' i) = 1 + (sum A (fun a => l a * q' a) - sum M (fun i => l i * q' i))).
    { rewrite <- (proj2 Hq'), <- (sum_indicator A (seq 0 V)), <- (sum_indicator M (seq 0 V)), <- sum_minus, <- sum_plus;
        auto using NoDup_seq; try (intros i Hi; apply in_vocab; (now apply d3) || (now apply d4)).
      apply sum_ext. intros i Hi. unfold r, factor. destruct (mem A i) eqn:EA.
      - rewrite mem_out; [lra|]. apply mem_true in EA. intros h. now apply (d4 i h).
      - destruct (mem M i); lra. }
    assert (H1 : sum A (fun a => l a * q' a) <= q' j * sum A l).
    { rewrite <- sum_scal. apply sum_le. intros a Ha. specialize (HlA a Ha). specialize (Hb' j a Hj Ha). nra. }
    assert (H2 : q' j * sum M l <= sum M (fun i => l i * q' i)).
    { rewrite <- sum_scal. apply sum_le. intros i Hi. destruct (HlM i Hi). specialize (Hmin i Hi). nra. }
    rewrite Hl in H1. lra.
Qed.
