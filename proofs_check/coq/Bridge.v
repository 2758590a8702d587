(** * From the theorems to numbers: certifying one concrete certificate.

    The target is [p i = n_i / D] with integers [n_i >= 0], [sum n_i = D].  A case states that some [C] is its
    [certificate] and lies in a given interval; [bridge ns D A M PA PM] proves it, where
    - [ns] are the numerators and [D] their sum;
    - [A] are the accepted tokens, [M] the most likely rejected ones, as many as there are candidates;
    - [PA] are the accepted tokens that are pooled, [PM] the pooled competitors.  They must be the right pool: with [n]
      pooled tokens of integer mass [S], [n n_a >= S] for [a] in [PA], [n n_a <= S] for the other accepted tokens,
      [n n_i <= S] for [i] in [PM], [n n_i >= S] for the other competitors; [PA ++ PM] must not be empty (a single
      token at its own level will do).

    The conditions on the lists are decided by computation in [Z]; the number is enclosed by the interval tactic.
    [bridge_rule ns D A t_n t_d] proves that [A] is what a rule [p i >= t_n / t_d] accepts, [bridge_rule_strict] the
    same for [>].  [proofs_check/bridge.py] writes the cases. *)

From Coq Require Import Reals List Arith ZArith Lra Lia Bool.
From Interval Require Import Float.Specific_stdz Float.Specific_ops Tactic.
From Draftcert Require Import Definitions Sums LogFacts Projection Competitors ClosedForm.
Open Scope R_scope.

(** The interval tactic over plain [Z] integers.  Its default works on machine
    integers, whose specification is a set of axioms; this instance needs none
    beyond those of the reals. *)
Module StdZ := SpecificFloat StdZRadix2.
Module IntervalZ := IntervalTactic StdZ.
Import IntervalZ.

Definition num (ns : list Z) (i : nat) : Z := nth i ns 0%Z.
Definition sumZ (l : list Z) : Z := fold_right Z.add 0%Z l.
Definition target (ns : list Z) (D : Z) (i : nat) : R := IZR (num ns i) / IZR D.

Definition memb (l : list nat) (i : nat) : bool := existsb (Nat.eqb i) l.
Fixpoint nodupb (l : list nat) : bool :=
  match l with nil => true | i :: l => negb (memb l i) && nodupb l end.

Definition pool_mass (ns : list Z) (pool : list nat) : Z := sumZ (map (num ns) pool).
Definition pool_size (pool : list nat) : Z := Z.of_nat (length pool).

(** Everything that has to be decided about the lists. *)
Definition check (ns : list Z) (D : Z) (A M PA PM : list nat) : bool :=
  let V := length ns in
  let pool := PA ++ PM in
  let S := pool_mass ns pool in
  let n := pool_size pool in
  (0 <? D)%Z && forallb (fun k => 0 <=? k)%Z ns && (sumZ ns =? D)%Z &&
  nodupb A && nodupb M && forallb (fun a => Nat.ltb a V) A &&
  forallb (fun i => Nat.ltb i V && negb (memb A i)) M && negb (Nat.eqb (length M) 0) &&
  nodupb PA && nodupb PM && forallb (memb A) PA && forallb (memb M) PM && (0 <? n)%Z &&
  forallb (fun a => S <=? n * num ns a)%Z PA &&
  forallb (fun a => memb PA a || (n * num ns a <=? S)%Z) A &&
  forallb (fun i => n * num ns i <=? S)%Z PM &&
  forallb (fun i => memb PM i || (S <=? n * num ns i)%Z) M &&
  forallb (fun j => memb A j || memb M j || forallb (fun i => num ns j <=? num ns i)%Z M) (seq 0 V).

Definition pool_term (D S n k : Z) : R :=
  if (k =? 0)%Z then 0 else IZR k / IZR D * ln (IZR (n * k) / IZR S).

Definition pool_value_of (ns : list Z) (D : Z) (pool : list nat) : R :=
  fold_right Rplus 0 (map (fun i => pool_term D (pool_mass ns pool) (pool_size pool) (num ns i)) pool).

Lemma memb_in l i : memb l i = true <-> In i l.
Proof.
  unfold memb. rewrite existsb_exists. split.
  - intros (j & Hj & E). apply Nat.eqb_eq in E. now subst.
  - intros H. exists i. split; [assumption|apply Nat.eqb_refl].
