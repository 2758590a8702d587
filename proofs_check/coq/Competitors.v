(** * T2: the most likely rejected tokens are the worst competitors; T6: order. *)

From Coq Require Import Reals List Arith Lra Lia Psatz Permutation.
From Draftcert Require Statements.
From Draftcert Require Import Definitions Sums LogFacts Projection.
Open Scope R_scope.

(** ** One exchange: competitor [j] is replaced by a likelier token [i]. *)

Definition swap (i j : nat) (q : nat -> R) (k : nat) : R :=
  if Nat.eq_dec k i then q j else if Nat.eq_dec k j then q i else q k.

Lemma swap_l i j q : swap i j q i = q j.
Proof. unfold swap. destruct (Nat.eq_dec i i); congruence. Qed.

Lemma swap_r i j q : i <> j -> swap i j q j = q i.
Proof. intros H. unfold swap. destruct (Nat.eq_dec j i), (Nat.eq_dec j j); congruence. Qed.

Lemma swap_other i j q k : k <> i -> k <> j -> swap i j q k = q k.
Proof. intros H1 H2. unfold swap. destruct (Nat.eq_dec k i), (Nat.eq_dec k j); congruence. Qed.

Lemma exchange V A M p q i j :
  prob V p -> (i < V)%nat -> (j < V)%nat -> i <> j -> ~ In i A -> ~ In j A -> ~ In i M -> ~ In j M ->
  p j <= p i -> prob V q -> beats A (j :: M) q -> KL_finite V p q ->
  exists q', prob V q' /\ beats A (i :: M) q' /\ KL_finite V p q' /\ KL V p q' <= KL V p q.
