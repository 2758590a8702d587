(** * T3: growing the pool from its two ends finds the one that the level moves. *)

From Coq Require Import Reals List Arith Lra Lia Psatz Permutation Sorted.
From Draftcert Require Statements.
From Draftcert Require Import Definitions Sums LogFacts Projection Competitors ClosedForm.
Open Scope R_scope.

Lemma mean_step S n x : 0 < n -> S / n < x -> S / n < (S + x) / (n + 1) < x.
Proof.
  intros Hn Hx. set (c := S / n) in *. assert (E : S = n * c) by (unfold c; field; lra).
  split; apply Rmult_lt_reg_r with (n + 1); try lra; rewrite E; unfold Rdiv; rewrite Rmult_assoc, Rinv_l by lra; nra.
Qed.

Lemma mean_step_down S n x : 0 < n -> x < S / n -> x < (S + x) / (n + 1) < S / n.
Proof.
  intros Hn Hx. pose proof (mean_step (- S) n (- x) Hn) as H.
  replace (- S / n) with (- (S / n)) in H by (field; lra).
  replace ((- S + - x) / (n + 1)) with (- ((S + x) / (n + 1))) in H by (field; lra). lra.
Qed.

Lemma mean_above p a PA PM :
  mean p ((a :: PA) ++ PM) = (sum (PA ++ PM) p + p a) / (INR (length (PA ++ PM)) + 1).
Proof. unfold mean. cbn [app length]. now rewrite sum_cons, S_INR, Rplus_comm. Qed.

Lemma mean_below p i PA PM :
  mean p (PA ++ i :: PM) = (sum (PA ++ PM) p + p i) / (INR (length (PA ++ PM)) + 1).
Proof.
  unfold mean. rewrite !sum_app, !app_length. cbn [length]. rewrite sum_cons, !plus_INR, S_INR. apply (f_equal2 Rdiv); ring.
Qed.

Lemma grow_step p steps A M PA PM :
  grow p (S steps) A M PA PM =
  if match A with a :: _ => if Rlt_dec (mean p (PA ++ PM)) (p a) then true else false | nil => false end
  then grow p steps (tl A) M (hd 0%nat A :: PA) PM
  else if match M with i :: _ => if Rlt_dec (p i) (mean p (PA ++ PM)) then true else false | nil => false end
  then grow p steps A (tl M) PA (hd 0%nat M :: PM)
  else (PA, PM).
Proof. reflexivity. Qed.

(** What holds of a pool while it grows. *)
Definition split_by (p : nat -> R) (c : R) (A M PA PM : list nat) : Prop :=
  (forall a, In a PA -> c < p a) /\ (forall i, In i PM -> p i < c) /\
  (forall a b, In a PA -> In b A -> p b <= p a) /\ (forall i j, In i PM -> In j M -> p i <= p j).

Lemma grow_pool p : forall steps A M PA PM,
  (length A + length M <= steps)%nat -> (0 < length (PA ++ PM))%nat ->
  StronglySorted (fun a b => p b <= p a) A -> StronglySorted (fun i j => p i <= p j) M ->
  split_by p (mean p (PA ++ PM)) A M PA PM ->
  let P := grow p steps A M PA PM in let c := mean p (fst P ++ snd P) in
  (0 < length (fst P ++ snd P))%nat /\
  exists A' M', Permutation (fst P ++ A') (PA ++ A) /\ Permutation (snd P ++ M') (PM ++ M) /\
    (forall a, In a (fst P) -> c < p a) /\ (forall a, In a A' -> p a <= c) /\
    (forall i, In i (snd P) -> p i < c) /\ (forall i, In i M' -> c <= p i).