Qed.

Lemma memb_out l i : negb (memb l i) = true <-> ~ In i l.
Proof. rewrite negb_true_iff, <- memb_in, not_true_iff_false. tauto. Qed.

Lemma nodupb_spec l : nodupb l = true -> NoDup l.
Proof.
  induction l as [|i l IH]; intros H; [constructor|]. cbn in H. apply andb_prop in H. destruct H as [h1 h2].
  constructor; [now apply memb_out|auto].
Qed.

Lemma map_num_seq ns : map (num ns) (seq 0 (length ns)) = ns.
Proof.
  induction ns as [|k ns IH]; [reflexivity|]. cbn [length seq map]. rewrite <- seq_shift, map_map. f_equal. exact IH.
Qed.

Lemma sum_target ns D l : sum l (target ns D) = IZR (pool_mass ns l) / IZR D.
Proof.
  unfold pool_mass. induction l as [|i l IH]; [rewrite sum_nil; cbn; unfold Rdiv; ring|].
  rewrite sum_cons, IH. change (sumZ (map (num ns) (i :: l))) with (num ns i + sumZ (map (num ns) l))%Z.
  rewrite plus_IZR. unfold target, Rdiv. ring.
Qed.

Section Decide.

Variables (ns : list Z) (D : Z) (A M PA PM : list nat).
Hypothesis Hcheck : check ns D A M PA PM = true.

Let V := length ns.
Let p := target ns D.
Let S := pool_mass ns (PA ++ PM).
Let n := pool_size (PA ++ PM).

Lemma check_facts :
  (0 < D)%Z /\ prob V p /\ disjoint_sets V A M /\ M <> nil /\ top_rejected V A M p /\
  0 < INR (length (PA ++ PM)) /\ pool_of A M p (sum (PA ++ PM) p / INR (length (PA ++ PM))) PA PM /\
  (forall i, (0 <= num ns i)%Z).