Proof.
  intros Hp Hi Hj Hij HiA HjA HiM HjM Hpij Hq Hb Hf.
  destruct (Rle_dec (q j) (q i)) as [Hle|Hgt].
  - (* q already favours i *)
    exists q. split; [assumption|]. split; [|split; [assumption|lra]].
    intros k a [<-|Hk] Ha; [|apply Hb; auto with datatypes].
    apply Rle_trans with (q j); auto with datatypes.
  - assert (Hpi : 0 < p i -> 0 < q i /\ 0 < q j) by (intros h; specialize (Hf i Hi h); lra).
    pose proof (proj1 Hp i Hi) as Hpi0. pose proof (proj1 Hp j Hj) as Hpj0.
    assert (Hsub : NoDup (i :: j :: nil)) by (repeat constructor; simpl; intuition).
    assert (Hin : incl (i :: j :: nil) (seq 0 V)) by (intros k [<-|[<-|[]]]; now apply in_vocab).
    exists (swap i j q). split; [split|split; [|split]].
    + intros k Hk. destruct (Nat.eq_dec k i) as [->|h]; [rewrite swap_l; now apply Hq|].
      destruct (Nat.eq_dec k j) as [->|h']; [rewrite swap_r by assumption; now apply Hq|].
      rewrite swap_other by assumption. now apply Hq.
    + pose proof (sum_diff_on _ _ (swap i j q) q Hsub (NoDup_seq V) Hin) as H.
      rewrite !sum_cons, !sum_nil, swap_l, swap_r in H by assumption.
      rewrite <- (proj2 Hq). enough (sum (seq 0 V) (swap i j q) - sum (seq 0 V) q = 0) by lra.
      rewrite H; [lra|]. intros k _ Hk. apply swap_other; intros ->; apply Hk; simpl; auto.
    + intros k a [<-|Hk] Ha.
      * rewrite swap_l, swap_other by (intros ->; tauto). apply Hb; auto with datatypes.
      * rewrite !swap_other by (intros ->; tauto). apply Hb; auto with datatypes.
    + intros k Hk Hpk. destruct (Nat.eq_dec k i) as [->|h]; [rewrite swap_l; now apply Hpi|].
      destruct (Nat.eq_dec k j) as [->|h']; [rewrite swap_r by assumption; apply Hpi; lra|].
      rewrite swap_other by assumption. now apply Hf.
    + pose proof (sum_diff_on _ _ (fun k => p k * ln (p k / swap i j q k)) (fun k => p k * ln (p k / q k))
                    Hsub (NoDup_seq V) Hin) as H.
      rewrite !sum_cons, !sum_nil, swap_l, swap_r in H by assumption. unfold KL.
      match type of H with _ -> ?l = ?r => enough (l <= 0) by lra; rewrite H; [|] end.
      * destruct Hpi0 as [h|h]; [|replace (p j) with 0 by lra; rewrite <- h; lra].
        destruct (Hpi h) as [hi hj].
        assert (Hln : ln (q i) <= ln (q j)) by (apply ln_nondecr; lra).
        rewrite !pln_div by lra. nra.
      * intros k _ Hk. rewrite swap_other; [reflexivity| |]; intros ->; apply Hk; simpl; auto.
Qed.

Ltac in_lists := repeat first [rewrite in_app_iff in * | progress cbn [In app] in *]; tauto.

(** ** Repeated exchange.  [K] holds the competitors already in place. *)

Lemma exchange_all V A p : prob V p -> forall M0 M K q,
  length M0 = length M -> NoDup (M0 ++ K) -> NoDup (M ++ K) ->
  (forall i, In i (M0 ++ M ++ K) -> (i < V)%nat /\ ~ In i A) ->
  (forall i j, In i M0 -> In j M -> ~ In j M0 -> p j <= p i) ->
  prob V q -> beats A (M ++ K) q -> KL_finite V p q ->
  exists q', prob V q' /\ beats A (M0 ++ K) q' /\ KL_finite V p q' /\ KL V p q' <= KL V p q.
Proof.
  intros Hp. induction M0 as [|i M0 IH]; intros M K q Hlen Hn0 Hn Hin Htop Hq Hb Hf.
  - destruct M; [|discriminate]. exists q. repeat split; auto; try apply Hq; lra.
  - (* a competitor to be replaced by i: i itself, or one outside M0 *)
    assert (Hex : exists j, In j M /\ (j = i \/ ~ In i M /\ ~ In j (i :: M0))).
    { destruct (in_dec Nat.eq_dec i M) as [h|h]; [exists i; auto|].
      destruct (Exists_dec (fun j => ~ In j (i :: M0)) M) as [E|E].
      - intros j. destruct (in_dec Nat.eq_dec j (i :: M0)); [right|left]; tauto.
      - apply Exists_exists in E. destruct E as (j & Hj & Hj'). exists j. auto.
      - exfalso. apply h. apply (NoDup_length_incl (l := M) (l' := i :: M0)); [| | |now left].
        + now apply NoDup_app_l in Hn.
        + lia.
        + intros j Hj. destruct (in_dec Nat.eq_dec j (i :: M0)) as [|h']; [assumption|].
          exfalso. apply E, Exists_exists. eauto. }
    destruct Hex as (j & Hj & Hcase). destruct (in_split j M Hj) as (M1 & M2 & ->).
    assert (Hperm : Permutation ((M1 ++ j :: M2) ++ K) (j :: (M1 ++ M2) ++ K)).
    { rewrite <- !app_assoc. cbn [app]. symmetry. apply Permutation_middle. }
    assert (Hn' : NoDup (j :: (M1 ++ M2) ++ K)) by (eapply Permutation_NoDup; eauto).
    assert (Hstep : exists q', prob V q' /\ beats A (i :: (M1 ++ M2) ++ K) q' /\ KL_finite V p q' /\ KL V p q' <= KL V p q).
    { assert (Hb' : beats A (j :: (M1 ++ M2) ++ K) q).
      { intros k a Hk. apply Hb. eapply Permutation_in; [symmetry; exact Hperm|assumption]. }
      destruct Hcase as [->|[HiM Hj0]]; [exists q; repeat split; auto; try apply Hq; lra|].
      assert (HiK : ~ In i K).
      { inversion_clear Hn0 as [|? ? h _]. intros h'. apply h, in_app_iff. now right. }
      apply exchange with (j := j); auto.
      - apply Hin. now left.
      - apply Hin. apply in_app_iff. right. apply in_app_iff. now left.
      - intros ->. apply Hj0. now left.
      - apply Hin. now left.
      - apply Hin. apply in_app_iff. right. apply in_app_iff. now left.
      - intros h. apply in_app_iff in h. destruct h as [h|h]; [|now apply HiK].
        apply HiM. apply in_app_iff in h. apply in_app_iff. destruct h; [now left|right; now right].
      - now inversion_clear Hn'.
      - apply Htop; auto. now left. }
    destruct Hstep as (q' & Hq' & Hb' & Hf' & Hle).
    assert (Hi2 : ~ In i ((M1 ++ M2) ++ K)).
    { destruct Hcase as [->|[HiM Hj0]]; [now inversion_clear Hn'|].
      inversion_clear Hn0 as [|? ? h _]. intros h'. apply in_app_iff in h'. destruct h' as [h'|h'].
      - apply HiM. apply in_app_iff in h'. apply in_app_iff. destruct h'; [now left|right; now right].
      - apply h, in_app_iff. now right. }
    destruct (IH (M1 ++ M2) (i :: K) q') as (q'' & h1 & h2 & h3 & h4); auto.
    + rewrite app_length in *. cbn [length] in Hlen. lia.
    + eapply Permutation_NoDup; [apply Permutation_middle|exact Hn0].
    + eapply Permutation_NoDup; [apply Permutation_middle|]. constructor; [assumption|now inversion_clear Hn'].
    + intros k Hk. apply Hin. clear - Hk. in_lists.
    + intros k l Hk Hl Hl0. apply Htop; [now right| |].
      * apply in_app_iff in Hl. apply in_app_iff. destruct Hl; [now left|right; now right].
      * intros [<-|h]; [|tauto]. apply Hi2, in_app_iff. now left.
    + intros k a Hk. apply Hb'. clear - Hk. in_lists.
    + exists q''. repeat split; try apply h1; auto; [|lra].
      intros k a Hk. apply h2. clear - Hk. in_lists.
Qed.

(** The region with [m] candidates has the same least value as the region in
    which the [m] most likely rejected tokens are the competitors. *)
Theorem top_competitors : Statements.T2_worst_competitors.
Proof.
  intros V A M p x Hp Hd Htop [(q0 & h1 & h2 & h3 & h4) Hlow]. split.
  - exists q0. repeat split; auto; try apply h1. exists M. repeat split; auto; now apply Hd.
  - intros q Hq (M' & Hn' & Hlen & Hin' & Hb) Hf.
    destruct (exchange_all V A p Hp M M' nil q) as (q' & k1 & k2 & k3 & k4);
      rewrite ?app_nil_r in *; auto; try apply Hd.
    + intros i Hi. apply in_app_iff in Hi. destruct Hi as [Hi|Hi]; [now apply Hd|auto].
    + intros i j Hi Hj HjM. apply Htop; auto; now apply Hin'.
    + apply Rle_trans with (KL V p q'); auto.
Qed.

Lemma certificate_unique V A m p x y : certificate V A m p x -> certificate V A m p y -> x = y.
Proof.
  intros [(q & h1 & h2 & h3 & <-) Hx] [(q' & h1' & h2' & h3' & <-) Hy].
  apply Rle_antisym; auto.
Qed.

Lemma certificate_nonneg V A m p x : prob V p -> certificate V A m p x -> 0 <= x.
Proof.
  intros Hp [(q & Hq & _ & Hf & <-) _]. 
  replace 0 with (sum (seq 0 V) (fun i => p i - q i)) by (rewrite sum_minus, (proj2 Hp), (proj2 Hq); lra).
  apply sum_le. intros i Hi. apply in_vocab in Hi. apply gibbs_term; [now apply Hp|now apply Hq|auto].
Qed.

(** T6, order: more accepted tokens or more candidates never lower it. *)
Lemma rejects_mono V A A' m m' q :
  incl A A' -> (m <= m')%nat -> rejects V A' m' q -> rejects V A m q.
Proof.
  intros HA Hm (M & Hn & Hlen & Hin & Hb). exists (firstn m M).
  assert (Hs : incl (firstn m M) M).
  { intros i Hi. rewrite <- (firstn_skipn m M). apply in_app_iff. now left. }
  split; [|split; [|split]].
  - rewrite <- (firstn_skipn m M) in Hn. now apply NoDup_app_l in Hn.
  - rewrite firstn_length. lia.
  - intros i Hi. destruct (Hin i (Hs i Hi)). split; auto.
  - intros i a Hi Ha. apply Hb; auto.
Qed.

Theorem certificate_mono : Statements.T6_order.
Proof.
  intros V A A' m m' p x x' HA Hm [_ Hx] [(q & h1 & h2 & h3 & <-) _]. apply Hx; auto. eapply rejects_mono; eauto.
Qed.

(** The certificate as a guarantee, whatever the tie-breaking. *)
Theorem guarantee V A m p x q :
  certificate V A m p x -> prob V q -> KL_finite V p q -> KL V p q < x -> ~ rejects V A m q.
Proof. intros [_ Hx] Hq Hf Hlt Hr. specialize (Hx q Hq Hr Hf). lra. Qed.

(** The certificate depends on the target's values on the vocabulary only. *)
Lemma prob_ext V p p' : prob V p -> (forall i, p' i = p i) -> prob V p'.
Proof.
  intros [h1 h2] H. split; [intros i Hi; rewrite H; auto|]. rewrite <- h2. apply sum_ext. auto.
Qed.

Lemma certificate_ext V A m p p' x : certificate V A m p x -> (forall i, p' i = p i) -> certificate V A m p' x.
Proof.
  intros [(q & h1 & h2 & h3 & h4) Hlow] H.
  assert (HK : forall q, KL V p' q = KL V p q) by (intros r; apply sum_ext; intros i _; now rewrite H).
  split.
  - exists q. split; [assumption|]. split; [assumption|]. split; [intros i Hi; rewrite H; auto|now rewrite HK].
  - intros r Hr Hrej Hf. rewrite HK. apply Hlow; auto. intros i Hi h. apply Hf; [assumption|now rewrite H].
Qed.
