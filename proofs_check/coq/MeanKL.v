(** * B2: what a MEAN KL guarantees about a run of [N] contexts. *)

From Coq Require Import Reals List Arith Lra Lia Psatz Sorted.
From Draftcert Require Statements.
From Draftcert Require Import Definitions Sums LogFacts Projection Competitors.
Open Scope R_scope.

(** The [k] first entries of an ascending list have the least total among all
    sublists of [k] entries. *)
Lemma smallest_first (C : nat -> R) : forall ord rej,
  StronglySorted (fun i j => C i <= C j) ord -> NoDup rej -> incl rej ord ->
  sum (firstn (length rej) ord) C <= sum rej C.
Proof.
  induction ord as [|o ord IH]; intros rej Hs Hn Hi.
  - destruct rej as [|r rej]; [cbn; lra|]. destruct (Hi r). now left.
  - inversion_clear Hs as [|? ? Hs' Hmin]. rewrite Forall_forall in Hmin.
    destruct (in_dec Nat.eq_dec o rej) as [Ho|Ho].
    + destruct (in_split o rej Ho) as (r1 & r2 & ->).
      specialize (IH (r1 ++ r2) Hs' (NoDup_remove_1 _ _ _ Hn)).
      rewrite !app_length, sum_app in *. cbn [length] in *. rewrite Nat.add_succ_r.
      cbn [firstn]. rewrite !sum_cons.
      enough (sum (firstn (length r1 + length r2) ord) C <= sum r1 C + sum r2 C) by lra.
      apply IH. intros j Hj. pose proof (NoDup_remove_2 _ _ _ Hn) as Hno.
      assert (Hj' : In j (r1 ++ o :: r2)) by (apply in_app_iff in Hj; apply in_app_iff; destruct Hj; [now left|right; now right]).
      destruct (Hi j Hj') as [<-|h]; [tauto|assumption].
    + assert (Hi' : incl rej ord).
      { intros j Hj. destruct (Hi j Hj) as [<-|h]; [tauto|assumption]. }
      destruct rej as [|r rej]; [cbn; lra|]. inversion_clear Hn as [|? ? _ Hn'].
      cbn [length firstn]. rewrite !sum_cons. apply Rplus_le_compat.
      * apply Hmin, Hi'. now left.
      * apply IH; auto. intros j Hj. apply Hi'. now right.
Qed.

Lemma KL_nonneg V p q : prob V p -> prob V q -> KL_finite V p q -> 0 <= KL V p q.
Proof.
  intros Hp Hq Hf.
  replace 0 with (sum (seq 0 V) (fun i => p i - q i)) by (rewrite sum_minus, (proj2 Hp), (proj2 Hq); lra).
  apply sum_le. intros i Hi. apply in_vocab in Hi. apply gibbs_term; [now apply Hp|now apply Hq|auto].
Qed.

Lemma kl_self V p : KL V p p = 0.
Proof.
  unfold KL. rewrite (sum_ext _ _ (fun _ => 0)); [apply sum_zero|]. intros. apply div_self_ln.
Qed.

(** Choosing, context by context, from an existence statement. *)
Lemma choose_drafter (Q : nat -> (nat -> R) -> Prop) : forall l,
  (forall n, In n l -> exists q, Q n q) -> exists q : nat -> nat -> R, forall n, In n l -> Q n (q n).
Proof.
  induction l as [|x l IH]; intros H; [exists (fun _ _ => 0); intros n []|].
  destruct IH as [q Hq]; [auto with datatypes|]. destruct (H x) as [qx Hx]; [now left|].
  exists (fun n => if Nat.eq_dec n x then qx else q n). intros n Hn.
  destruct (Nat.eq_dec n x) as [->|h]; [assumption|]. destruct Hn as [<-|Hn]; [congruence|auto].
Qed.

(** Some drafters are rejected in these contexts at their certificates, and are the target in all others. *)
Lemma rejected_in N V (A : nat -> list nat) m p C rej :
  (forall n, (n < N)%nat -> prob (V n) (p n)) -> (forall n, In n rej -> certificate (V n) (A n) (m n) (p n) (C n)) ->
  exists q : nat -> nat -> R, forall n, (n < N)%nat ->
    prob (V n) (q n) /\ KL_finite (V n) (p n) (q n) /\ (In n rej -> rejects (V n) (A n) (m n) (q n)) /\
    KL (V n) (p n) (q n) = if mem rej n then C n else 0.
Proof.
  intros Hp Hc. destruct (choose_drafter (fun n q => prob (V n) q /\ KL_finite (V n) (p n) q /\
      (In n rej -> rejects (V n) (A n) (m n) q) /\ KL (V n) (p n) q = if mem rej n then C n else 0) (seq 0 N)) as [q Hq].
  - intros n Hn. apply in_vocab in Hn. destruct (mem rej n) eqn:E.
    + apply mem_true in E. destruct (Hc n E) as [(q & h1 & h2 & h3 & h4) _]. exists q. tauto.
    + apply mem_false in E. exists (p n). split; [auto|]. split; [intros i _; auto|]. split; [tauto|]. apply kl_self.
  - exists q. intros n Hn. now apply Hq, in_vocab.
Qed.

Theorem lorenz_attained : Statements.B2c_attained.
Proof.
  intros N V A m p C w v rej Hp Hn Hr. destruct (rejected_in N V A m p C rej Hp) as [q Hq]; [intros n Hi; now apply Hr|].
  exists q. split; [|split].
  - intros n Hi. destruct (Hq n Hi) as (h1 & h2 & _). auto.
  - intros n Hi. destruct (Hq n) as (_ & _ & h & _); [now apply Hr|auto].
  - rewrite <- sum_scal, <- sum_minus, <- (sum_indicator rej (seq 0 N)) by (auto using NoDup_seq; intros n Hi; now apply in_vocab, Hr).
    apply sum_ext. intros n Hi. apply in_vocab in Hi. destruct (Hq n Hi) as (_ & _ & _ & ->). destruct (mem rej n) eqn:E; [|ring].
    apply mem_true in E. destruct (Hr n E) as (_ & _ & h). rewrite Rmax_right by lra. ring.
Qed.

Theorem lorenz_curve : Statements.B2c_lorenz_curve.
Proof.
  intros N C w k r Hw Hs Hk rest Hrest bound L.
  assert (Esplit : forall f, sum (seq 0 N) f = sum (seq 0 k) f + f k + sum (seq (S k) (N - S k)) f).
  { intros f. replace N with (k + S (N - S k))%nat at 1 by lia. rewrite seq_app, sum_app. cbn [Nat.add seq]. rewrite sum_cons. lra. }
  assert (Hr : r = sum (seq 0 k) w + rest) by (unfold rest; lra).
  assert (Hhead : forall v, v * sum (seq 0 k) w - sum (seq 0 k) (fun n => w n * C n) = sum (seq 0 k) (fun n => w n * (v - C n))).
  { intros v. rewrite <- sum_scal, <- sum_minus. apply sum_ext. intros n _. ring. }
  split; [intros v|]; unfold bound; rewrite Esplit.
  - assert (H1 : sum (seq 0 k) (fun n => w n * (v - C n)) <= sum (seq 0 k) (fun n => w n * Rmax 0 (v - C n))).
    { apply sum_le. intros n Hn. apply in_vocab in Hn. apply Rmult_le_compat_l; [apply Hw; lia|apply Rmax_r]. }
    assert (H2 : 0 <= sum (seq (S k) (N - S k)) (fun n => w n * Rmax 0 (v - C n))).
    { apply sum_nonneg. intros n Hn. apply in_seq in Hn. apply Rmult_le_pos; [apply Hw; lia|apply Rmax_l]. }
    assert (H3 : rest * (v - C k) <= w k * Rmax 0 (v - C k)).
    { apply Rle_trans with (rest * Rmax 0 (v - C k)); [apply Rmult_le_compat_l; [lra|apply Rmax_r]|apply Rmult_le_compat_r; [apply Rmax_l|lra]]. }
    specialize (Hhead v). unfold L. rewrite Hr. lra.
  - rewrite (sum_ext (seq 0 k) _ (fun n => w n * (C k - C n))), (sum_ext (seq (S k) _) _ (fun _ => 0)), sum_zero, <- Hhead, Rmax_left by
      (try (intros n Hn; apply in_seq in Hn; first [rewrite Rmax_left by (specialize (Hs k n ltac:(lia) ltac:(lia)); lra); ring
        |rewrite Rmax_right by (specialize (Hs n k ltac:(lia) Hk); lra); reflexivity]); lra).
    unfold L. rewrite Hr. ring.
Qed.

Section Run.

(** [N] contexts.  Context [n] has the vocabulary [V n], the target [p n], the
    accepted set [A n] and [m n] candidates.  [ord] lists, in ascending order of
    their certificates [C], the contexts whose certificate is finite; in the
    others no drafter at all can be rejected. *)
Variables (N : nat) (V : nat -> nat) (A : nat -> list nat) (m : nat -> nat).
Variables (p : nat -> nat -> R) (C : nat -> R) (ord : list nat) (eps : R).
Hypothesis Hp : forall n, (n < N)%nat -> prob (V n) (p n).
Hypothesis Hord : NoDup ord.
Hypothesis HordN : forall n, In n ord -> (n < N)%nat.
Hypothesis Hsorted : StronglySorted (fun i j => C i <= C j) ord.
Hypothesis Hcert : forall n, In n ord -> certificate (V n) (A n) (m n) (p n) (C n).
Hypothesis Hinf : forall n, (n < N)%nat -> ~ In n ord ->
  forall q, prob (V n) q -> ~ rejects (V n) (A n) (m n) q.

(** The total of the [k] smallest certificates. *)
Definition lowest (k : nat) : R := sum (firstn k ord) C.

(** A drafter whose mean KL is at most [eps] and whose rejected contexts include [rej]. *)
Theorem mean_kl_guarantee (q : nat -> nat -> R) (rej : list nat) :
  (forall n, (n < N)%nat -> prob (V n) (q n) /\ KL_finite (V n) (p n) (q n)) ->
  sum (seq 0 N) (fun n => KL (V n) (p n) (q n)) <= INR N * eps ->
  NoDup rej -> (forall n, In n rej -> (n < N)%nat /\ rejects (V n) (A n) (m n) (q n)) ->
  (length rej <= length ord)%nat /\ lowest (length rej) <= INR N * eps.
Proof.
  intros Hq Hmean Hn Hrej.
  assert (Hin : incl rej ord).
  { intros n Hr. destruct (Hrej n Hr) as [HnN Hrn].
    destruct (in_dec Nat.eq_dec n ord) as [|h]; [assumption|].
    exfalso. apply (Hinf n HnN h (q n)); [now apply Hq|assumption]. }
  split; [now apply NoDup_incl_length|]. eapply Rle_trans; [|exact Hmean].
  apply Rle_trans with (sum rej C); [now apply smallest_first|].
  apply Rle_trans with (sum rej (fun n => KL (V n) (p n) (q n))).
  - apply sum_le. intros n Hr. destruct (Hrej n Hr) as [HnN Hrn]. apply (Hcert n (Hin n Hr)); auto; now apply Hq.
  - apply sum_sub_le; auto using NoDup_seq.
    + intros n Hr. now apply in_vocab, Hrej.
    + intros n Hi. apply in_vocab in Hi. apply KL_nonneg; auto; now apply Hq.
Qed.

(** At most [k] contexts are rejected, [k] being any number beyond which the
    lowest certificates no longer fit into the budget. *)
Corollary mean_kl_at_most (q : nat -> nat -> R) (rej : list nat) (k : nat) :
  (forall j, (k < j <= length ord)%nat -> INR N * eps < lowest j) ->
  (forall n, (n < N)%nat -> prob (V n) (q n) /\ KL_finite (V n) (p n) (q n)) ->
  sum (seq 0 N) (fun n => KL (V n) (p n) (q n)) <= INR N * eps ->
  NoDup rej -> (forall n, In n rej -> (n < N)%nat /\ rejects (V n) (A n) (m n) (q n)) ->
  (length rej <= k)%nat.
Proof.
  intros Hk Hq Hmean Hn Hrej. destruct (mean_kl_guarantee q rej Hq Hmean Hn Hrej) as [Hl Hb].
  destruct (le_lt_dec (length rej) k) as [|h]; [assumption|]. exfalso. specialize (Hk _ (conj h Hl)). lra.
Qed.

(** Tightness: some drafter within the budget is rejected in [k] contexts. *)
Theorem mean_kl_tight (k : nat) :
  (k <= length ord)%nat -> lowest k <= INR N * eps ->
  exists (q : nat -> nat -> R) (rej : list nat),
    (forall n, (n < N)%nat -> prob (V n) (q n) /\ KL_finite (V n) (p n) (q n)) /\
    sum (seq 0 N) (fun n => KL (V n) (p n) (q n)) <= INR N * eps /\
    NoDup rej /\ length rej = k /\
    (forall n, In n rej -> (n < N)%nat /\ rejects (V n) (A n) (m n) (q n)).
Proof.
  intros Hk Hb. set (rej := firstn k ord) in *.
  assert (Hsub : incl rej ord).
  { intros n Hn. rewrite <- (firstn_skipn k ord). apply in_app_iff. now left. }
  assert (Hnd : NoDup rej).
  { pose proof Hord as h. rewrite <- (firstn_skipn k ord) in h. now apply NoDup_app_l in h. }
  destruct (rejected_in N V A m p C rej) as [q Hq]; auto. exists q, rej. split; [|split; [|split; [|split]]]; auto.
  - intros n Hn. destruct (Hq n Hn) as (h1 & h2 & _). auto.
  - rewrite (sum_ext _ _ (fun n => if mem rej n then C n else 0)) by (intros n Hn; now apply Hq, in_vocab).
    rewrite sum_indicator; auto using NoDup_seq. intros n Hn. apply in_vocab, HordN; auto.
  - unfold rej. rewrite firstn_length. lia.
  - intros n Hn. split; [auto|]. destruct (Hq n) as (_ & _ & h1 & _); auto.
Qed.

End Run.
