(** * T6 between rules, B1 and B2 for runs, B3 at its limits, B4 where not all of the target is known. *)

From Coq Require Import Reals List Arith Lra Lia Psatz Sorted.
From Draftcert Require Statements.
From Draftcert Require Import Definitions Sums LogFacts Projection Competitors ClosedForm StrictGreedy Margins Trees MeanKL.
Import ListNotations.
Open Scope R_scope.

(** ** T6: what one rule accepts, another accepts; [k] is a most likely token *)

Theorem additive_contains_multiplicative V p k i alpha :
  prob V p -> (k < V)%nat -> (i < V)%nat -> p i <= p k -> 0 <= alpha <= 1 ->
  alpha * p k <= p i -> p k - (1 - alpha) / (1 + alpha) <= p i.
Proof.
  intros Hp Hk Hi Hle Hal H. assert (H0 : 0 <= (1 - alpha) / (1 + alpha)).
  { unfold Rdiv. apply Rmult_le_pos; [lra|left; apply Rinv_0_lt_compat; lra]. }
  destruct (Nat.eq_dec k i) as [->|hk]; [lra|]. pose proof (pair_mass_le_1 V k i p Hp Hk Hi hk) as h1.
  enough (p k - p i <= (1 - alpha) / (1 + alpha)) by lra.
  apply Rmult_le_reg_r with (1 + alpha); [lra|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l by lra.
  assert ((p k + p i) * (1 - alpha) <= 1 * (1 - alpha)) by (apply Rmult_le_compat_r; lra). lra.
Qed.

Theorem additive_contains_absolute V p k i tau :
  prob V p -> (k < V)%nat -> (i < V)%nat -> p i <= p k -> 0 <= tau <= 1 / 2 ->
  tau <= p i -> p k - (1 - 2 * tau) <= p i.
Proof.
  intros Hp Hk Hi Hle Ht H. destruct (Nat.eq_dec k i) as [->|hk]; [lra|].
  pose proof (pair_mass_le_1 V k i p Hp Hk Hi hk). lra.
Qed.

Theorem multiplicative_contains_absolute V p k i tau :
  prob V p -> (k < V)%nat -> (i < V)%nat -> p i <= p k -> 0 <= tau <= 1 / 2 ->
  tau <= p i -> tau / (1 - tau) * p k <= p i.
Proof.
  intros Hp Hk Hi Hle Ht H. pose proof (proj1 Hp k Hk). pose proof (proj1 Hp i Hi).
  apply Rmult_le_reg_r with (1 - tau); [lra|]. replace (tau / (1 - tau) * p k * (1 - tau)) with (tau * p k) by (field; lra).
  destruct (Nat.eq_dec k i) as [->|hk]; [nra|]. pose proof (pair_mass_le_1 V k i p Hp Hk Hi hk). nra.
Qed.

(** ** B1: [true] marks the steps whose certificate exceeds the divergence *)

Lemma runs_true n steps : runs n (true :: steps) = runs (S n) steps.
Proof. reflexivity. Qed.

Lemma runs_false n steps : runs n (false :: steps) = n :: runs 0 steps.
Proof. reflexivity. Qed.

Lemma runs_facts : forall steps n,
  list_sum (runs n steps) = (n + count_occ Bool.bool_dec steps true)%nat /\
  length (runs n steps) = (count_occ Bool.bool_dec steps false + 1)%nat.
Proof.
  induction steps as [|[|] steps IH]; intros n; rewrite ?runs_true, ?runs_false; cbn [count_occ].
  - simpl. lia.
  - destruct (IH (S n)). simpl. destruct (Bool.bool_dec true true), (Bool.bool_dec true false); try congruence. lia.
  - destruct (IH 0%nat). cbn [length list_sum fold_right] in *. unfold list_sum in *. cbn [fold_right].
    destruct (Bool.bool_dec false true), (Bool.bool_dec false false); try congruence. lia.
Qed.

Lemma longest_at_least_mean : forall l, l <> nil -> exists r, In r l /\ (list_sum l <= r * length l)%nat.
Proof.
  induction l as [|x l IH]; intros H; [easy|]. destruct l as [|y l].
  - exists x. split; [now left|]. simpl. lia.
  - destruct IH as (r & Hr & Hs); [discriminate|]. destruct (le_lt_dec r x) as [h|h].
    + exists x. split; [now left|]. cbn [length list_sum fold_right] in *. unfold list_sum in *. cbn [fold_right] in *. nia.
    + exists r. split; [now right|]. cbn [length list_sum fold_right] in *. unfold list_sum in *. cbn [fold_right] in *. nia.
Qed.

Theorem run_length : Statements.B1_run_lengths.
Proof.
  intros steps k. destruct (runs_facts steps 0) as [h1 h2]. fold k in h2.
  assert (Hc : (count_occ Bool.bool_dec steps true + k = length steps)%nat).
  { unfold k. clear. induction steps as [|[|] l IH]; [reflexivity| |]; cbn [count_occ length];
      destruct (Bool.bool_dec true true), (Bool.bool_dec true false), (Bool.bool_dec false true), (Bool.bool_dec false false);
      try congruence; lia. }
  assert (E : list_sum (runs 0 steps) = (length steps - k)%nat) by lia.
  split; [assumption|]. split; [assumption|].
  destruct (longest_at_least_mean (runs 0 steps)) as (r & Hr & Hs); [intros h; rewrite h in h2; simpl in h2; lia|].
  exists r. split; [assumption|]. rewrite h2, E in Hs. assumption.
Qed.

(** ** B2: the inverse, and for weights in place of counts *)

Theorem mean_kl_inverse : Statements.B2_inverse.
Proof.
  intros N V A m p C ord eps k Hp Hord HN Hs Hc Hinf Hlt q rej Hq Hmean Hn Hr.
  apply (mean_kl_at_most N V A m p C ord eps Hp Hs Hc Hinf q rej k); auto.
  intros j [Hj1 Hj2]. eapply Rlt_le_trans; [exact Hlt|].
  assert (E : firstn (k + 1) ord = firstn (k + 1) (firstn j ord)) by (rewrite firstn_firstn; f_equal; lia).
  unfold lowest. rewrite E. rewrite <- (firstn_skipn (k + 1) (firstn j ord)) at 2. rewrite sum_app.
  enough (0 <= sum (skipn (k + 1) (firstn j ord)) C) by lra. apply sum_nonneg. intros n Hi.
  assert (In n ord).
  { rewrite <- (firstn_skipn j ord). apply in_app_iff. left.
    rewrite <- (firstn_skipn (k + 1) (firstn j ord)). apply in_app_iff. now right. }
  apply (certificate_nonneg (V n) (A n) (m n) (p n)); auto.
Qed.

(** Contexts of weights [w]; [C] is their certificate where one exists, and no draft is rejected elsewhere. *)
Theorem lorenz_bound : Statements.B2c_lorenz_bound.
Proof.
  intros N V A m p C w v q rej Hp Hc Hq Hn Hr. apply Rle_trans with (sum rej (fun n => w n * KL (V n) (p n) (q n))).
  - rewrite <- sum_scal, <- sum_minus. apply sum_le. intros n Hi. destruct (Hr n Hi) as [hN hr]. destruct (Hp n hN) as [_ hw].
    pose proof (proj2 (Hc n Hi) (q n) (proj1 (Hq n hN)) hr (proj2 (Hq n hN))). pose proof (Rmax_r 0 (v - C n)). nra.
  - apply sum_sub_le; auto using NoDup_seq; [intros n Hi; now apply in_vocab, Hr|].
    intros n Hi. apply in_vocab in Hi. destruct (Hp n Hi), (Hq n Hi). apply Rmult_le_pos; [assumption|now apply KL_nonneg].
Qed.

(** ** B3r: a competitor of probability 0 *)

Theorem reverse_at_zero : Statements.B3r_at_zero.
Proof.
  intros V A M p j Hp Hd Hj E s. pose proof Hd as (d1 & d2 & d3 & d4). destruct (d4 j Hj) as [HjV _].
  assert (Hs0 : 0 <= s) by (apply sum_nonneg; intros a Ha; apply Hp; auto).
  assert (Hout : sum (seq 0 V) (fun i => if mem A i then 0 else p i) = 1 - s).
  { rewrite (sum_ext _ _ (fun i => p i - (if mem A i then p i else 0))) by (intros i _; destruct (mem A i); lra).
    rewrite sum_minus, sum_indicator, (proj2 Hp); auto using NoDup_seq. intros a Ha. now apply in_vocab, d3. }
  split.
  - intros q Hq Hb Hf.
    assert (Hqj : q j = 0).
    { destruct (proj1 Hq j HjV) as [h|h]; [|now symmetry]. specialize (Hf j HjV h). lra. }
    assert (HqA : forall a, In a A -> q a = 0).
    { intros a Ha. pose proof (Hb j a Hj Ha). pose proof (proj1 Hq a (d3 a Ha)). lra. }
    assert (Hs1 : s < 1).
    { apply Rnot_le_lt. intros h. pose proof (proj2 Hq) as hs. rewrite (sum_ext _ _ (fun _ => 0)), sum_zero in hs; [lra|].
      intros i Hi. destruct (mem A i) eqn:EA; [apply mem_true in EA; auto|]. pose proof Hi as Hi'. apply in_vocab in Hi.
      destruct (proj1 Hq i Hi) as [k|k]; [|now symmetry]. specialize (Hf i Hi k). exfalso.
      pose proof (single_le_sum (seq 0 V) (fun i => if mem A i then 0 else p i) i Hi') as h'. cbv beta in h'. rewrite EA in h'.
      rewrite Hout in h'. enough (p i <= 1 - s) by lra. apply h'. intros k' Hk'. apply in_vocab in Hk'.
      destruct (mem A k'); [lra|now apply Hp]. }
    split; [assumption|].
    assert (H : sum (seq 0 V) (fun i => - ln (1 - s) * q i + (q i - / (1 - s) * (if mem A i then 0 else p i))) <= KL V q p).
    { apply sum_le. intros i Hi. apply in_vocab in Hi. assert (Hi1 : 0 < / (1 - s)) by (apply Rinv_0_lt_compat; lra).
      destruct (mem A i) eqn:EA.
      - apply mem_true in EA. rewrite (HqA i EA). lra.
      - destruct (proj1 Hq i Hi) as [k|k].
        + pose proof (Hf i Hi k) as kp. pose proof (gibbs_term (q i) (/ (1 - s) * p i) ltac:(lra) ltac:(nra) ltac:(nra)) as hg.
          replace (q i / (/ (1 - s) * p i)) with (q i / p i * (1 - s)) in hg by (field; lra).
          rewrite ln_mult in hg by (try (apply Rdiv_lt_0_compat); lra). lra.
        + rewrite <- k. pose proof (proj1 Hp i Hi). nra. }
    rewrite sum_plus, sum_minus, !sum_scal, Hout, (proj2 Hq), Rinv_l in H by lra. lra.
  - intros Hs1. exists (fun i => if mem A i then 0 else p i / (1 - s)). assert (Hi1 : 0 < / (1 - s)) by (apply Rinv_0_lt_compat; lra).
    split; [split|split; [|split]].
    + intros i Hi. destruct (mem A i); [lra|]. pose proof (proj1 Hp i Hi). unfold Rdiv. nra.
    + rewrite (sum_ext _ _ (fun i => / (1 - s) * (if mem A i then 0 else p i))) by (intros i _; destruct (mem A i); unfold Rdiv; lra).
      rewrite sum_scal, Hout. field. lra.
    + intros i a Hi Ha. rewrite (mem_in A a) by assumption. destruct (mem A i); [lra|]. pose proof (proj1 Hp i (proj1 (d4 i Hi))).
      unfold Rdiv. nra.
    + intros i Hi h. destruct (mem A i); [lra|]. destruct (proj1 Hp i Hi) as [k|k]; [assumption|]. rewrite <- k in h. unfold Rdiv in h. lra.
    + unfold KL. rewrite (sum_ext _ _ (fun i => - ln (1 - s) * (/ (1 - s) * (if mem A i then 0 else p i)))).
      * rewrite sum_scal, sum_scal, Hout. field. lra.
      * intros i Hi. apply in_vocab in Hi. destruct (mem A i); [lra|]. destruct (proj1 Hp i Hi) as [k|<-]; [|unfold Rdiv; lra].
        replace (p i / (1 - s) / p i) with (/ (1 - s)) by (field; lra). rewrite ln_Rinv by lra. unfold Rdiv. ring.
Qed.

(** ** B3i: the Renyi divergence of infinite order is at most [ln z] iff [p <= z q] everywhere *)

Theorem infinite_order : Statements.B3i_infinite_order.
Proof.
  intros V A M a p Hp Hd Ha HA HM z. pose proof Hd as (d1 & d2 & d3 & d4).
  assert (Hpa : 0 <= p a) by (apply Hp; auto).
  assert (HMp : sum M p <= INR (length M) * p a) by (rewrite <- sum_const; now apply sum_le).
  assert (Hz : 1 <= z) by (unfold z; lra). assert (Hi : 0 < / z) by (apply Rinv_0_lt_compat; lra).
  assert (Hsub : incl M (seq 0 V)) by (intros i h; now apply in_vocab, d4).
  assert (Hsum : sum (seq 0 V) (fun i => if mem M i then p a else p i) = z).
  { rewrite (sum_ext _ _ (fun i => p i + ((if mem M i then p a else 0) - (if mem M i then p i else 0)))).
    - rewrite (sum_plus _ p), sum_minus, !sum_indicator, sum_const, (proj2 Hp) by auto using NoDup_seq. unfold z. lra.
    - intros i _. destruct (mem M i); lra. }
  assert (Hout : forall b, In b A -> mem M b = false).
  { intros b h. apply mem_out. intros k. now apply (d4 b k). }
  split.
  - exists (fun i => / z * (if mem M i then p a else p i)). split; [split|split].
    + intros i h. pose proof (proj1 Hp i h). destruct (mem M i); apply Rmult_le_pos; lra.
    + rewrite sum_scal, Hsum. field. lra.
    + intros i b h k. rewrite (mem_in M i), (Hout b) by assumption. apply Rmult_le_compat_l; [lra|auto].
    + intros i h. rewrite <- Rmult_assoc, Rinv_r, Rmult_1_l by lra. destruct (mem M i) eqn:E; [|lra].
      apply HM. now apply mem_true.
  - intros q r Hq Hb Hr. rewrite <- Hsum. apply Rle_trans with (sum (seq 0 V) (fun i => r * q i)).
    + apply sum_le. intros i h. apply in_vocab in h. destruct (mem M i) eqn:E; [|auto]. apply mem_true in E.
      assert (0 <= r).
      { apply Rnot_lt_le. intros k. assert (X : sum (seq 0 V) p <= sum (seq 0 V) (fun i => r * q i)).
        - apply sum_le. intros j hj. now apply Hr, in_vocab.
        - rewrite sum_scal, (proj2 Hp), (proj2 Hq) in X. lra. }
      apply Rle_trans with (r * q a); [auto|]. apply Rmult_le_compat_l; auto.
    + rewrite sum_scal, (proj2 Hq). lra.
Qed.

(** ** B4: multipliers bound the certificate though only upper bounds [b] of the competitors are known *)

Theorem multipliers_bound : Statements.B4_multipliers.
Proof.
  intros V A M p b l x Hp Hd HM Htop HlA HlM Hl Hx. pose proof Hd as (d1 & d2 & d3 & d4).
  apply (certificate_is_least V A M) in Hx; auto. destruct Hx as [(q & Hq & Hb & Hf & <-) _].
  set (f := fun i => ln (factor A M l i)).
  assert (Hr : forall i, 0 < factor A M l i).
  { intros i. unfold factor. destruct (mem A i) eqn:EA; [apply mem_true in EA; specialize (HlA i EA); lra|].
    destruct (mem M i) eqn:EM; [apply mem_true in EM; destruct (HlM i EM); lra|lra]. }
  assert (Hsum : forall r g1 g2, (forall i, In i A -> g1 i = r i) -> (forall i, In i M -> g2 i = r i) ->
            (forall i, ~ In i A -> ~ In i M -> r i = 0) -> sum (seq 0 V) r = sum A g1 + sum M g2).
  { intros r g1 g2 e1 e2 e3. rewrite (sum_ext A g1 r), (sum_ext M g2 r) by auto.
    rewrite <- (sum_indicator A (seq 0 V)), <- (sum_indicator M (seq 0 V)), <- sum_plus;
      auto using NoDup_seq; try (intros i Hi; apply in_vocab; (now apply d3) || (now apply d4)).
    apply sum_ext. intros i Hi. destruct (mem A i) eqn:EA.
    - rewrite mem_out; [lra|]. apply mem_true in EA. intros h. now apply (d4 i h).
    - destruct (mem M i) eqn:EM; [lra|]. apply mem_false in EA. apply mem_false in EM. rewrite e3 by assumption. lra. }
  assert (FA : forall i, In i A -> factor A M l i = 1 + l i) by (intros i h; unfold factor; now rewrite mem_in).
  assert (FM : forall i, In i M -> factor A M l i = 1 - l i).
  { intros i h. unfold factor. rewrite mem_out, mem_in; [reflexivity|assumption|]. now apply d4. }
  assert (FO : forall i, ~ In i A -> ~ In i M -> factor A M l i = 1) by (intros i h1 h2; unfold factor; now rewrite !mem_out).
  pose proof (donsker_varadhan V p q f Hp Hq Hf) as H. pose proof (tilted_mass_pos V q f Hq) as HZ.
  rewrite (Hsum (fun i => p i * f i) (fun a => p a * ln (1 + l a)) (fun i => p i * ln (1 - l i))) in H.
  2:{ intros i h. unfold f. now rewrite FA. }
  2:{ intros i h. unfold f. now rewrite FM. }
  2:{ intros i h1 h2. unfold f. rewrite FO, ln_1 by assumption. lra. }
  assert (HZ1 : ln (sum (seq 0 V) (fun i => q i * exp (f i))) <= 0).
  { rewrite <- ln_1. apply ln_nondecr; [assumption|].
    rewrite (sum_ext _ _ (fun i => q i + (factor A M l i - 1) * q i)) by (intros i _; unfold f; rewrite exp_ln by auto; lra).
    rewrite sum_plus, (proj2 Hq).
    rewrite (Hsum (fun i => (factor A M l i - 1) * q i) (fun a => l a * q a) (fun i => - (l i * q i))).
    2:{ intros i h. rewrite FA by assumption. lra. }
    2:{ intros i h. rewrite FM by assumption. lra. }
    2:{ intros i h1 h2. rewrite FO by assumption. lra. }
    destruct (list_min M q HM) as (j & Hj & Hmin).
    assert (H1 : sum A (fun a => l a * q a) <= q j * sum A l).
    { rewrite <- sum_scal. apply sum_le. intros a Ha. specialize (HlA a Ha). specialize (Hb j a Hj Ha). nra. }
    assert (H2 : sum M (fun i => - (l i * q i)) <= - q j * sum M l).
    { rewrite <- sum_scal. apply sum_le. intros i Hi. destruct (HlM i Hi) as [[h1 h2] _]. specialize (Hmin i Hi). nra. }
    rewrite Hl in H1. lra. }
  assert (HMb : sum M (fun i => b i * ln (1 - l i)) <= sum M (fun i => p i * ln (1 - l i))).
  { apply sum_le. intros i Hi. destruct (HlM i Hi) as [[h1 h2] h3].
    pose proof (ln_le_sub1 (1 - l i) ltac:(lra)). nra. }
  lra.
Qed.

(** Lumping tokens into one bounds the divergence from below. *)
Theorem lumped : Statements.B4_lumped.
Proof.
  intros V p q T Hp Hq Hf HT HV. set (P := sum T p). set (Q := sum T q).
  assert (HP : 0 <= P) by (apply sum_nonneg; intros i Hi; apply Hp; auto).
  destruct HP as [HP|HP].
  - assert (HQ : 0 < Q).
    { apply Rnot_le_lt. intros h. assert (Hz : forall i, In i T -> q i = 0).
      { apply (sum_zero_inv T q); [intros i Hi; apply Hq; auto|exact h]. }
      unfold P in HP. rewrite (sum_ext T p (fun _ => 0)), sum_zero in HP; [lra|]. intros i Hi.
      destruct (proj1 Hp i (HV i Hi)) as [k|k]; [|now symmetry]. specialize (Hf i (HV i Hi) k). rewrite (Hz i Hi) in Hf. lra. }
    assert (HR : 0 < P / Q) by now apply Rdiv_lt_0_compat.
    apply Rle_trans with (sum T (fun i => ln (P / Q) * p i + p i - P / Q * q i)).
    + rewrite (sum_minus T (fun i => ln (P / Q) * p i + p i)), sum_plus, !sum_scal. fold P. fold Q.
      replace (P / Q * Q) with P by (field; lra). lra.
    + apply sum_le. intros i Hi. pose proof (HV i Hi) as HiV. pose proof (proj1 Hq i HiV).
      destruct (proj1 Hp i HiV) as [k|<-]; [|nra]. pose proof (Hf i HiV k).
      pose proof (gibbs_term (p i) (P / Q * q i) ltac:(lra) ltac:(nra) ltac:(nra)) as h.
      replace (p i / (P / Q * q i)) with (p i / q i / (P / Q)) in h by (field; lra).
      rewrite ln_div in h by (try assumption; apply Rdiv_lt_0_compat; lra). lra.
  - rewrite <- HP, Rmult_0_l. rewrite (sum_ext T _ (fun _ => 0)), sum_zero; [lra|]. intros i Hi.
    rewrite (sum_zero_inv T p); [lra|intros j Hj; apply Hp; auto|fold P; lra|assumption].
Qed.

Theorem entropy_of_unlisted : Statements.B4_entropy.
Proof.
  intros T p k Hk HT r H. split; [|split].
  - unfold Rdiv. rewrite Rmult_1_l, ln_Rinv by assumption. unfold H, r. enough (sum T (fun i => p i * ln (p i)) <= ln k * sum T p) by lra.
    rewrite <- sum_scal. apply sum_le. intros i Hi. destruct (HT i Hi) as [[h|<-] hk]; [|lra].
    rewrite (Rmult_comm (ln k)). apply Rmult_le_compat_l; [lra|now apply ln_nondecr].
  - intros Hr. set (n := INR (length T)). assert (Hn : 0 < n).
    { apply lt_0_INR. destruct T; [unfold r in Hr; rewrite sum_nil in Hr; lra|simpl; lia]. }
    assert (Hrn : 0 < r / n) by now apply Rdiv_lt_0_compat.
    assert (Hle : sum T (fun i => (ln (r / n) + 1) * p i - r / n) <= sum T (fun i => p i * ln (p i))).
    { apply sum_le. intros i Hi. pose proof (xlnx_tangent (p i) (r / n) (proj1 (HT i Hi)) Hrn). lra. }
    rewrite sum_minus, sum_scal, sum_const in Hle. fold r n in Hle. replace (n * (r / n)) with r in Hle by (field; lra).
    unfold H. rewrite ln_div in Hle |- * by assumption. lra.
  - intros R b HR HTn Hi Hb. destruct (perm_split R T HR HTn Hi) as [S HS]. pose proof (Permutation.Permutation_length HS) as El.
    rewrite app_length in El. unfold r. rewrite (sum_perm _ _ p HS), sum_app, El, plus_INR.
    assert (Hn : NoDup (R ++ S)) by (eapply Permutation.Permutation_NoDup; eassumption).
    replace (INR (length R) + INR (length S) - INR (length R)) with (INR (length S)) by ring.
    rewrite <- !sum_const. apply Rplus_le_compat; apply sum_le; intros i h; [now apply HT, Hi|]. apply Hb.
    + apply (Permutation.Permutation_in _ (Permutation.Permutation_sym HS)), in_app_iff. now right.
    + intros h'. clear - Hn h h'. induction R as [|x R IH]; [easy|]. cbn [app] in Hn. inversion_clear Hn as [|? ? k1 k2].
      destruct h' as [->|h']; [apply k1, in_app_iff; now right|auto].
Qed.

Theorem entropy_of_unlisted_attained : Statements.B4_entropy_attained.
Proof.
  intros T p k Hk HT r H. assert (E : H = r * ln (1 / k)).
  { unfold H, r, Rdiv. rewrite Rmult_1_l, ln_Rinv by assumption. rewrite (sum_ext T _ (fun i => ln k * p i)), sum_scal; [ring|].
    intros i Hi. destruct (HT i Hi) as [->| ->]; ring. }
  split; [exact E|]. intros Hne Hall. rewrite E. unfold r at 3. rewrite (sum_ext T p (fun _ => k) Hall), sum_const. f_equal. f_equal.
  assert (0 < INR (length T)) by (apply lt_0_INR; destruct T; [easy|simpl; lia]). field. lra.
Qed.