Proof.
  induction steps as [|steps IH]; intros A M PA PM Hlen Hn HA HM (h1 & h2 & h3 & h4); cbv zeta.
  - change (grow p 0 A M PA PM) with (PA, PM). assert (A = nil) by (destruct A; [reflexivity|simpl in Hlen; lia]).
    assert (M = nil) by (destruct M; [reflexivity|simpl in Hlen; lia]). subst.
    split; [assumption|]. exists nil, nil. cbn [fst snd]. repeat split; auto; intros ? [].
  - rewrite grow_step. set (c := mean p (PA ++ PM)) in *.
    assert (Hn' : 0 < INR (length (PA ++ PM))) by now apply lt_0_INR.
    assert (Habove : forall a A', A = a :: A' -> c < p a ->
      let P := grow p steps A' M (a :: PA) PM in let c := mean p (fst P ++ snd P) in
      (0 < length (fst P ++ snd P))%nat /\
      exists A'' M', Permutation (fst P ++ A'') (PA ++ A) /\ Permutation (snd P ++ M') (PM ++ M) /\
        (forall a, In a (fst P) -> c < p a) /\ (forall a, In a A'' -> p a <= c) /\
        (forall i, In i (snd P) -> p i < c) /\ (forall i, In i M' -> c <= p i)).
    { intros a A' -> Ha. inversion_clear HA as [|? ? HA' Hmax]. rewrite Forall_forall in Hmax.
      pose proof (mean_step _ _ (p a) Hn' Ha) as Hm. rewrite <- (mean_above p a PA PM) in Hm. fold (mean p (PA ++ PM)) in Hm. fold c in Hm.
      destruct (IH A' M (a :: PA) PM) as (k0 & A'' & M' & k1 & k2 & k3); auto.
      - cbn [length] in Hlen. lia.
      - cbn [app length]. lia.
      - split; [|split; [|split]].
        + intros b [<-|Hb]; [lra|]. specialize (h3 b a Hb (or_introl eq_refl)). lra.
        + intros i Hi. specialize (h2 i Hi). lra.
        + intros b b' [<-|Hb] Hb'; [auto|]. apply h3; auto. now right.
        + assumption.
      - split; [assumption|]. exists A'', M'. split; [|now split].
        rewrite k1. cbn [app]. apply Permutation_middle. }
    assert (Hbelow : forall i M', M = i :: M' -> p i < c ->
      let P := grow p steps A M' PA (i :: PM) in let c := mean p (fst P ++ snd P) in
      (0 < length (fst P ++ snd P))%nat /\
      exists A' M'', Permutation (fst P ++ A') (PA ++ A) /\ Permutation (snd P ++ M'') (PM ++ M) /\
        (forall a, In a (fst P) -> c < p a) /\ (forall a, In a A' -> p a <= c) /\
        (forall i, In i (snd P) -> p i < c) /\ (forall i, In i M'' -> c <= p i)).
    { intros i M' -> Hi. inversion_clear HM as [|? ? HM' Hmin]. rewrite Forall_forall in Hmin.
      pose proof (mean_step_down _ _ (p i) Hn' Hi) as Hm. rewrite <- (mean_below p i PA PM) in Hm. fold (mean p (PA ++ PM)) in Hm. fold c in Hm.
      destruct (IH A M' PA (i :: PM)) as (k0 & A' & M'' & k1 & k2 & k3); auto.
      - cbn [length] in Hlen. lia.
      - rewrite app_length in *. cbn [length]. lia.
      - split; [|split; [|split]].
        + intros b Hb. specialize (h1 b Hb). lra.
        + intros j [<-|Hj]; [lra|]. specialize (h4 j i Hj (or_introl eq_refl)). lra.
        + assumption.
        + intros j j' [<-|Hj] Hj'; [auto|]. apply h4; auto. now right.
      - split; [assumption|]. exists A', M''. split; [assumption|]. split; [|assumption].
        rewrite k2. cbn [app]. apply Permutation_middle. }
    assert (Hstop : (forall a, In a A -> p a <= c) -> (forall i, In i M -> c <= p i) ->
      let P := (PA, PM) in let c := mean p (fst P ++ snd P) in
      (0 < length (fst P ++ snd P))%nat /\
      exists A' M', Permutation (fst P ++ A') (PA ++ A) /\ Permutation (snd P ++ M') (PM ++ M) /\
        (forall a, In a (fst P) -> c < p a) /\ (forall a, In a A' -> p a <= c) /\
        (forall i, In i (snd P) -> p i < c) /\ (forall i, In i M' -> c <= p i)).
    { intros HA' HM'. split; [assumption|]. exists A, M. cbn [fst snd]. repeat split; auto. }
    assert (HnoA : match A with a :: _ => if Rlt_dec c (p a) then true else false | nil => false end = false ->
                   forall a, In a A -> p a <= c).
    { destruct A as [|a A]; [intros _ a []|]. destruct Rlt_dec as [|h]; [discriminate|]. intros _ b Hb.
      inversion_clear HA as [|? ? _ Hmax]. rewrite Forall_forall in Hmax. destruct Hb as [<-|Hb]; [lra|]. specialize (Hmax b Hb). lra. }
    assert (HnoM : match M with i :: _ => if Rlt_dec (p i) c then true else false | nil => false end = false ->
                   forall i, In i M -> c <= p i).
    { destruct M as [|i M]; [intros _ i []|]. destruct Rlt_dec as [|h]; [discriminate|]. intros _ j Hj.
      inversion_clear HM as [|? ? _ Hmin]. rewrite Forall_forall in Hmin. destruct Hj as [<-|Hj]; [lra|]. specialize (Hmin j Hj). lra. }
    destruct (match A with a :: _ => _ | nil => _ end) eqn:EA.
    + destruct A as [|a A]; [discriminate|]. destruct Rlt_dec as [h|]; [|discriminate]. exact (Habove a A eq_refl h).
    + destruct (match M with i :: _ => _ | nil => _ end) eqn:EM.
      * destruct M as [|i M]; [discriminate|]. destruct (Rlt_dec (p i) c) as [h|]; [|discriminate]. exact (Hbelow i M eq_refl h).
      * apply Hstop; auto.
Qed.

Lemma level_unique A M p c c' a i :
  level_eq A M p c -> level_eq A M p c' -> In a A -> In i M -> p i < p a -> c < c' -> False.
Proof.
  unfold level_eq. intros H H' Ha Hi Hlt Hcc.
  assert (h1 : forall b, In b A -> Rmax 0 (p b - c') <= Rmax 0 (p b - c)).
  { intros b _. unfold Rmax. destruct Rle_dec, Rle_dec; lra. }
  assert (h2 : forall j, In j M -> Rmax 0 (c - p j) <= Rmax 0 (c' - p j)).
  { intros j _. unfold Rmax. destruct Rle_dec, Rle_dec; lra. }
  pose proof (sum_le _ _ _ h1). pose proof (sum_le _ _ _ h2).
  pose proof (sum_le_eq _ _ _ h1 ltac:(lra) a Ha) as e1. pose proof (sum_le_eq _ _ _ h2 ltac:(lra) i Hi) as e2.
  cbv beta in e1, e2. unfold Rmax in e1, e2. repeat destruct Rle_dec in e1; repeat destruct Rle_dec in e2; lra.
Qed.

Theorem pool_search : Statements.T3_search.
Proof.
  intros V A M a i p Hp Hd Hlt HA HM P c. pose proof Hd as (d1 & d2 & d3 & d4).
  inversion_clear HA as [|? ? HA' Hmax]. rewrite Forall_forall in Hmax.
  inversion_clear HM as [|? ? HM' Hmin]. rewrite Forall_forall in Hmin.
  destruct (grow_pool p (length A + length M) A M (a :: nil) (i :: nil)) as (k0 & A' & M' & k1 & k2 & k3 & k4 & k5 & k6); auto.
  { simpl. lia. }
  { unfold split_by, mean. cbn [app length]. rewrite !sum_cons, sum_nil. simpl INR.
    split; [|split; [|split]]; [intros b [<-|[]]; lra|intros j [<-|[]]; lra|intros b b' [<-|[]]; auto|intros j j' [<-|[]]; auto]. }
  fold P in k0, k1, k2, k3, k4, k5, k6. fold c in k3, k4, k5, k6. cbn [app] in k1, k2.
  assert (n1 : NoDup (fst P ++ A')) by (eapply Permutation_NoDup; [symmetry; exact k1|exact d1]).
  assert (n2 : NoDup (snd P ++ M')) by (eapply Permutation_NoDup; [symmetry; exact k2|exact d2]).
  assert (i1 : forall b, In b (a :: A) <-> In b (fst P) \/ In b A').
  { intros b. rewrite <- in_app_iff. split; apply Permutation_in; [now symmetry|assumption]. }
  assert (i2 : forall j, In j (i :: M) <-> In j (snd P) \/ In j M').
  { intros j. rewrite <- in_app_iff. split; apply Permutation_in; [now symmetry|assumption]. }
  assert (Hn : 0 < INR (length (fst P ++ snd P))) by now apply lt_0_INR.
  assert (Hpool : pool_of (a :: A) (i :: M) p c (fst P) (snd P)).
  { unfold pool_of. repeat match goal with |- _ /\ _ => split end.
    - exact (NoDup_app_l _ _ n1).
    - exact (NoDup_app_l _ _ n2).
    - intros b Hb. apply i1. auto.
    - intros j Hj. apply i2. auto.
    - intros b Hb. specialize (k3 b Hb). lra.
    - intros b Hb Hb'. apply i1 in Hb. destruct Hb; [tauto|auto].
    - intros j Hj. specialize (k5 j Hj). lra.
    - intros j Hj Hj'. apply i2 in Hj. destruct Hj; [tauto|auto].
    - unfold c, mean. field. lra. }
  assert (Hc : 0 <= c).
  { unfold c, mean. apply Rmult_le_pos; [|left; now apply Rinv_0_lt_compat].
    apply sum_nonneg. exact (pool_subset V (a :: A) (i :: M) (fst P) (snd P) p c Hp Hd Hpool). }
  split; [assumption|]. split.
  - rewrite <- (pool_value (a :: A) (i :: M) (fst P) (snd P) p c d1 d2 Hpool).
    apply level_projection; auto; [discriminate|]. exact (pool_level V _ _ _ _ p c Hd Hpool).
  - intros PA PM c' Hpool'. pose proof (pool_level V _ _ _ _ p c Hd Hpool) as e.
    pose proof (pool_level V _ _ _ _ p c' Hd Hpool') as e'.
    destruct (Rtotal_order c' c) as [h|[h|h]]; [exfalso|assumption|exfalso].
    + exact (level_unique _ _ p c' c a i e' e (or_introl eq_refl) (or_introl eq_refl) Hlt h).
    + exact (level_unique _ _ p c c' a i e e' (or_introl eq_refl) (or_introl eq_refl) Hlt h).
Qed.
