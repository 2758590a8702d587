(** * T4: ceilings that hold for every target. *)

From Coq Require Import Reals List Arith Lra Lia Psatz.
From Draftcert Require Import Definitions Sums LogFacts Projection Competitors ClosedForm.
Open Scope R_scope.

(** Raising [m] competitors by [p1] and renormalising is always feasible, and no
    ratio [p/q] exceeds [1 + m p1]. *)
Theorem ceiling V A m p p1 x :
  prob V p -> (forall i, (i < V)%nat -> p i <= p1) -> certificate V A m p x ->
  (forall a, In a A -> (a < V)%nat) ->
  x <= ln (1 + INR m * p1).
Proof.
  intros Hp H1 [(q0 & _ & (M & Hn & Hlen & Hin & _) & _) Hlow] HA.
  assert (Hp1 : 0 <= p1).
  { destruct V as [|V]; [destruct Hp as [_ Hs]; cbn in Hs; lra|].
    apply Rle_trans with (p 0%nat); [apply Hp|apply H1]; lia. }
  set (D := 1 + INR m * p1). assert (HD : 1 <= D).
  { unfold D. pose proof (pos_INR m). nra. }
  set (q := fun i => (p i + (if mem M i then p1 else 0)) / D).
  assert (Hge : forall i, (i < V)%nat -> p i / D <= q i).
  { intros i Hi. unfold q, Rdiv. apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat; lra|].
    destruct (mem M i); lra. }
  assert (Hpd : forall i, (i < V)%nat -> 0 <= p i / D).
  { intros i Hi. apply Rmult_le_pos; [now apply Hp|left; apply Rinv_0_lt_compat; lra]. }
  assert (Hf : KL_finite V p q).
  { intros i Hi Hpi. apply Rlt_le_trans with (p i / D); [|auto].
    apply Rdiv_lt_0_compat; lra. }
  assert (Hq : prob V q).
  { split; [intros i Hi; apply Rle_trans with (p i / D); auto|]. unfold q.
    rewrite (sum_ext _ _ (fun i => / D * (p i + (if mem M i then p1 else 0)))) by (intros; unfold Rdiv; ring).
    rewrite sum_scal, sum_plus, sum_indicator, sum_const, Hlen, (proj2 Hp); auto using NoDup_seq.
    - fold D. field. lra.
    - intros i Hi. apply in_vocab. now apply Hin. }
  assert (Hr : rejects V A m q).
  { exists M. repeat split; auto; try now apply Hin. intros i a Hi Ha. unfold q, Rdiv.
    apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat; lra|].
    rewrite (mem_in M i), (mem_out M a); [|intros h; now apply (Hin a h)|assumption].
    specialize (H1 a (HA a Ha)). pose proof (proj1 Hp i (proj1 (Hin i Hi))). lra. }
  eapply Rle_trans; [exact (Hlow q Hq Hr Hf)|].
  replace (ln D) with (sum (seq 0 V) (fun i => ln D * p i)) by (rewrite sum_scal, (proj2 Hp); lra).
  apply sum_le. intros i Hi. apply in_vocab in Hi.
  destruct (proj1 Hp i Hi) as [Hpi|<-]; [|lra]. rewrite (Rmult_comm (ln D)).
  apply Rmult_le_compat_l; [lra|]. specialize (Hf i Hi Hpi). apply ln_nondecr; [now apply Rdiv_lt_0_compat|].
  apply Rmult_le_reg_r with (q i); [assumption|].
  unfold Rdiv at 1. rewrite Rmult_assoc, Rinv_l, Rmult_1_r by lra.
  apply Rle_trans with (D * (p i / D)); [right; field; lra|]. apply Rmult_le_compat_l; [lra|auto].
Qed.

Theorem ceiling_log V A m p x :
  prob V p -> certificate V A m p x -> (forall a, In a A -> (a < V)%nat) -> x <= ln (INR m + 1).
Proof.
  intros Hp Hx HA. rewrite Rplus_comm, <- (Rmult_1_r (INR m)). eapply ceiling; eauto.
  intros i Hi. now apply (prob_le_1 V p i).
Qed.

