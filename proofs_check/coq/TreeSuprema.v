(** * M7s and M5s: no certificate of strict greedy exceeds the larger of two families' values. *)

From Coq Require Import Reals List Arith Lra Lia Psatz Permutation.
From Draftcert Require Statements.
From Draftcert Require Import Definitions Sums LogFacts Projection Competitors ClosedForm Ceilings StrictGreedy Guarantee Candidates Largest.
Import ListNotations.
Open Scope R_scope.

(** One accepted token that stays [h] ahead certifies less where all are larger. *)
Lemma ahead_falls m h y y' : (1 <= m)%nat -> 0 <= h -> 0 < y <= y' -> one_ahead m (h + y') y' <= one_ahead m (h + y) y.
Proof.
  intros Hm Hh Hy. destruct (slopes m (h + y') y' Hm ltac:(lra)) as (_ & _ & _ & _ & _ & _ & Huv).
  pose proof (above_tangent m (h + y') y' (h + y) y Hm ltac:(lra) ltac:(lra) ltac:(lra)) as H. cbv zeta in H. unfold one_ahead at 1. cbv zeta.
  set (u := ln ((h + y') / _)) in *. set (v := ln (y' / _)) in *.
  assert (0 <= - (u + INR m * v) * (y' - y)) by (apply Rmult_le_pos; lra). lra.
Qed.

(** A rejected draft. Of the first token [l + w g] is levelled with [l] of each of the most likely competitors [M]; what
    is left of it goes to the level [(1 - w) t], and what is left of a competitor is multiplied by [k] and raised by it. *)
Lemma mixture V a m M p x w l g d t k :
  prob V p -> (a < V)%nat -> certificate V [a] m p x -> NoDup M -> length M = m ->
  (forall i, In i M -> (i < V)%nat /\ i <> a /\ l <= p i <= l + (1 - w) * d) ->
  0 <= w <= 1 -> 0 <= l -> 0 <= g -> 0 < d -> 0 < t -> 0 <= k -> (INR m + 1) * t + k * (1 - g - d) = 1 ->
  p a = g + l + (1 - w) * d -> sum M p = INR m * l + (1 - w) * (1 - g - d) ->
  x <= one_ahead m (l + w * g) l + (1 - w) * ((g + d) * ln ((g + d) / t) + (1 - g - d) * ln (d / (t + k * d))).
Proof.
  intros Hp Ha [_ Hx] HM Hlen HM' Hw Hl Hg Hd Ht Hk Hone Ea EM. pose proof (pos_INR m) as Hm.
  set (r := 1 - w) in *. assert (Hr : 0 <= r) by (unfold r; lra). assert (Hwg : 0 <= w * g) by (apply Rmult_le_pos; lra).
  set (c := (l + w * g + INR m * l) / (INR m + 1)). assert (Ec : (INR m + 1) * c = l + w * g + INR m * l) by (unfold c; field; lra).
  assert (Hc : 0 <= c) by (unfold c; apply Rmult_le_pos; [nra|left; apply Rinv_0_lt_compat; lra]).
  assert (Hrt : 0 <= r * t) by (apply Rmult_le_pos; lra).
  assert (Hrd : 0 <= r * d) by (apply Rmult_le_pos; lra). assert (Hrg : 0 <= r * (g + d)) by (apply Rmult_le_pos; lra).
  assert (Hlc : 0 < l + w * g -> 0 < c).
  { intros h. apply Rmult_lt_reg_l with (INR m + 1); [lra|]. rewrite Ec, Rmult_0_r. nra. }
  assert (Epa : p a = l + w * g + r * (g + d)) by (rewrite Ea; unfold r; ring).
  assert (HrP : 0 < r * (g + d) -> 0 < r * t) by (intros h; apply Rmult_lt_0_compat; [nra|assumption]).
  assert (HaM : ~ In a M) by (intros h; now apply (HM' a h)).
  assert (Hn : NoDup (a :: M)) by now constructor.
  assert (Hin : incl (a :: M) (seq 0 V)) by (intros i [<-|Hi]; apply in_vocab; [assumption|now apply HM']).
  set (q := fun i => if mem [a] i then c + r * t else if mem M i then c + (r * t + k * (p i - l)) else p i).
  assert (Eqa : q a = c + r * t) by (unfold q; now rewrite mem_in by now left).
  assert (EqM : forall i, In i M -> q i = c + (r * t + k * (p i - l))).
  { intros i Hi. unfold q. rewrite mem_out, mem_in by (auto; intros [h|[]]; congruence). reflexivity. }
  assert (Eqo : forall i, ~ In i (a :: M) -> q i = p i).
  { intros i Hi. unfold q. rewrite !mem_out; [reflexivity|intros h; apply Hi; now right|intros [h|[]]; apply Hi; now left]. }
  assert (HqM : forall i, In i M -> c + r * t <= q i).
  { intros i Hi. rewrite (EqM i Hi). destruct (HM' i Hi) as (_ & _ & h). assert (0 <= k * (p i - l)) by (apply Rmult_le_pos; lra). lra. }
  assert (Hcase : forall i, {i = a} + {In i M} + {~ In i (a :: M)}).
  { intros i. destruct (Nat.eq_dec i a) as [->|h]; [auto|]. destruct (in_dec Nat.eq_dec i M) as [h'|h']; [auto|right].
    intros [k'|k']; [congruence|tauto]. }
  assert (Hq : prob V q).
  { split.
    - intros i Hi. destruct (Hcase i) as [[->|h]|h]; [lra|specialize (HqM i h); lra|rewrite Eqo by assumption; now apply Hp].
    - enough (sum (seq 0 V) q - sum (seq 0 V) p = 0) by (pose proof (proj2 Hp); lra).
      rewrite (sum_diff_on (a :: M)); auto using NoDup_seq. rewrite !sum_cons, Eqa, (sum_ext M q _ EqM).
      rewrite (sum_ext M _ (fun i => (c + r * t - k * l) + k * p i)) by (intros; ring).
      rewrite sum_plus, sum_const, sum_scal, Hlen, EM, Epa.
      replace (c + r * t + (INR m * (c + r * t - k * l) + k * (INR m * l + r * (1 - g - d))) - (l + w * g + r * (g + d) + (INR m * l + r * (1 - g - d))))
        with ((INR m + 1) * c - (l + w * g + INR m * l) + r * ((INR m + 1) * t + k * (1 - g - d) - 1)) by ring.
      rewrite Hone, Ec. ring. }
  assert (Hpos : 0 < l + w * g \/ 0 < r * (g + d) -> 0 < c + r * t) by (intros [h|h]; [apply Hlc in h|apply HrP in h]; lra).
  assert (Hf : KL_finite V p q).
  { intros i Hi h. destruct (Hcase i) as [[->|Hi']|Hi'].
    - rewrite Eqa. apply Hpos. rewrite Epa in h. lra.
    - apply Rlt_le_trans with (c + r * t); [|auto]. apply Hpos. destruct (HM' i Hi') as (_ & _ & k1).
      assert (r * d <= r * (g + d)) by (apply Rmult_le_compat_l; lra). lra.
    - now rewrite Eqo. }
  eapply Rle_trans; [apply (Hx q Hq); [|assumption]|].
  { exists M. split; [assumption|]. split; [assumption|]. split.
    - intros i Hi. destruct (HM' i Hi) as (h1 & h2 & _). split; [assumption|]. intros [h|[]]; congruence.
    - intros i j Hi [<-|[]]. rewrite Eqa. auto. }
  unfold KL. rewrite (sum_ext _ _ (fun i => if mem (a :: M) i then p i * ln (p i / q i) else 0)).
  2:{ intros i _. destruct (mem (a :: M) i) eqn:E; [reflexivity|]. apply mem_false in E. now rewrite Eqo, div_self_ln. }
  rewrite sum_indicator, sum_cons by auto using NoDup_seq. set (L := ln (d / (t + k * d))).
  assert (Hden : 0 < t + k * d) by (assert (0 <= k * d) by (apply Rmult_le_pos; lra); lra).
  apply Rle_trans with ((l + w * g) * ln ((l + w * g) / c) + r * ((g + d) * ln ((g + d) / t)) + sum M (fun i => l * ln (l / c) - L * l + L * p i)).
  - apply Rplus_le_compat.
    + rewrite Eqa, Epa. eapply Rle_trans; [apply log_sum; auto; lra|]. apply Rplus_le_compat_l. right.
      destruct Hr as [h|<-]; [|ring]. replace (r * (g + d) / (r * t)) with ((g + d) / t) by (field; lra). ring.
    + apply sum_le. intros i Hi. rewrite (EqM i Hi). destruct (HM' i Hi) as (_ & _ & h). set (e := p i - l).
      replace (p i) with (l + e) by (unfold e; ring). assert (He : 0 <= e <= r * d) by (unfold e; lra).
      assert (Hke : 0 <= k * e) by (apply Rmult_le_pos; lra).
      assert (Hep : 0 < e -> 0 < r * t + k * e) by (intros h'; assert (0 < r * t) by (apply Rmult_lt_0_compat; nra); lra).
      eapply Rle_trans; [apply log_sum; auto; lra|].
      enough (e * ln (e / (r * t + k * e)) <= e * L) by lra. destruct (proj1 He) as [h'|<-]; [|lra]. specialize (Hep h').
      apply Rmult_le_compat_l; [lra|]. apply ln_nondecr; [now apply Rdiv_lt_0_compat|].
      apply Rmult_le_reg_r with ((r * t + k * e) * (t + k * d)); [now apply Rmult_lt_0_compat|].
      replace (e / (r * t + k * e) * ((r * t + k * e) * (t + k * d))) with (e * t + e * k * d) by (field; lra).
      replace (d / (t + k * d) * ((r * t + k * e) * (t + k * d))) with (r * d * t + e * k * d) by (field; lra).
      apply Rplus_le_compat_r, Rmult_le_compat_r; lra.
  - rewrite sum_plus, sum_const, sum_scal, Hlen, EM. unfold one_ahead. cbv zeta. fold c. fold L. right. ring.
Qed.

Lemma pooled_rises g d d' t : 0 <= g -> 0 < d <= d' -> g + d' <= 1 -> 0 < t ->
  (g + d) * ln ((g + d) / t) + (1 - g - d) * ln (d / t) <= (g + d') * ln ((g + d') / t) + (1 - g - d') * ln (d' / t).
Proof.
  intros Hg Hd H1 Ht. rewrite !ln_div by lra. pose proof (xlnx_tangent (g + d') (g + d) ltac:(lra) ltac:(lra)) as H.
  pose proof (ln_nondecr d (g + d) ltac:(lra) ltac:(lra)). pose proof (ln_nondecr d d' ltac:(lra) ltac:(lra)).
  assert (0 <= (d' - d) * (ln (g + d) - ln d + 1)) by (apply Rmult_le_pos; lra).
  assert (0 <= (1 - g - d') * (ln d' - ln d)) by (apply Rmult_le_pos; lra). lra.
Qed.

(** All [m + 1] tokens of the spike are levelled. *)
Lemma spike_pooled m g t : 0 <= g <= 1 -> (INR m + 1) * t = 1 ->
  (1 + g) / 2 * ln ((1 + g) / 2 / t) + (1 - g) / 2 * ln ((1 - g) / 2 / t) = ln ((INR m + 1) / 2) + phi g.
Proof.
  intros Hg Et. pose proof (pos_INR m). assert (E : t = / (INR m + 1)) by (apply Rmult_eq_reg_l with (INR m + 1); [rewrite Et, Rinv_r|]; lra).
  assert (Ht : 0 < t) by (rewrite E; apply Rinv_0_lt_compat; lra). rewrite !pln_div by lra. rewrite E, ln_Rinv, (ln_div (1 + g)), (ln_div (INR m + 1)) by lra.
  unfold phi. destruct (proj2 Hg) as [h| ->]; [rewrite (ln_div (1 - g)) by lra; field|].
  replace (1 - 1) with 0 by ring. unfold Rdiv. rewrite !Rmult_0_l. field.
Qed.

Theorem tree_no_more : Statements.M7s_upper_bounds.
Proof.
  intros V a b m p x g Hp Ha Hb Hba Epb Hg Hmax Hm Hx y dust. assert (Hm1 : 1 <= INR m) by (change 1 with (INR 1); now apply le_INR).
  pose proof (proj1 Hp b Hb) as Hpb. pose proof (prob_le_1 V p a Hp Ha) as Hpa.
  destruct (Req_dec g 1) as [->|Hg1].
  { split; intros h; [lra|]. eapply Rle_trans; [apply (ceiling_log V [a] m p x); auto; intros i [<-|[]]; assumption|].
    rewrite phi_1, ln_div by lra. eapply Rle_trans; [|apply Rmax_r]. lra. }
  assert (Hgl : g < 1) by lra. set (O := others V [a]).
  assert (HmV : (m + 1 <= V)%nat).
  { pose proof (proj1 (certificate_exists V [a] m p Hp ltac:(repeat constructor; simpl; tauto) ltac:(intros i [<-|[]]; assumption) Hm) (ex_intro _ x Hx)).
    cbn [length] in H. lia. }
  assert (HVR : INR m + 1 <= INR V) by (rewrite <- (S_INR m); apply le_INR; lia).
  assert (HO : (1 + length O = V)%nat).
  { apply (others_length V [a]); [repeat constructor; simpl; tauto|intros i [<-|[]]; assumption]. }
  destruct (most_likely p m O (others_NoDup V [a])) as (M & h1 & h2 & h3 & h4); [lia|].
  assert (HM : forall i, In i M -> (i < V)%nat /\ i <> a).
  { intros i Hi. apply h3, in_others in Hi. destruct Hi as [k1 k2]. split; [assumption|]. intros ->. apply k2. now left. }
  destruct (list_min M p) as (z & Hz & Hmin); [intros ->; simpl in h2; lia|]. set (l := p z) in *.
  assert (Hl : 0 <= l) by (apply Hp, HM, Hz). assert (Hzb : l <= p b) by (destruct (HM z Hz); now apply Hmax).
  set (e := p b - l). assert (Hi : forall i, In i M -> l <= p i <= l + e).
  { intros i Hi. destruct (HM i Hi). split; [now apply Hmin|]. unfold e. pose proof (Hmax i H H0). lra. }
  (* what the competitors have above the least of them *)
  set (S := sum M p - INR m * l). assert (ES : S = sum M (fun i => p i - l)) by (unfold S; rewrite sum_minus, sum_const, h2; reflexivity).
  assert (HSe : e <= S <= INR m * e).
  { rewrite ES. split; [|apply Rle_trans with (sum M (fun _ => e)); [apply sum_le; intros i k; specialize (Hi i k); lra|rewrite sum_const, h2; lra]].
    assert (H0 : forall i, In i M -> 0 <= p i - l) by (intros i k; specialize (Hi i k); lra).
    destruct (in_dec Nat.eq_dec b M) as [k|k]; [now apply (single_le_sum M (fun i => p i - l) b)|].
    apply Rle_trans with 0; [|now apply sum_nonneg]. assert (p b <= l); [|unfold e; lra]. apply h4; auto. apply in_others.
    split; [assumption|]. intros [k'|[]]; congruence. }
  (* and the tokens that are neither first nor competitors *)
  assert (Hn : NoDup (a :: M)) by (constructor; [intros k; now apply (HM a k)|assumption]).
  destruct (perm_split (a :: M) (seq 0 V) Hn (NoDup_seq V)) as [r Hr].
  { intros i [<-|k]; apply in_vocab; [assumption|now apply HM]. }
  assert (Hnr : NoDup ((a :: M) ++ r)) by (eapply Permutation_NoDup; [exact Hr|apply NoDup_seq]).
  assert (Hlr : INR (length r) = INR V - 1 - INR m).
  { pose proof (Permutation_length Hr) as k. rewrite seq_length, app_length in k. cbn [length] in k.
    rewrite k, plus_INR. cbn [length]. rewrite S_INR, h2. ring. }
  assert (Hsum : p a + sum M p + sum r p = 1).
  { rewrite <- (proj2 Hp), (sum_perm _ _ p Hr), sum_app, sum_cons. lra. }
  assert (HrV : forall i, In i r -> (i < V)%nat /\ p i <= l).
  { intros i k. assert (k1 : (i < V)%nat) by (apply in_vocab, (Permutation_in _ (Permutation_sym Hr)), in_app_iff; now right).
    assert (k2 : ~ In i (a :: M)).
    { intros k2. destruct (in_split i r k) as (r1 & r2 & ->). rewrite app_assoc in Hnr. apply NoDup_remove_2 in Hnr.
      apply Hnr. rewrite !in_app_iff. left. left. assumption. }
    split; [assumption|]. apply h4; auto; [|intros k3; apply k2; now right]. apply in_others. split; [assumption|].
    intros [k3|[]]. apply k2. now left. }
  assert (Ho : 0 <= sum r p <= (INR V - 1 - INR m) * l).
  { split; [apply sum_nonneg; intros i k; apply Hp, HrV, k|]. rewrite <- Hlr, <- sum_const. apply sum_le. intros i k. now apply HrV. }
  set (w := ((INR m + 1) * l + sum r p) / (1 - g)). assert (Ew : w * (1 - g) = (INR m + 1) * l + sum r p) by (unfold w; field; lra).
  assert (Hml : 0 <= INR m * l) by (apply Rmult_le_pos; lra).
  assert (Hw0 : 0 <= w) by (unfold w; apply Rmult_le_pos; [lra|left; apply Rinv_0_lt_compat; lra]).
  assert (Epa : p a = g + l + e) by (unfold e; lra).
  assert (Erest : (1 - w) * (1 - g) = e + S) by (rewrite Rmult_minus_distr_r, Ew; unfold S; lra).
  assert (Hw1 : w <= 1) by (apply Rnot_lt_le; intros k; assert (0 < (w - 1) * (1 - g)) by (apply Rmult_lt_0_compat; lra); lra).
  assert (Hdust : one_ahead m (l + w * g) l <= w * dust).
  { destruct Hw0 as [k|k].
    - assert (Hy : 0 < y) by (apply Rdiv_lt_0_compat; lra). assert (Ey : INR V * y = 1 - g) by (unfold y; field; lra).
      unfold dust. rewrite <- one_ahead_scale by lra. rewrite Rmult_plus_distr_l, (Rplus_comm l).
      apply ahead_falls; [assumption|apply Rmult_le_pos; lra|]. split; [now apply Rmult_lt_0_compat|].
      apply Rmult_le_reg_l with (INR V); [lra|]. replace (INR V * (w * y)) with (w * (INR V * y)) by ring. rewrite Ey, Ew. lra.
    - rewrite <- k, Rmult_0_l in *. assert (E : l = 0) by nra. rewrite E. unfold one_ahead. cbv zeta. lra. }
  (* [d] is [e] per mass of the second part *)
  assert (Hd : exists d, 0 < d <= (1 - g) / 2 /\ e = (1 - w) * d).
  { destruct Hw1 as [k|k].
    - exists (e / (1 - w)). assert (He : (1 - w) * (1 - g) <= (INR m + 1) * e) by lra.
      assert (0 < (1 - w) * (1 - g)) by (apply Rmult_lt_0_compat; lra). split; [|field; lra]. split.
      + apply Rdiv_lt_0_compat; [apply Rnot_le_lt; intros k'; nra|lra].
      + apply Rmult_le_reg_l with (1 - w); [lra|]. replace ((1 - w) * (e / (1 - w))) with e by (field; lra). lra.
    - exists ((1 - g) / 2). rewrite k, Rminus_eq_0, Rmult_0_l in *. split; lra. }
  destruct Hd as (d & Hd & Ed). rewrite Ed in *.
  assert (Hmix := fun t k => mixture V a m M p x w l g d t k Hp Ha Hx h1 h2).
  assert (EM : sum M p = INR m * l + (1 - w) * (1 - g - d)) by (unfold S in Erest; lra).
  assert (Hend : forall s v, one_ahead m (l + w * g) l + (1 - w) * s >= x -> s <= v -> x <= Rmax dust v).
  { intros s v k1 k2. pose proof (Rmax_l dust v). pose proof (Rmax_r dust v).
    assert (w * dust <= w * Rmax dust v) by (apply Rmult_le_compat_l; lra).
    assert ((1 - w) * s <= (1 - w) * Rmax dust v) by (apply Rmult_le_compat_l; lra). lra. }
  assert (HMi : forall i, In i M -> (i < V)%nat /\ i <> a /\ l <= p i <= l + (1 - w) * d).
  { intros i k. destruct (HM i k). split; [assumption|]. split; [assumption|]. now apply Hi. }
  set (t := / (INR m + 1)). assert (Et : (INR m + 1) * t = 1) by (unfold t; field; lra). assert (Ht : 0 < t) by (apply Rinv_0_lt_compat; lra).
  pose proof (Hmix t 0 HMi ltac:(lra) Hl Hg ltac:(lra) Ht ltac:(lra) ltac:(lra) Epa EM) as Hpool. rewrite Rmult_0_l, Rplus_0_r in Hpool.
  split; intros Hturn.
  - assert (Hlnm : 0 <= ln (INR m)) by (rewrite <- ln_1; apply ln_nondecr; lra). destruct (Rle_dec d t) as [hd|hd].
    + eapply Hend; [apply Rle_ge, Hpool|]. eapply Rle_trans; [apply (pooled_rises g d t t); try lra|].
      { apply Rmult_le_reg_l with (INR m + 1); [lra|]. lra. }
      replace (t / t) with 1 by (field; lra). rewrite ln_1, Rmult_0_r, Rplus_0_r.
      apply Rle_trans with ((g + t) * ln (INR m)).
      * apply Rmult_le_compat_l; [lra|]. apply ln_nondecr; [apply Rdiv_lt_0_compat; lra|].
        apply Rmult_le_reg_r with t; [assumption|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l, Rmult_1_r by lra.
        apply Rmult_le_reg_l with (INR m + 1); [lra|].
        replace ((INR m + 1) * (INR m * t)) with (INR m * ((INR m + 1) * t)) by ring. rewrite Et. lra.
      * apply Rmult_le_compat_r; [assumption|]. apply Rmult_le_reg_l with (INR m + 1); lra.
    + set (n := INR m + 2 - (1 - g) / d). assert (Hdm : 1 < (INR m + 1) * d) by (assert ((INR m + 1) * t < (INR m + 1) * d) by (apply Rmult_lt_compat_l; lra); lra).
      assert (Hn1 : 1 <= n <= INR m).
      { unfold n. split.
        - enough ((1 - g) / d <= INR m + 1) by lra. apply Rmult_le_reg_r with d; [lra|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l; lra.
        - enough (2 <= (1 - g) / d) by lra. apply Rmult_le_reg_r with d; [lra|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l; lra. }
      set (s := (g + d) / n). assert (Hs : 0 < s) by (apply Rdiv_lt_0_compat; lra). assert (Es : s * n = g + d) by (unfold s; field; lra).
      assert (En : n * d = (INR m + 2) * d - (1 - g)) by (unfold n; field; lra).
      assert (Hsd : s <= d) by (apply Rmult_le_reg_r with n; [lra|]; rewrite Es, Rmult_comm, En; lra).
      set (k := 1 - s / d). assert (Ek : k * d = d - s) by (unfold k; field; lra).
      assert (Hk : 0 <= k) by (apply Rmult_le_reg_r with d; lra).
      eapply Hend.
      * apply Rle_ge, (Hmix s k); auto; try lra. apply Rmult_eq_reg_r with d; [|lra].
        replace (((INR m + 1) * s + k * (1 - g - d)) * d) with ((INR m + 1) * s * d + (k * d) * (1 - g - d)) by ring. rewrite Ek.
        replace ((INR m + 1) * s * d + (d - s) * (1 - g - d)) with (s * ((INR m + 2) * d - (1 - g)) + d * (1 - g - d)) by ring.
        rewrite <- En. replace (s * (n * d)) with (s * n * d) by ring. rewrite Es. ring.
      * rewrite Ek. replace (s + (d - s)) with d by ring. replace (d / d) with 1 by (field; lra). rewrite ln_1, Rmult_0_r, Rplus_0_r.
        replace ((g + d) / s) with n by (unfold s; field; lra). apply Rmult_le_compat; try lra; [rewrite <- ln_1|]; apply ln_nondecr; lra.
  - eapply Hend; [apply Rle_ge, Hpool|]. eapply Rle_trans; [apply (pooled_rises g d ((1 - g) / 2) t); lra|].
    rewrite <- (spike_pooled m g t) by (try assumption; lra). right.
    replace (g + (1 - g) / 2) with ((1 + g) / 2) by field. replace (1 - g - (1 - g) / 2) with ((1 - g) / 2) by field. reflexivity.
Qed.

(** The value of two tokens levelled with [m - 1] of no mass lies above its tangents in the first token, too. *)
Lemma raised_between m g u v w : 0 <= g < u -> v <= u <= w \/ w <= u <= v -> g <= v -> g <= w ->
  let f y := y * ln (y / ((2 * y - g) / (INR m + 1))) + (y - g) * ln ((y - g) / ((2 * y - g) / (INR m + 1))) in
  f u <= Rmax (f v) (f w).
Proof.
  intros Hu Huvw Hv Hw f. pose proof (pos_INR m) as Hm. set (c := fun y => (2 * y - g) / (INR m + 1)).
  assert (Ec : forall y, (INR m + 1) * c y = 2 * y - g) by (intros y; unfold c; field; lra).
  assert (Hc : 0 < c u) by (apply Rdiv_lt_0_compat; lra).
  set (s := ln (u / c u)). set (r := ln ((u - g) / c u)).
  assert (H : forall y, 0 < y -> g <= y -> y * s + (y - g) * r <= f y).
  { intros y Hy Hgy. assert (Hcy : 0 < c y) by (apply Rdiv_lt_0_compat; lra).
    pose proof (scaled_term y (c y) (u / c u) ltac:(lra) ltac:(lra) ltac:(auto) ltac:(apply Rdiv_lt_0_compat; lra)) as h1.
    pose proof (scaled_term (y - g) (c y) ((u - g) / c u) ltac:(lra) ltac:(lra) ltac:(auto) ltac:(apply Rdiv_lt_0_compat; lra)) as h2.
    fold s in h1. fold r in h2. change (f y) with (y * ln (y / c y) + (y - g) * ln ((y - g) / c y)).
    assert (E : u / c u * c y + (u - g) / c u * c y = (INR m + 1) * c y).
    { replace (u / c u * c y + (u - g) / c u * c y) with ((2 * u - g) * (c y / c u)) by (field; lra). rewrite <- Ec. field. lra. }
    rewrite Ec in E. lra. }
  assert (Hall : forall y, g <= y -> 0 <= y -> y * s + (y - g) * r <= f y).
  { intros y h [k|<-]; [now apply H|]. unfold f. replace g with 0 by lra. lra. }
  pose proof (Hall v Hv ltac:(lra)) as kv. pose proof (Hall w Hw ltac:(lra)) as kw.
  pose proof (Rmax_l (f v) (f w)). pose proof (Rmax_r (f v) (f w)).
  change (f u) with (u * s + (u - g) * r). destruct (Rle_dec 0 (s + r)) as [h|h].
  - destruct Huvw as [k|k].
    + assert (0 <= (s + r) * (w - u)) by (apply Rmult_le_pos; lra). lra.
    + assert (0 <= (s + r) * (v - u)) by (apply Rmult_le_pos; lra). lra.
  - destruct Huvw as [k|k].
    + assert (0 <= - (s + r) * (u - v)) by (apply Rmult_le_pos; lra). lra.
    + assert (0 <= - (s + r) * (u - w)) by (apply Rmult_le_pos; lra). lra.
Qed.

Theorem threshold_no_more : Statements.M5s_no_more.
Proof.
  intros V a b m p x g tau Hp Ha Hb Hba Hm Epb Hg Htau Hx c raised. assert (Hm1 : 1 <= INR m) by (change 1 with (INR 1); now apply le_INR).
  destruct (second_rejected V a b m p x Hp Ha Hb Hba Hm Hx) as [H1 H2]. cbv zeta in H1. rewrite Epb in *.
  pose proof (pair_mass_le_1 V a b p Hp Ha Hb ltac:(congruence)) as Hpair. rewrite Epb in Hpair.
  assert (Hlnm : 0 <= ln (INR m)) by (rewrite <- ln_1; apply ln_nondecr; lra).
  assert (Hkept : p a <= INR m * (p a - g) -> x <= (1 + g) / 2 * ln (INR m)).
  { intros h. eapply Rle_trans; [now apply H2|]. apply Rmult_le_compat_r; lra. }
  set (f := fun y => y * ln (y / ((2 * y - g) / (INR m + 1))) + (y - g) * ln ((y - g) / ((2 * y - g) / (INR m + 1)))).
  assert (Hf : x <= f (p a)) by (unfold f; now replace (2 * p a - g) with (p a + (p a - g)) by ring).
  change raised with (f tau).
  assert (Hbetween : forall w, p a <= w -> x <= Rmax (f tau) (f w)).
  { intros w Hw. eapply Rle_trans; [exact Hf|]. destruct (Req_dec (p a) tau) as [->|h]; [apply Rmax_l|].
    apply (raised_between m g (p a) tau w); lra. }
  split; [intros h; apply Hkept; assert (0 <= (INR m - 1) * (p a - tau)) by (apply Rmult_le_pos; lra); lra|]. intros Hr.
  assert (Hpooled : x <= Rmax (f tau) (ln ((INR m + 1) / 2) + phi g)).
  { rewrite <- (spike_pooled m g (/ (INR m + 1))) by (lra || (rewrite Rinv_r; lra)).
    pose proof (Hbetween ((1 + g) / 2) ltac:(lra)) as h. unfold f at 2 in h.
    replace ((2 * ((1 + g) / 2) - g) / (INR m + 1)) with (/ (INR m + 1)) in h by (field; lra).
    now replace ((1 + g) / 2 - g) with ((1 - g) / 2) in h by field. }
  split; [|split; [intros _; exact Hpooled|]].
  - intros Hturn. destruct (Rle_dec (p a) (INR m * (p a - g))) as [h|h]; [eapply Rle_trans; [now apply Hkept|apply Rmax_r]|].
    assert (0 <= (INR m - 1) * p a) by (apply Rmult_le_pos; lra). assert (Hg0 : 0 < g) by nra. assert (Hm2 : 0 < INR m - 1) by nra.
    set (w := INR m * g / (INR m - 1)). assert (Ew : (INR m - 1) * w = INR m * g) by (unfold w; field; lra).
    eapply Rle_trans; [apply (Hbetween w); apply Rmult_le_reg_l with (INR m - 1); lra|]. apply Rle_max_compat_l.
    unfold f. replace ((2 * w - g) / (INR m + 1)) with (w - g) by (unfold w; field; lra).
    rewrite div_self_ln, Rplus_0_r. replace (w / (w - g)) with (INR m) by (unfold w; field; lra).
    apply Rmult_le_compat_r; [assumption|]. apply Rmult_le_reg_l with (INR m - 1); [assumption|]. lra.
  - intros ->. eapply Rle_trans; [exact Hpooled|]. apply Rmax_lub; [lra|]. simpl (INR 1). replace ((1 + 1) / 2) with 1 by field.
    rewrite ln_1, Rplus_0_l. pose proof (two_point_ge_phi tau (tau - g) ltac:(lra) ltac:(lra)) as h. unfold two_point in h.
    replace (tau - (tau - g)) with g in h by ring. unfold f. simpl (INR 1).
    replace (2 * tau / (tau + (tau - g))) with (tau / ((2 * tau - g) / (1 + 1))) in h by (field; lra).
    now replace (2 * (tau - g) / (tau + (tau - g))) with ((tau - g) / ((2 * tau - g) / (1 + 1))) in h by (field; lra).
Qed.

Theorem threshold_approached : Statements.M5s_approached.
Proof.
  intros m g tau e Hm Hg H2 Hr He c. assert (Hm1 : 1 <= INR m) by (change 1 with (INR 1); now apply le_INR).
  set (z := Rmin 1 (e / (4 * INR m))). assert (Hz : 0 < z) by (apply Rmin_glb_lt; [lra|apply Rdiv_lt_0_compat; lra]).
  pose proof (Rmin_l 1 (e / (4 * INR m))) as Hz1. pose proof (Rmin_r 1 (e / (4 * INR m))) as Hz2. fold z in Hz1, Hz2.
  assert (Hlnz : ln z <= 0) by (rewrite <- ln_1; now apply ln_nondecr).
  set (s := e / (4 * INR m * (1 - ln z))).
  assert (Hden : 0 < 4 * INR m * (1 - ln z)) by (apply Rmult_lt_0_compat; lra). assert (Hs : 0 < s) by now apply Rdiv_lt_0_compat.
  destruct (archimed_cor1 (Rmin (tau - g) s) ltac:(apply Rmin_glb_lt; lra)) as (n & Hn & Hn0).
  pose proof (Rmin_l (tau - g) s) as Hn1. pose proof (Rmin_r (tau - g) s) as Hn2.
  set (K := (m - 1 + n)%nat). set (w := 1 - (2 * tau - g)).
  assert (HnR : 0 < INR n) by now apply lt_0_INR. assert (HKR : INR n <= INR K) by (apply le_INR; unfold K; lia).
  set (y := w / INR K). assert (EK : INR K * y = w) by (unfold y; field; lra).
  assert (Hy0 : 0 <= y) by (unfold y; apply Rmult_le_pos; [unfold w; lra|left; apply Rinv_0_lt_compat; lra]).
  assert (Hyn : y <= / INR n).
  { apply Rle_trans with (/ INR K); [|now apply Rinv_le_contravar]. unfold y, Rdiv. rewrite <- (Rmult_1_l (/ INR K)) at 2.
    apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat|unfold w]; lra. }
  set (p := fun i : nat => match i with O => tau | 1%nat => tau - g | _ => y end). set (V := (2 + K)%nat).
  assert (Ey : forall j, (1 < j)%nat -> p j = y) by (intros [|[|j]] Hj; try lia; reflexivity).
  assert (Es : seq 1 m = 1%nat :: seq 2 (m - 1)) by (destruct m; [lia|]; cbn [seq]; now rewrite Nat.sub_1_r).
  assert (Hdust : forall k f, sum (seq 2 k) (fun i => f (p i)) = INR k * f y).
  { intros k f. rewrite (sum_ext _ _ (fun _ => f y)) by (intros i Hi; apply in_seq in Hi; now rewrite Ey by lia). now rewrite sum_const, seq_length. }
  assert (Hp : prob V p).
  { split; [intros [|[|i]] _; cbn; lra|]. unfold V. cbn [Nat.add seq]. rewrite !sum_cons, (Hdust K (fun v => v) : sum _ p = _), EK. cbn. unfold w. lra. }
  assert (Hm2 : INR (m - 1) = INR m - 1) by (rewrite minus_INR by lia; reflexivity).
  set (c' := (2 * tau - g + (INR m - 1) * y) / (INR m + 1)). assert (Ec' : (INR m + 1) * c' = 2 * tau - g + (INR m - 1) * y) by (unfold c'; field; lra).
  assert (Ec : (INR m + 1) * c = 2 * tau - g) by (unfold c; field; lra).
  assert (Hc : 0 < c) by (apply Rdiv_lt_0_compat; lra).
  assert (Hmy : 0 <= (INR m - 1) * y <= (INR m - 1) * tau) by (split; [apply Rmult_le_pos|apply Rmult_le_compat_l]; lra).
  assert (Hc'1 : tau - g <= c') by (apply Rmult_le_reg_l with (INR m + 1); lra).
  assert (Hc'2 : c' <= tau) by (apply Rmult_le_reg_l with (INR m + 1); lra).
  assert (Hd : disjoint_sets V [0%nat] (seq 1 m)).
  { unfold V, K. repeat split; [repeat constructor; simpl; tauto|apply seq_NoDup|intros i [<-|[]]; lia|apply in_seq in H; lia|].
    intros [<-|[]]. apply in_seq in H. lia. }
  assert (Hin : forall i, In i (seq 1 m) -> p i <= tau - g).
  { intros i Hi. apply in_seq in Hi. destruct (Nat.eq_dec i 1) as [->|h]; [cbn; lra|rewrite Ey by lia; lra]. }
  exists V, p, (tau * ln (tau / c') + (tau - g) * ln ((tau - g) / c') + (INR m - 1) * (y * ln (y / c'))).
  split; [assumption|]. split; [reflexivity|]. split; [reflexivity|]. split; [intros j Hj; rewrite Ey by assumption; cbn; lra|]. split.
  - rewrite <- (seq_length m 1) at 1. apply top_competitors; auto.
    + intros i j Hi _ Hj0 Hj. apply in_seq in Hi. assert (j <> 0%nat) by (intros ->; apply Hj0; now left).
      rewrite (Ey j) by (rewrite in_seq in Hj; lia). destruct (Nat.eq_dec i 1) as [->|h]; [cbn; lra|rewrite Ey by lia; lra].
    + pose proof (pool_least V [0%nat] (seq 1 m) [0%nat] (seq 1 m) p c' Hp Hd ltac:(rewrite Es; discriminate) ltac:(lra)) as H.
      rewrite sum_app, Es, !sum_cons, sum_nil, (Hdust _ (fun v => v * ln (v / c'))), Hm2 in H. rewrite <- Es in H. cbn [p] in H.
      replace (tau * ln (tau / c') + (tau - g) * ln ((tau - g) / c') + (INR m - 1) * (y * ln (y / c')))
        with (tau * ln (tau / c') + 0 + ((tau - g) * ln ((tau - g) / c') + (INR m - 1) * (y * ln (y / c')))) by ring.
      apply H. unfold pool_of. repeat match goal with |- _ /\ _ => split end; try apply Hd; try apply incl_refl; try tauto.
      * intros i [<-|[]]. cbn. lra.
      * intros i Hi. specialize (Hin i Hi). lra.
      * rewrite sum_app, Es, !sum_cons, sum_nil, (Hdust _ (fun v => v) : sum _ p = _), Hm2. rewrite <- Es, app_length, seq_length, plus_INR. simpl (INR 1).
        cbn [length p]. simpl (INR 1). lra.
  - pose proof (scaled_term tau c' (tau / c) ltac:(lra) ltac:(lra) ltac:(lra) ltac:(apply Rdiv_lt_0_compat; lra)) as h1.
    pose proof (scaled_term (tau - g) c' ((tau - g) / c) ltac:(lra) ltac:(lra) ltac:(lra) ltac:(apply Rdiv_lt_0_compat; lra)) as h2.
    pose proof (scaled_term y c' z Hy0 ltac:(lra) ltac:(lra) Hz) as h3. apply Rmult_le_compat_l with (r := INR m - 1) in h3; [|lra].
    assert (E : tau / c * c' + (tau - g) / c * c' = (INR m + 1) * c').
    { replace (tau / c * c' + (tau - g) / c * c') with ((2 * tau - g) * (c' / c)) by (field; lra). rewrite <- Ec. field. lra. }
    (* what the dust takes *)
    assert (k1 : (INR m - 1) * (z * c') <= e / 4).
    { apply Rle_trans with (INR m * (e / (4 * INR m) * 1)); [|right; field; lra].
      apply Rmult_le_compat; try lra; [apply Rmult_le_pos; lra|apply Rmult_le_compat; lra]. }
    assert (k2 : (INR m - 1) * (y * - ln z) <= e / 4).
    { apply Rle_trans with (INR m * (s * (1 - ln z))); [|right; unfold s; field; lra].
      apply Rmult_le_compat; try lra; [apply Rmult_le_pos; lra|apply Rmult_le_compat; lra]. }
    lra.
Qed.

Theorem certificate_convex : Statements.M6_convexity.
Proof.
  intros V A M p p' w x x' y Hp Hp' Hw (_ & HM & _ & HM') [(q & Hq & Hb & Hf & <-) _] [(q' & Hq' & Hb' & Hf' & <-) _] [_ Hy].
  set (r := fun i => w * q i + (1 - w) * q' i). assert (Hpos : forall u v, 0 <= u -> 0 <= v -> 0 <= w * u /\ 0 <= (1 - w) * v).
  { intros u v hu hv. split; apply Rmult_le_pos; lra. }
  assert (Hr : prob V r).
  { split; [intros i Hi; destruct (Hpos _ _ (proj1 Hq i Hi) (proj1 Hq' i Hi)); unfold r; lra|].
    unfold r. rewrite sum_plus, !sum_scal, (proj2 Hq), (proj2 Hq'). ring. }
  assert (Hparts : forall i, (i < V)%nat -> (0 < w * p i -> 0 < w * q i) /\ (0 < (1 - w) * p' i -> 0 < (1 - w) * q' i)).
  { intros i Hi. pose proof (proj1 Hp i Hi) as k. pose proof (proj1 Hp' i Hi) as k'. specialize (Hf i Hi). specialize (Hf' i Hi).
    split; intros h; apply Rmult_lt_0_compat; nra. }
  eapply Rle_trans; [apply (Hy r Hr)|].
  - exists M. split; [assumption|]. split; [reflexivity|]. split; [assumption|]. intros i a Hi Ha. unfold r.
    apply Rplus_le_compat; apply Rmult_le_compat_l; auto; lra.
  - intros i Hi h. destruct (Hparts i Hi) as [k k']. destruct (Hpos _ _ (proj1 Hq i Hi) (proj1 Hq' i Hi)).
    destruct (Hpos _ _ (proj1 Hp i Hi) (proj1 Hp' i Hi)). unfold r. destruct (Rlt_dec 0 (w * p i)) as [j|j]; [specialize (k j); lra|].
    specialize (k' ltac:(lra)). lra.
  - unfold KL. rewrite <- !sum_scal, <- sum_plus. apply sum_le. intros i Hi. apply in_vocab in Hi. destruct (Hparts i Hi) as [k k'].
    destruct (Hpos _ _ (proj1 Hq i Hi) (proj1 Hq' i Hi)). destruct (Hpos _ _ (proj1 Hp i Hi) (proj1 Hp' i Hi)).
    eapply Rle_trans; [apply log_sum; assumption|]. right.
    assert (E : forall c u v, c * u * ln (c * u / (c * v)) = c * (u * ln (u / v))).
    { intros c u v. destruct (Req_dec c 0) as [->|hc]; [ring|]. destruct (Req_dec v 0) as [->|hv].
      - unfold Rdiv. rewrite Rmult_0_r, Rinv_0, !Rmult_0_r. ring.
      - replace (c * u / (c * v)) with (u / v) by (field; lra). ring. }
    now rewrite !E.
Qed.