Proof.
  unfold check in Hcheck. rewrite !andb_true_iff, !forallb_forall in Hcheck. fold V S n in Hcheck.
  destruct Hcheck as (((((((((((((((((h1 & h2) & h3) & h4) & h5) & h6) & h7) & h8) & h9) & h10) & h11) & h12) & h13) & h14) & h15) & h16) & h17) & h18).
  apply Z.ltb_lt in h1. apply Z.eqb_eq in h3. apply Z.ltb_lt in h13.
  assert (HD : 0 < IZR D) by now apply IZR_lt.
  assert (Hnn : forall i, (0 <= num ns i)%Z).
  { intros i. unfold num. destruct (nth_in_or_default i ns 0%Z) as [h| ->]; [|lia]. now apply Z.leb_le, h2. }
  assert (Hn : INR (length (PA ++ PM)) = IZR n) by (unfold n, pool_size; apply INR_IZR_INZ).
  assert (Hn0 : 0 < IZR n) by now apply IZR_lt.
  assert (Hle : forall i j, (num ns i <= num ns j)%Z -> p i <= p j).
  { intros i j h. apply Rmult_le_compat_r; [left; now apply Rinv_0_lt_compat|now apply IZR_le]. }
  assert (Hc : sum (PA ++ PM) p / INR (length (PA ++ PM)) = IZR S / IZR D / IZR n) by (rewrite Hn; unfold p; now rewrite sum_target).
  assert (Hc1 : forall i, (S <= n * num ns i)%Z -> IZR S / IZR D / IZR n <= p i).
  { intros i h. apply IZR_le in h. rewrite mult_IZR in h.
    apply Rmult_le_reg_r with (IZR D * IZR n); [nra|]. unfold p, target.
    replace (IZR S / IZR D / IZR n * (IZR D * IZR n)) with (IZR S) by (field; lra).
    replace (IZR (num ns i) / IZR D * (IZR D * IZR n)) with (IZR n * IZR (num ns i)) by (field; lra). assumption. }
  assert (Hc2 : forall i, (n * num ns i <= S)%Z -> p i <= IZR S / IZR D / IZR n).
  { intros i h. apply IZR_le in h. rewrite mult_IZR in h.
    apply Rmult_le_reg_r with (IZR D * IZR n); [nra|]. unfold p, target.
    replace (IZR S / IZR D / IZR n * (IZR D * IZR n)) with (IZR S) by (field; lra).
    replace (IZR (num ns i) / IZR D * (IZR D * IZR n)) with (IZR n * IZR (num ns i)) by (field; lra). assumption. }
  repeat match goal with |- _ /\ _ => split end; auto.
  - split.
    + intros i _. apply Rmult_le_pos; [now apply IZR_le|left; now apply Rinv_0_lt_compat].
    + unfold p. rewrite sum_target. unfold pool_mass. unfold V. rewrite map_num_seq, h3. field. lra.
  - split; [now apply nodupb_spec|]. split; [now apply nodupb_spec|]. split.
    + intros a Ha. now apply Nat.ltb_lt, h6.
    + intros i Hi. apply h7, andb_prop in Hi. destruct Hi as [k1 k2]. split; [now apply Nat.ltb_lt|now apply memb_out].
  - intros ->. now cbn in h8.
  - intros i j Hi Hj HjA HjM. apply Hle. apply (proj2 (in_vocab V j)) in Hj. apply h18 in Hj.
    apply orb_prop in Hj. destruct Hj as [Hj|Hj].
    + apply orb_prop in Hj. destruct Hj as [Hj|Hj]; apply memb_in in Hj; tauto.
    + rewrite forallb_forall in Hj. now apply Z.leb_le, Hj.
  - now rewrite Hn.
  - rewrite Hc. unfold pool_of. repeat match goal with |- _ /\ _ => split end.
    + now apply nodupb_spec.
    + now apply nodupb_spec.
    + intros a Ha. now apply memb_in, h11.
    + intros i Hi. now apply memb_in, h12.
    + intros a Ha. apply Hc1. now apply Z.leb_le, h14.
    + intros a Ha HaP. apply Hc2. apply h15, orb_prop in Ha. destruct Ha as [Ha|Ha]; [apply memb_in in Ha; tauto|now apply Z.leb_le].
    + intros i Hi. apply Hc2. now apply Z.leb_le, h16.
    + intros i Hi HiP. apply Hc1. apply h17, orb_prop in Hi. destruct Hi as [Hi|Hi]; [apply memb_in in Hi; tauto|now apply Z.leb_le].
    + rewrite Hn. unfold p. rewrite sum_target. fold S. field. lra.
Qed.

Lemma pool_value_correct :
  pool_value_of ns D (PA ++ PM) =
  sum (PA ++ PM) (fun i => p i * ln (p i)) - sum (PA ++ PM) p * ln (sum (PA ++ PM) p / INR (length (PA ++ PM))).
