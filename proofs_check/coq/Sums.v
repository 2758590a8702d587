(** * Finite sums over lists of tokens. *)

From Coq Require Import Reals List Arith Lra Lia Permutation.
From Draftcert Require Import Definitions.
Open Scope R_scope.

Lemma sum_nil f : sum nil f = 0.
Proof. reflexivity. Qed.

Lemma sum_cons i l f : sum (i :: l) f = f i + sum l f.
Proof. reflexivity. Qed.

Lemma sum_app l1 l2 f : sum (l1 ++ l2) f = sum l1 f + sum l2 f.
Proof.
  induction l1 as [|x l1 IH]; cbn [app]; rewrite ?sum_nil, ?sum_cons; lra.
Qed.

Lemma sum_ext l f g : (forall i, In i l -> f i = g i) -> sum l f = sum l g.
Proof.
  induction l as [|x l IH]; intros H; [reflexivity|].
  rewrite !sum_cons, IH, (H x); auto with datatypes.
Qed.

Lemma sum_le l f g : (forall i, In i l -> f i <= g i) -> sum l f <= sum l g.
Proof.
  induction l as [|x l IH]; intros H; [rewrite !sum_nil; lra|].
  rewrite !sum_cons. apply Rplus_le_compat; auto with datatypes.
Qed.

Lemma sum_zero l : sum l (fun _ => 0) = 0.
Proof. induction l; rewrite ?sum_nil, ?sum_cons; lra. Qed.

Lemma sum_nonneg l f : (forall i, In i l -> 0 <= f i) -> 0 <= sum l f.
Proof. intros H. rewrite <- (sum_zero l). now apply sum_le. Qed.

Lemma sum_plus l f g : sum l (fun i => f i + g i) = sum l f + sum l g.
Proof. induction l; rewrite ?sum_nil, ?sum_cons; lra. Qed.

Lemma sum_minus l f g : sum l (fun i => f i - g i) = sum l f - sum l g.
Proof. induction l; rewrite ?sum_nil, ?sum_cons; lra. Qed.

Lemma sum_scal l c f : sum l (fun i => c * f i) = c * sum l f.
Proof. induction l as [|x l IH]; rewrite ?sum_nil, ?sum_cons, ?IH; lra. Qed.

Lemma sum_const l c : sum l (fun _ => c) = INR (length l) * c.
Proof.
  induction l as [|x l IH]; [rewrite sum_nil; simpl; lra|].
  rewrite sum_cons, IH. cbn [length]. rewrite S_INR. lra.
Qed.

Lemma sum_perm l l' f : Permutation l l' -> sum l f = sum l' f.
Proof. induction 1; rewrite ?sum_cons in *; lra. Qed.

Lemma mem_true l i : mem l i = true <-> In i l.
Proof. unfold mem. destruct (in_dec Nat.eq_dec i l); split; auto; discriminate. Qed.

Lemma mem_false l i : mem l i = false <-> ~ In i l.
Proof. unfold mem. destruct (in_dec Nat.eq_dec i l); split; auto; try discriminate; tauto. Qed.

Lemma mem_in l i : In i l -> mem l i = true.
Proof. apply mem_true. Qed.

Lemma mem_out l i : ~ In i l -> mem l i = false.
Proof. apply mem_false. Qed.

(** A sublist without repetitions can be split off. *)
Lemma perm_split (s l : list nat) :
  NoDup s -> NoDup l -> incl s l -> exists r, Permutation l (s ++ r).