(** Attained at a point mass. *)
Definition point_mass (i : nat) : R := if Nat.eq_dec i 0 then 1 else 0.

Lemma sum_point_mass_out l : ~ In 0%nat l -> forall f, (forall i, i <> 0%nat -> f i = 0) -> sum l f = 0.
Proof.
  intros H f Hf. rewrite (sum_ext l f (fun _ => 0)); [apply sum_zero|].
  intros i Hi. apply Hf. intros ->. tauto.
Qed.

Lemma point_mass_zero i : i <> 0%nat -> point_mass i = 0.
Proof. intros Hi. unfold point_mass. destruct (Nat.eq_dec i 0); tauto. Qed.

Lemma seq_out k n : (1 <= k)%nat -> ~ In 0%nat (seq k n).
Proof. intros Hk Hi. apply in_seq in Hi. lia. Qed.

Lemma point_mass_prob V : (1 <= V)%nat -> prob V point_mass.
Proof.
  intros HV. destruct V as [|V]; [lia|]. split.
  - intros i _. unfold point_mass. destruct (Nat.eq_dec i 0); lra.
  - cbn [seq]. rewrite sum_cons, sum_point_mass_out; auto using seq_out, point_mass_zero.
    unfold point_mass. simpl. lra.
Qed.

Theorem ceiling_attained V m :
  (1 <= m)%nat -> (m + 1 <= V)%nat -> certificate V (0%nat :: nil) m point_mass (ln (INR m + 1)).
Proof.
  intros Hm HV. pose proof (point_mass_prob V ltac:(lia)) as Hp.
  assert (Hout : forall k n, (1 <= k)%nat -> ~ In 0%nat (seq k n)) by exact seq_out.
  assert (Hz := point_mass_zero).
  assert (H0 : point_mass 0 = 1) by reflexivity.
  assert (Hd : disjoint_sets V (0%nat :: nil) (seq 1 m)).
  { repeat split; [repeat constructor; auto|apply seq_NoDup| | |].
    - intros a [<-|[]]. lia.
    - apply in_seq in H. lia.
    - intros [<-|[]]. apply in_seq in H. lia. }
  assert (Hn : INR (length ((0%nat :: nil) ++ seq 1 m)) = INR m + 1).
  { cbn [app length]. now rewrite seq_length, S_INR. }
  assert (Hs : sum ((0%nat :: nil) ++ seq 1 m) point_mass = 1).
  { cbn [app]. rewrite sum_cons, sum_point_mass_out; auto; lra. }
  assert (Hm0 : 0 < INR m) by (apply lt_0_INR; lia).
  assert (Hinv : 0 < / (INR m + 1) < 1).
  { split; [apply Rinv_0_lt_compat; lra|]. rewrite <- Rinv_1. apply Rinv_lt_contravar; lra. }
  rewrite <- (seq_length m 1) at 1. apply top_competitors; auto.
  - intros i j Hi Hj Hj0 _. rewrite (Hz j); [|intros ->; apply Hj0; now left].
    unfold point_mass. destruct (Nat.eq_dec i 0); lra.
  - pose proof (closed_form V (0%nat :: nil) (seq 1 m) (0%nat :: nil) (seq 1 m) point_mass) as H.
    cbn zeta in H. rewrite Hn, Hs in H.
    replace (ln (INR m + 1)) with
      (sum ((0%nat :: nil) ++ seq 1 m) (fun i => point_mass i * ln (point_mass i)) - 1 * ln (1 / (INR m + 1))).
    + apply H; auto; [destruct m; [lia|discriminate]|lra|]. unfold Rdiv. rewrite Rmult_1_l.
      repeat split; try apply Hd; auto using incl_refl.
      * intros a [<-|[]]. lra.
      * tauto.
      * intros i Hi. rewrite Hz; [lra|]. intros ->. now apply (Hout 1%nat m).
      * tauto.
      * rewrite Hs, Hn. field. lra.
    + cbn [app]. rewrite sum_cons, sum_point_mass_out, H0, ln_1; auto.
      * replace (1 / (INR m + 1)) with (/ (INR m + 1)) by (field; lra). rewrite ln_Rinv by lra. lra.
      * intros i Hi. rewrite Hz by assumption. lra.
Qed.