Proof.
  destruct check_facts as (HD & Hp & Hd & _ & _ & Hn & Hpool & Hnn).
  apply IZR_lt in HD. assert (HSn : INR (length (PA ++ PM)) = IZR n) by (unfold n, pool_size; apply INR_IZR_INZ).
  rewrite <- pool_nlogn.
  - unfold pool_value_of. change (sum (PA ++ PM) (fun i => pool_term D S n (num ns i)) =
      sum (PA ++ PM) (fun i => p i * ln (p i / (sum (PA ++ PM) p / INR (length (PA ++ PM)))))).
    apply sum_ext. intros i Hi. unfold pool_term. destruct (Z.eqb_spec (num ns i) 0) as [E|E].
    + unfold p at 1. unfold target. rewrite E. unfold Rdiv. ring.
    + assert (Hk : 0 < IZR (num ns i)) by (apply IZR_lt; specialize (Hnn i); lia).
      assert (HS : 0 < IZR S / IZR D).
      { unfold S. rewrite <- sum_target. apply Rlt_le_trans with (target ns D i); [now apply Rdiv_lt_0_compat|].
        apply single_le_sum; [assumption|]. intros j _. apply Rmult_le_pos; [now apply IZR_le|left; now apply Rinv_0_lt_compat]. }
      assert (HS' : IZR S <> 0) by (intros h; rewrite h in HS; unfold Rdiv in HS; lra).
      unfold p. rewrite sum_target. fold S. rewrite HSn in *. unfold target. f_equal. f_equal.
      rewrite mult_IZR. field. lra.
  - intros i Hi. now apply (pool_subset V A M PA PM p _ Hp Hd Hpool).
  - apply Rmult_le_pos; [|left; now apply Rinv_0_lt_compat]. apply sum_nonneg.
    intros i Hi. now apply (pool_subset V A M PA PM p _ Hp Hd Hpool).
  - field. lra.
Qed.

Theorem bridge_certificate : certificate V A (length M) p (pool_value_of ns D (PA ++ PM)).
Proof.
  destruct check_facts as (_ & Hp & Hd & HM & Htop & Hn & Hpool & _).
  apply top_competitors; auto. rewrite pool_value_correct. now apply closed_form.
Qed.

End Decide.

(** ** The accepted set as the level set of a threshold [T_num / T_den] *)

Definition rule_check (strict : bool) (ns : list Z) (D : Z) (A : list nat) (tn td : Z) : bool :=
  (0 <? D)%Z && (0 <? td)%Z &&
  forallb (fun i => Bool.eqb (memb A i)
    (if strict then (tn * D <? td * num ns i)%Z else (tn * D <=? td * num ns i)%Z)) (seq 0 (length ns)).

Lemma threshold_scale (t d k D : Z) : (0 < D)%Z -> (0 < d)%Z ->
  (IZR t / IZR d <= IZR k / IZR D <-> (t * D <= d * k)%Z) /\
  (IZR t / IZR d < IZR k / IZR D <-> (t * D < d * k)%Z).
Proof.
  intros HD Hd. apply IZR_lt in HD. apply IZR_lt in Hd.
  assert (E1 : IZR t / IZR d * (IZR d * IZR D) = IZR (t * D)) by (rewrite mult_IZR; field; lra).
  assert (E2 : IZR k / IZR D * (IZR d * IZR D) = IZR (d * k)) by (rewrite mult_IZR; field; lra).
  assert (Hpos : 0 < IZR d * IZR D) by nra.
  split; split; intros h.
  - apply le_IZR. rewrite <- E1, <- E2. apply Rmult_le_compat_r; lra.
  - apply IZR_le in h. rewrite <- E1, <- E2 in h. now apply Rmult_le_reg_r in h.
  - apply lt_IZR. rewrite <- E1, <- E2. now apply Rmult_lt_compat_r.
  - apply IZR_lt in h. rewrite <- E1, <- E2 in h. now apply Rmult_lt_reg_r in h.
Qed.

Theorem accepted_by_rule strict ns D A tn td :
  rule_check strict ns D A tn td = true ->
  forall i, (i < length ns)%nat ->
  (In i A <-> if strict then IZR tn / IZR td < target ns D i else IZR tn / IZR td <= target ns D i).
Proof.
  unfold rule_check. rewrite !andb_true_iff, forallb_forall. intros [[h1 h2] h3] i Hi.
  apply Z.ltb_lt in h1. apply Z.ltb_lt in h2.
  apply (proj2 (in_vocab _ i)), h3, eqb_prop in Hi.
  destruct (threshold_scale tn td (num ns i) D h1 h2) as [k1 k2]. unfold target.
  rewrite <- memb_in, Hi. destruct strict; [rewrite k2; apply Z.ltb_lt|rewrite k1; apply Z.leb_le].
Qed.

(** ** The tactics that generated files call *)

Ltac bridge_enclose :=
  cbv [pool_value_of pool_mass pool_size pool_term sumZ num map app fold_right length nth
       Z.of_nat Pos.of_succ_nat Pos.succ Z.eqb Pos.eqb Z.mul Pos.mul Z.add Pos.add Pos.add_carry];
  interval with (i_prec 100).

Ltac bridge ns D A M PA PM :=
  exists (pool_value_of ns D (PA ++ PM)); split;
  [ exact (bridge_certificate ns D A M PA PM (@eq_refl bool true <: check ns D A M PA PM = true))
  | bridge_enclose ].

Ltac bridge_rule ns D A tn td :=
  exact (accepted_by_rule false ns D A tn td (@eq_refl bool true <: rule_check false ns D A tn td = true)).

Ltac bridge_rule_strict ns D A tn td :=
  exact (accepted_by_rule true ns D A tn td (@eq_refl bool true <: rule_check true ns D A tn td = true)).