Proof.
  revert l. induction s as [|x s IH]; intros l Hs Hl Hi; [exists l; reflexivity|].
  inversion_clear Hs as [|? ? Hx Hs'].
  destruct (in_split x l) as (l1 & l2 & ->); [apply Hi; now left|].
  destruct (IH (l1 ++ l2)) as [r Hr]; auto.
  - eapply NoDup_remove_1; eauto.
  - intros y Hy. assert (In y (l1 ++ x :: l2)) as H by (apply Hi; now right).
    apply in_app_iff in H. apply in_app_iff. destruct H as [|[->|]]; tauto.
  - exists r. cbn [app]. rewrite <- Permutation_middle. now constructor.
Qed.

Lemma sum_sub_le s l f :
  NoDup s -> NoDup l -> incl s l -> (forall i, In i l -> 0 <= f i) -> sum s f <= sum l f.
Proof.
  intros Hs Hl Hi Hf. destruct (perm_split s l Hs Hl Hi) as [r Hr].
  rewrite (sum_perm l (s ++ r)), sum_app by assumption.
  enough (0 <= sum r f) by lra. apply sum_nonneg. intros i Hir. apply Hf.
  apply (Permutation_in _ (Permutation_sym Hr)), in_app_iff; now right.
Qed.

Lemma sum_indicator s l f :
  NoDup s -> NoDup l -> incl s l -> sum l (fun i => if mem s i then f i else 0) = sum s f.
Proof.
  intros Hs Hl Hi. destruct (perm_split s l Hs Hl Hi) as [r Hr].
  rewrite (sum_perm l (s ++ r)), sum_app by assumption.
  assert (Hn : NoDup (s ++ r)) by (eapply Permutation_NoDup; eauto).
  rewrite (sum_ext s _ f), (sum_ext r _ (fun _ => 0)), sum_zero; [lra| |].
  - intros i Hir. rewrite mem_out; [reflexivity|]. intros His.
    clear - Hn Hir His. induction s as [|x s IH]; [easy|]. cbn [app] in Hn. inversion_clear Hn as [|? ? Hx Hn'].
    destruct His as [->|]; [apply Hx, in_app_iff; now right|now apply IH].
  - intros i His. now rewrite mem_in.
Qed.

(** Changing [f] off a sublist [s] where it stays the same elsewhere. *)
Lemma sum_diff_on s l f g :
  NoDup s -> NoDup l -> incl s l -> (forall i, In i l -> ~ In i s -> f i = g i) ->
  sum l f - sum l g = sum s f - sum s g.
Proof.
  intros Hs Hl Hi H. rewrite <- !sum_minus, <- (sum_indicator s l) by assumption.
  apply sum_ext. intros i Hil. destruct (in_dec Nat.eq_dec i s) as [h|h].
  - now rewrite mem_in.
  - rewrite mem_out, H by assumption; lra.
Qed.

Lemma sum_zero_inv l f :
  (forall i, In i l -> 0 <= f i) -> sum l f <= 0 -> forall i, In i l -> f i = 0.
Proof.
  induction l as [|x l IH]; intros Hf Hs i Hi; [easy|]. rewrite sum_cons in Hs.
  assert (0 <= sum l f) by (apply sum_nonneg; auto with datatypes).
  assert (0 <= f x) by auto with datatypes.
  destruct Hi as [<-|Hi]; [lra|apply IH; auto with datatypes; lra].
Qed.

(** Termwise below and not above in total: equal everywhere. *)
Lemma sum_le_eq l f g :
  (forall i, In i l -> f i <= g i) -> sum l g <= sum l f -> forall i, In i l -> f i = g i.
Proof.
  intros H Hs i Hi. enough (g i - f i = 0) by lra.
  apply (sum_zero_inv l (fun i => g i - f i)); auto.
  - intros j Hj. specialize (H j Hj). lra.
  - rewrite sum_minus. lra.
Qed.

Lemma NoDup_seq V : NoDup (seq 0 V).
Proof. apply seq_NoDup. Qed.

Lemma in_vocab V i : In i (seq 0 V) <-> (i < V)%nat.
Proof. rewrite in_seq. lia. Qed.

Lemma single_le_sum l f i :
  In i l -> (forall j, In j l -> 0 <= f j) -> f i <= sum l f.
Proof.
  induction l as [|x l IH]; intros Hi Hf; [easy|]. rewrite sum_cons.
  assert (0 <= sum l f) by (apply sum_nonneg; auto with datatypes).
  assert (0 <= f x) by auto with datatypes.
  destruct Hi as [<-|Hi]; [lra|]. specialize (IH Hi). 
  assert (f i <= sum l f) by auto with datatypes. lra.
Qed.

Lemma prob_le_1 V p i : prob V p -> (i < V)%nat -> 0 <= p i <= 1.
Proof.
  intros [Hp Hs] Hi. split; [auto|]. rewrite <- Hs.
  apply single_le_sum; [now apply in_vocab|]. intros j Hj. now apply Hp, in_vocab.
Qed.

(** A nonempty list has a least value. *)
Lemma list_min (l : list nat) (f : nat -> R) :
  l <> nil -> exists i, In i l /\ forall j, In j l -> f i <= f j.
Proof.
  induction l as [|x l IH]; intros H; [easy|]. destruct l as [|y l].
  - exists x. split; [now left|]. intros j [<-|[]]. lra.
  - destruct IH as (i & Hi & Hm); [discriminate|].
    destruct (Rle_dec (f x) (f i)) as [h|h].
    + exists x. split; [now left|]. intros j [<-|Hj]; [lra|]. specialize (Hm j Hj). lra.
    + exists i. split; [now right|]. intros j [<-|Hj]; [lra|auto].
Qed.

Lemma NoDup_app_l (l l' : list nat) : NoDup (l ++ l') -> NoDup l.
Proof.
  induction l as [|x l IH]; intros H; [constructor|]. cbn [app] in H. inversion_clear H as [|? ? Hx H'].
  constructor; [|auto]. intros h. apply Hx, in_app_iff. now left.
Qed.
