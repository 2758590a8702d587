(** * Bounds from above: one draft that is rejected, what it says of large certificates, and rows that attain them. *)

From Coq Require Import Reals List Arith Lra Lia.
From Draftcert Require Statements.
From Draftcert Require Import Definitions Sums LogFacts Projection Competitors ClosedForm Ceilings StrictGreedy Guarantee Candidates MeanKL.
Import ListNotations.
Open Scope R_scope.

(** A rejected draft: the tokens of [T] at the level [c], those of [R] raised by [c - b], the others as they are. *)
Theorem lift_bound : Statements.B4_upper.
Proof.
  intros V A M T R p b c x Hp [_ Hx] Hbc HT HR HV HTR Hs HA HM HM'.
  set (q := fun i => if mem T i then c else if mem R i then p i + (c - b) else p i).
  assert (Hsub : incl T (seq 0 V) /\ incl R (seq 0 V)) by (split; intros i Hi; apply in_vocab; auto).
  assert (Hq : prob V q).
  { split; [intros i Hi; pose proof (proj1 Hp i Hi); unfold q; destruct (mem T i), (mem R i); lra|].
    rewrite (sum_ext _ q (fun i => p i + ((if mem T i then c - p i else 0) + (if mem R i then c - b else 0)))).
    - rewrite !sum_plus, !sum_indicator, sum_minus, !sum_const, (proj2 Hp); try tauto; auto using NoDup_seq. lra.
    - intros i _. unfold q. destruct (mem T i) eqn:E1, (mem R i) eqn:E2; try lra.
      apply mem_true in E1. apply mem_true in E2. now destruct (HTR i E2). }
  assert (Hf : KL_finite V p q).
  { intros i Hi h. unfold q. destruct (mem T i) eqn:E; [|destruct (mem R i); lra]. apply mem_true in E.
    apply Rnot_le_lt. intros k. assert (E0 : c = 0) by lra. assert (Eb : b = 0) by lra. rewrite E0, Eb in Hs.
    assert (p i <= sum T p); [|lra]. apply single_le_sum; [assumption|]. intros j Hj. apply Hp. auto. }
  eapply Rle_trans; [apply (Hx q Hq); [|assumption]|].
  - exists M. split; [assumption|]. split; [reflexivity|]. split; [intros i Hi; destruct (HM' i Hi) as (h1 & h2 & _); auto|].
    intros i a Hi Ha. apply Rle_trans with c; unfold q.
    + destruct (HA a Ha) as [h|[h1 h2]]; [rewrite mem_in by assumption; lra|].
      rewrite (mem_out R) by assumption. destruct (mem T a); lra.
    + destruct (HM' i Hi) as (h1 & _ & h3). destruct (mem T i) eqn:E1; [lra|]. destruct (mem R i) eqn:E2.
      * apply mem_true in E2. destruct (HTR i E2). lra.
      * apply mem_false in E1. apply mem_false in E2. tauto.
  - unfold KL. rewrite <- sum_const, <- (sum_indicator T (seq 0 V)), <- (sum_indicator R (seq 0 V)), <- sum_plus by (auto using NoDup_seq; tauto).
    apply sum_le. intros i Hi. apply in_vocab in Hi. pose proof (proj1 Hp i Hi) as H0. unfold q.
    destruct (mem T i) eqn:E1, (mem R i) eqn:E2.
    + apply mem_true in E1. apply mem_true in E2. now destruct (HTR i E2).
    + lra.
    + apply mem_true in E2. destruct (HTR i E2) as [_ Hb]. destruct H0 as [H0|H0]; [|assert (E0 : b = 0) by lra; rewrite <- H0, E0, !Rmult_0_l; lra].
      (* p ln(p/(p + d)) falls with p *)
      set (d := c - b). assert (Ec : c = b + d) by (unfold d; ring). rewrite Ec. assert (Hd : 0 <= d) by (unfold d; lra).
      pose proof (scaled_term b (b + d) (p i / (p i + d)) ltac:(lra) ltac:(lra) ltac:(lra) ltac:(apply Rdiv_lt_0_compat; lra)) as h1.
      pose proof (ln_le_sub1 (p i / (p i + d)) ltac:(apply Rdiv_lt_0_compat; lra)) as h2.
      apply Rmult_le_compat_l with (r := p i - b) in h2; [|lra].
      assert (E : p i / (p i + d) * (b + d) - b + (p i - b) * (p i / (p i + d) - 1) = 0) by (field; lra). lra.
    + destruct H0 as [H0|<-]; [rewrite div_self_ln; lra|lra].
Qed.

(** Of the unlisted tokens a likeliest one competes, which is at least at their mean [b]. *)
Theorem one_unlisted : Statements.B4_one_unlisted.
Proof.
  intros V A L U p x Hp (d1 & d2 & d3 & d4) HU Hall Htop Hx p'. set (n := INR (length U)). set (b := sum U p / n).
  assert (Hn : 0 < n) by (apply lt_0_INR; destruct U; [easy|simpl; lia]).
  assert (HUV : forall i, In i U -> (i < V)%nat /\ ~ In i A) by (intros i Hi; apply d4, in_app_iff; now right).
  assert (HLU : NoDup L /\ NoDup U /\ forall i, In i L -> ~ In i U).
  { clear - d2. induction L as [|j L IH]; cbn [app] in d2; [repeat split; [constructor|assumption|easy]|].
    inversion_clear d2 as [|? ? k1 k2]. destruct (IH k2) as (h1 & h2 & h3). rewrite in_app_iff in k1.
    repeat split; [constructor; tauto|assumption|]. intros i [<-|Hi]; [tauto|auto]. }
  destruct HLU as (HL & HU' & HLU). assert (EU : forall i, In i U -> p' i = b) by (intros i Hi; unfold p'; now rewrite mem_in).
  assert (EN : forall i, ~ In i U -> p' i = p i) by (intros i Hi; unfold p'; now rewrite mem_out).
  assert (Esum : sum U p' = sum U p) by (rewrite (sum_ext U p' (fun _ => b) EU), sum_const; fold n; unfold b; field; lra).
  assert (Hb0 : 0 <= b) by (apply Rmult_le_pos; [apply sum_nonneg; intros i Hi; now apply Hp, HUV|left; now apply Rinv_0_lt_compat]).
  assert (Hp' : prob V p').
  { split.
    - intros i Hi. destruct (in_dec Nat.eq_dec i U) as [h|h]; [now rewrite EU|rewrite EN by assumption; now apply Hp].
    - pose proof (sum_diff_on U (seq 0 V) p' p HU' (NoDup_seq V) ltac:(intros i Hi; now apply in_vocab, HUV) ltac:(auto)) as h.
      pose proof (proj2 Hp). lra. }
  split; [exact Hp'|]. split; [exact Esum|]. intros y Hy.
  destruct (list_min U (fun i => - p i) HU) as (k & Hk & Hmax).
  assert (Hmean : forall z, (forall i, In i U -> p i <= z) -> b <= z).
  { intros z H. apply Rmult_le_reg_r with n; [assumption|]. unfold b, Rdiv. rewrite Rmult_assoc, Rinv_l, Rmult_1_r, Rmult_comm by lra.
    unfold n. rewrite <- sum_const. now apply sum_le. }
  assert (Hbk : b <= p k) by (apply Hmean; intros i Hi; specialize (Hmax i Hi); lra).
  assert (HLb : forall j, In j L -> b <= p j) by (intros j Hj; apply Hmean; auto).
  set (M := L ++ [k]). assert (EM : length M = (length L + 1)%nat) by (unfold M; now rewrite app_length).
  assert (Hd : disjoint_sets V A M).
  { split; [assumption|]. split; [|split; [assumption|]].
    - unfold M. apply (Permutation.Permutation_NoDup (Permutation.Permutation_cons_append L k)). constructor; [|assumption].
      intros h. now apply (HLU k).
    - intros i Hi. apply in_app_iff in Hi. destruct Hi as [Hi|[<-|[]]]; [apply d4, in_app_iff; now left|now apply HUV]. }
  assert (Htop' : top_rejected V A M p').
  { intros i j Hi Hj HjA HjM. assert (HjU : In j U).
    { specialize (Hall j Hj). rewrite !in_app_iff in Hall. unfold M in HjM. rewrite in_app_iff in HjM. tauto. }
    rewrite (EU j HjU). apply in_app_iff in Hi. destruct Hi as [Hi|[<-|[]]]; [rewrite EN by auto; auto|rewrite EU by assumption; lra]. }
  destruct (level_exists V A M p' Hp' Hd) as (c & Hc & Hl).
  pose proof (level_projection V A M p' c Hp' Hd ltac:(unfold M; now destruct L) ltac:(lra) Hl) as Hleast.
  apply (top_competitors V A M p' _ Hp' Hd Htop') in Hleast. rewrite EM in Hleast. rewrite (certificate_unique _ _ _ _ _ _ Hy Hleast).
  pose proof (level_is_mean A M p' c Hl) as Hpool. rewrite <- EM in Hx.
  set (T := filter (fun a => if Rlt_dec c (p' a) then true else false) A ++ filter (fun i => if Rlt_dec (p' i) c then true else false) L).
  set (K := if Rlt_dec b c then [k] else []). assert (Emoved : moved A M p' c = T ++ K).
  { unfold moved, M, T, K. rewrite filter_app, <- app_assoc. cbn [filter]. rewrite (EU k Hk). now destruct (Rlt_dec b c). }
  rewrite Emoved, !sum_app, app_length, plus_INR in *.
  assert (HTin : forall i, In i T -> ~ In i U /\ (i < V)%nat).
  { intros i Hi. apply in_app_iff in Hi. rewrite !filter_In in Hi. destruct Hi as [[Hi _]|[Hi _]].
    - split; [intros h; now apply (HUV i h)|auto].
    - split; [auto|]. apply d4, in_app_iff. now left. }
  assert (HT : NoDup T).
  { destruct Hd as (_ & h & _ & h'). apply NoDup_app_l with (l' := K). rewrite <- Emoved. unfold moved.
    assert (G : forall l l' : list nat, NoDup l -> NoDup l' -> (forall i, In i l -> ~ In i l') -> NoDup (l ++ l')).
    { clear. intros l l' h1 h2 h3. induction l as [|a l IH]; [assumption|]. inversion_clear h1 as [|? ? k1 k2]. cbn. constructor.
      - rewrite in_app_iff. intros [e|e]; [auto|]. now apply (h3 a (or_introl eq_refl)).
      - apply IH; auto with datatypes. }
    apply G; try now apply NoDup_filter. intros i Hi Hi'. apply filter_In in Hi, Hi'. now apply (h' i). }
  assert (Ep : forall i, In i T -> p' i = p i) by (intros i Hi; now apply EN, HTin).
  rewrite (sum_ext T p' p Ep) in Hpool. rewrite (sum_ext T _ (fun i => p i * ln (p i / c))) by (intros i Hi; now rewrite Ep).
  assert (HTA : forall a, In a A -> In a T \/ p a <= c).
  { intros a Ha. assert (h : ~ In a U) by (intros h; now apply (HUV a h)). destruct (Rlt_dec c (p a)) as [e|e]; [left|right; lra].
    apply in_app_iff. left. apply filter_In. split; [assumption|]. rewrite EN by assumption. now destruct (Rlt_dec c (p a)). }
  assert (HTL : forall i, In i L -> In i T \/ c <= p i).
  { intros i Hi. destruct (Rlt_dec (p i) c) as [e|e]; [left|right; lra]. apply in_app_iff. right. apply filter_In. split; [assumption|].
    rewrite EN by auto. now destruct (Rlt_dec (p i) c). }
  unfold K in *. destruct (Rlt_dec b c) as [Hbc|Hbc].
  - replace (sum [k] (fun i => p' i * ln (p' i / c))) with (INR (length [k]) * (b * ln (b / c))) by (rewrite sum_cons, sum_nil, (EU k Hk); cbn; lra).
    apply (lift_bound V A M T [k] p b c x Hp Hx); try assumption; try lra.
    + repeat constructor. easy.
    + intros i [h|[<-|[]]]; [now apply HTin|now apply HUV].
    + intros i [<-|[]]. split; [intros h; now apply (HTin k)|assumption].
    + rewrite sum_cons, sum_nil, (EU k Hk) in Hpool. cbn in Hpool |- *. lra.
    + intros a Ha. destruct (HTA a Ha) as [h|h]; [now left|right]. split; [intros [<-|[]]; now apply (HUV k)|assumption].
    + apply Hd.
    + intros i Hi. destruct (proj2 (proj2 (proj2 Hd)) i Hi) as [h1 h2]. split; [assumption|]. split; [assumption|].
      apply in_app_iff in Hi. destruct Hi as [Hi|Hi]; [destruct (HTL i Hi); tauto|tauto].
  - replace (sum [] (fun i => p' i * ln (p' i / c))) with (INR (length (@nil nat)) * (0 * ln (0 / c))) by (rewrite sum_nil; ring).
    apply (lift_bound V A M T [] p 0 c x Hp Hx); try assumption; try lra.
    + constructor.
    + intros i [h|[]]. now apply HTin.
    + easy.
    + rewrite sum_nil in Hpool. cbn in Hpool |- *. lra.
    + intros a Ha. destruct (HTA a Ha) as [h|h]; [now left|right; now split].
    + apply Hd.
    + intros i Hi. destruct (proj2 (proj2 (proj2 Hd)) i Hi) as [h1 h2]. split; [assumption|]. split; [assumption|].
      apply in_app_iff in Hi. destruct Hi as [Hi|[<-|[]]]; [destruct (HTL i Hi); tauto|right; right; lra].
Qed.

Theorem first_alone : Statements.first_alone.
Proof.
  intros V A a m p x Hp Ha HA Hx. pose proof Hx as [(q & _ & (M & h1 & h2 & h3 & _) & _) _]. pose proof (pos_INR m) as Hm.
  destruct (HA a Ha) as [HaV _]. pose proof (proj1 Hp a HaV) as Hpa.
  set (c := p a / (INR m + 1)). assert (Ec : (INR m + 1) * c = p a) by (unfold c; field; lra).
  rewrite <- h2 in Hx. pose proof (lift_bound V A M [a] M p 0 c x Hp Hx) as H. rewrite h2, !sum_cons, !sum_nil in H.
  apply Rle_trans with (p a * ln (p a / c)).
  - eapply Rle_trans; [apply H|simpl; lra]; auto.
    + split; [lra|]. apply Rmult_le_reg_l with (INR m + 1); lra.
    + repeat constructor; simpl; tauto.
    + intros i [[<-|[]]|Hi]; [assumption|now apply h3].
    + intros i Hi. destruct (h3 i Hi) as [k1 k2]. split; [intros [<-|[]]; tauto|now apply Hp].
    + simpl. lra.
    + intros b Hb. destruct (Nat.eq_dec b a) as [->|hb]; [left; now left|right]. destruct (HA b Hb) as [_ k]. split.
      * intros h. now apply (h3 b h).
      * apply Rmult_le_reg_l with (INR m + 1); [lra|]. rewrite Ec. now apply k.
    + intros i Hi. destruct (h3 i Hi). tauto.
  - destruct Hpa as [Hpa|<-]; [|lra]. replace (p a / c) with (INR m + 1) by (unfold c; field; lra). lra.
Qed.

Theorem two_accepted : Statements.MS_upper_bounds.
Proof.
  intros V A a b m p g x Hp Ha HA Hb Hba Epb Hg Hmax Hx. pose proof (pos_INR m) as Hm.
  pose proof (HA a Ha) as HaV. pose proof (pair_mass_le_1 V a b p Hp HaV Hb ltac:(congruence)) as Hpair.
  assert (Hall : forall i, (i < V)%nat -> p i <= p a).
  { intros i Hi. destruct (Nat.eq_dec i a) as [->|h]; [lra|]. specialize (Hmax i Hi h). lra. }
  split; intros Hmg.
  - assert (Hg1 : g < 1) by nra.
    destruct (Rle_dec (p a) (1 / 2)) as [h|h].
    + pose proof (ceiling V A m p (p a) x Hp Hall Hx HA) as k. pose proof (phi_nonneg g ltac:(lra)).
      pose proof (proj1 Hp a HaV) as k0.
      assert (ln (1 + INR m * p a) <= ln (1 + INR m / 2)); [apply ln_nondecr; nra|lra].
    + destruct Hx as [(q0 & _ & (M & h1 & h2 & h3 & _) & _) Hlow].
      set (l := / (INR m + 2)). set (s := l / (1 - p a)). assert (Hl : 0 < l) by (apply Rinv_0_lt_compat; lra).
      assert (Hs : 0 < s) by (apply Rdiv_lt_0_compat; lra). assert (El : (INR m + 2) * l = 1) by (unfold l; field; lra).
      assert (Es : s * (1 - p a) = l) by (unfold s; field; lra).
      assert (HaM : ~ In a M) by (intros k; now apply (h3 a k)).
      set (q := fun i => s * (if mem [a] i then 0 else p i) + (if mem (a :: M) i then l else 0)).
      assert (Hout : sum (seq 0 V) (fun i => if mem [a] i then 0 else p i) = 1 - p a).
      { rewrite (sum_ext _ _ (fun i => p i - (if mem [a] i then p i else 0))) by (intros i _; destruct (mem [a] i); lra).
        rewrite sum_minus, sum_indicator, sum_cons, sum_nil, (proj2 Hp); auto using NoDup_seq; [lra|repeat constructor; simpl; tauto|].
        intros i [<-|[]]. now apply in_vocab. }
      assert (Hge : forall i, (i < V)%nat -> s * (if mem [a] i then 0 else p i) <= q i /\ 0 <= q i).
      { intros i Hi. pose proof (proj1 Hp i Hi). unfold q. assert (0 <= s * (if mem [a] i then 0 else p i)) by (destruct (mem [a] i); nra).
        destruct (mem (a :: M) i); lra. }
      assert (Hqa : q a = l) by (unfold q; rewrite !mem_in by (now left); lra).
      assert (Hq : prob V q).
      { split; [intros i Hi; now apply Hge|]. unfold q. rewrite sum_plus, sum_scal, Hout, Es, sum_indicator, sum_const; auto using NoDup_seq.
        - cbn [length]. rewrite S_INR, h2. lra.
        - constructor; assumption.
        - intros i [<-|Hi]; apply in_vocab; [assumption|now apply h3]. }
      assert (Hf : KL_finite V p q).
      { intros i Hi k. destruct (Nat.eq_dec i a) as [->|e]; [lra|]. destruct (Hge i Hi) as [k1 _].
        rewrite mem_out in k1 by (intros [e'|[]]; congruence). assert (0 < s * p i) by (now apply Rmult_lt_0_compat). lra. }
      assert (Hr : rejects V A m q).
      { exists M. split; [assumption|]. split; [assumption|]. split; [assumption|]. intros i j Hi Hj. apply Rle_trans with l.
        - destruct (Nat.eq_dec j a) as [->|e]; [lra|]. unfold q.
          rewrite (mem_out [a]), (mem_out (a :: M)) by (intros [k|k]; [congruence|(now destruct k) || now apply (h3 j k)]).
          rewrite Rplus_0_r, <- Es. apply Rmult_le_compat_l; [lra|]. pose proof (pair_mass_le_1 V a j p Hp HaV (HA j Hj) ltac:(congruence)). lra.
        - destruct (h3 i Hi) as [k1 k2]. unfold q. rewrite (mem_in (a :: M)) by now right. pose proof (proj1 Hp i k1).
          assert (0 <= s * (if mem [a] i then 0 else p i)) by (destruct (mem [a] i); nra). lra. }
      eapply Rle_trans; [exact (Hlow q Hq Hr Hf)|].
      apply Rle_trans with (sum (seq 0 V) (fun i => - ln s * (if mem [a] i then 0 else p i) + (if mem [a] i then p a * ln (p a / l) else 0))).
      * apply sum_le. intros i Hi. apply in_vocab in Hi. destruct (mem [a] i) eqn:E.
        -- apply mem_true in E. destruct E as [<-|[]]. rewrite Hqa. lra.
        -- destruct (Hge i Hi) as [k1 _]. rewrite E in k1. destruct (proj1 Hp i Hi) as [k|<-]; [|lra].
           assert (ln (p i / q i) <= ln (/ s)); [|rewrite ln_Rinv in * by assumption; nra]. specialize (Hf i Hi k).
           apply ln_nondecr; [now apply Rdiv_lt_0_compat|]. apply Rmult_le_reg_r with (s * q i); [now apply Rmult_lt_0_compat|].
           replace (p i / q i * (s * q i)) with (s * p i) by (field; lra). replace (/ s * (s * q i)) with (q i) by (field; lra). lra.
      * rewrite sum_plus, sum_scal, Hout, sum_indicator, sum_cons, sum_nil; auto using NoDup_seq;
          [|repeat constructor; simpl; tauto|intros i [<-|[]]; now apply in_vocab].
        pose proof (phi_nondecr (2 * p a - 1) g ltac:(lra) ltac:(lra) ltac:(lra)) as Hphi. unfold phi at 1 in Hphi.
        replace (1 + (2 * p a - 1)) with (2 * p a) in Hphi by ring. replace (1 - (2 * p a - 1)) with (2 * (1 - p a)) in Hphi by ring.
        rewrite !ln_mult in Hphi by lra.
        replace (1 + INR m / 2) with ((INR m + 2) / 2) by field. rewrite (ln_div (INR m + 2)) by lra.
        unfold s. rewrite !ln_div by lra. unfold l. rewrite ln_Rinv by lra. lra.
  - eapply Rle_trans; [apply (first_alone V A a m p x); auto|].
    + intros i Hi. split; [auto|]. intros h. specialize (Hmax i (HA i Hi) h). nra.
    + apply Rmult_le_compat_r; [rewrite <- ln_1; apply ln_nondecr; lra|lra].
Qed.

Theorem second_rejected : Statements.M5s_upper_bounds.
Proof.
  intros V a b m p x Hp Ha Hb Hba Hm Hx. pose proof (proj1 Hp a Ha) as Hpa. pose proof (proj1 Hp b Hb) as Hpb.
  assert (Hn : NoDup [a; b]) by (repeat constructor; simpl; intuition congruence).
  destruct (most_likely p (m - 1) (others V [a; b]) (others_NoDup V _)) as (R & h1 & h2 & h3 & _).
  { pose proof (others_length V [a; b] Hn ltac:(intros i [<-|[<-|[]]]; assumption)) as E. cbn [length] in E.
    destruct Hx as [(q & _ & (M & k1 & k2 & k3 & _) & _) _].
    assert (L : (length (a :: M) <= length (seq 0 V))%nat).
    { apply NoDup_incl_length; [constructor; [intros k; apply (k3 a k); now left|assumption]|].
      intros i [<-|Hi]; apply in_vocab; [assumption|now apply k3]. }
    rewrite seq_length in L. cbn [length] in L. lia. }
  assert (HR : forall i, In i R -> (i < V)%nat /\ i <> a /\ i <> b).
  { intros i Hi. apply h3 in Hi. apply in_others in Hi. destruct Hi as [k1 k2]. split; [assumption|]. simpl in k2. intuition congruence. }
  assert (EM : length (b :: R) = m) by (cbn [length]; lia).
  assert (Hm1 : INR (length R) = INR m - 1) by (rewrite h2, minus_INR by lia; reflexivity).
  assert (Hm2 : 1 <= INR m) by (change 1 with (INR 1); now apply le_INR).
  assert (HbR : NoDup (b :: R)) by (constructor; [intros k; now apply (HR b k)|assumption]).
  rewrite <- EM in Hx. split; [intros c|intros Hle].
  - pose proof (lift_bound V [a] (b :: R) [a; b] R p 0 c x Hp Hx) as H. rewrite !sum_cons, !sum_nil, Hm1 in H.
    eapply Rle_trans; [apply H|lra]; auto.
    + split; [lra|]. unfold c, Rdiv. apply Rmult_le_pos; [lra|left; apply Rinv_0_lt_compat; lra].
    + intros i [[<-|[<-|[]]]|Hi]; try assumption. now apply HR.
    + intros i Hi. destruct (HR i Hi) as (k1 & k2 & k3). split; [simpl; intuition congruence|now apply Hp].
    + simpl (INR (length _)). unfold c. field. lra.
    + intros i [<-|[]]. left. now left.
    + intros i [<-|Hi]; [simpl; intuition congruence|]. destruct (HR i Hi) as (k1 & k2 & k3). simpl. intuition congruence.
  - set (c := p a / INR m). assert (Ec : INR m * c = p a) by (unfold c; field; lra).
    pose proof (lift_bound V [a] (b :: R) [a] R p 0 c x Hp Hx) as H. rewrite !sum_cons, !sum_nil, Hm1 in H.
    apply Rle_trans with (p a * ln (p a / c)).
    + eapply Rle_trans; [apply H|lra]; auto.
      * split; [lra|]. apply Rmult_le_reg_l with (INR m); lra.
      * repeat constructor; simpl; tauto.
      * intros i [[<-|[]]|Hi]; [assumption|now apply HR].
      * intros i Hi. destruct (HR i Hi) as (k1 & k2 & k3). split; [simpl; intuition congruence|now apply Hp].
      * simpl (INR (length _)). lra.
      * intros i [<-|Hi].
        -- split; [assumption|]. split; [simpl; intuition congruence|]. right. right. apply Rmult_le_reg_l with (INR m); lra.
        -- destruct (HR i Hi) as (k1 & k2 & k3). simpl. intuition congruence.
    + destruct Hpa as [k|<-]; [|lra]. replace (p a / c) with (INR m) by (unfold c; field; lra). lra.
Qed.

Theorem largest_rows : Statements.M7s_rows.
Proof.
  intros m g Hm Hg. assert (Hm2 : 2 <= INR m) by (change 2 with (INR 2); now apply le_INR). split.
  { intros V HV b. destruct (flat_attained V 1 m g ltac:(lia) (Nat.le_refl 1) ltac:(lia) Hg) as (h1 & h2 & h3 & h4).
    exists (flat_family V g). auto. }
  set (p := fun i : nat => match i with O => (1 + g) / 2 | 1%nat => (1 - g) / 2 | _ => 0 end). exists p.
  assert (E0 : forall j, (1 < j)%nat -> p j = 0) by (intros [|[|j]] Hj; try lia; reflexivity).
  assert (Hz : forall f : nat -> R, (forall i, (1 < i)%nat -> f i = 0) -> sum (seq 2 (m - 1)) f = 0).
  { intros f Hf. rewrite (sum_ext _ _ (fun _ => 0)); [apply sum_zero|]. intros i Hi. apply in_seq in Hi. apply Hf. lia. }
  assert (Es : seq 1 m = 1%nat :: seq 2 (m - 1)) by (destruct m; [lia|]; cbn [seq]; now rewrite Nat.sub_1_r).
  assert (Hp : prob (m + 1) p).
  { split; [intros [|[|i]] _; cbn; lra|]. rewrite Nat.add_comm. cbn [Nat.add seq]. rewrite Es, !sum_cons, Hz by assumption. cbn. lra. }
  split; [assumption|]. split; [reflexivity|]. split; [reflexivity|]. split; [assumption|].
  assert (Hd : disjoint_sets (m + 1) [0%nat] (seq 1 m)).
  { repeat split; [repeat constructor; simpl; tauto|apply seq_NoDup|intros i [<-|[]]; lia|apply in_seq in H; lia|].
    intros [<-|[]]. apply in_seq in H. lia. }
  assert (HM : seq 1 m <> nil) by (rewrite Es; discriminate).
  assert (Htop : top_rejected (m + 1) [0%nat] (seq 1 m) p).
  { intros i j _ Hj Hj0 Hj1. exfalso. apply Hj1, in_seq. assert (j <> 0%nat) by (intros ->; apply Hj0; now left). lia. }
  assert (Hsize : INR (length (seq 2 (m - 1))) = INR m - 1) by (rewrite seq_length, minus_INR by lia; reflexivity).
  assert (Hin : forall i, In i (seq 1 m) -> i = 1%nat \/ (1 < i)%nat) by (intros i Hi; apply in_seq in Hi; lia).
  split; intros Hgm; rewrite <- (seq_length m 1) at 2; apply top_competitors; auto.
  - set (c := (1 + g) / 2 / INR m). assert (Ec : INR m * c = (1 + g) / 2) by (unfold c; field; lra).
    assert (Hc : 0 < c) by (apply Rdiv_lt_0_compat; lra).
    pose proof (pool_least (m + 1) [0%nat] (seq 1 m) [0%nat] (seq 2 (m - 1)) p c Hp Hd HM ltac:(lra)) as H.
    rewrite sum_app, sum_cons, sum_nil, (Hz (fun i => p i * ln (p i / c))) in H by (intros i Hi; rewrite E0 by assumption; lra).
    change (p 0%nat) with ((1 + g) / 2) in H. replace ((1 + g) / 2 / c) with (INR m) in H by (unfold c; field; lra).
    rewrite !Rplus_0_r in H. apply H. unfold pool_of. repeat match goal with |- _ /\ _ => split end.
    + apply Hd.
    + apply seq_NoDup.
    + apply incl_refl.
    + rewrite Es. intros i Hi. now right.
    + intros a [<-|[]]. cbn. nra.
    + intros a Ha Ha'. tauto.
    + intros i Hi. apply in_seq in Hi. rewrite E0 by lia. lra.
    + intros i Hi Hi'. destruct (Hin i Hi) as [->|h]; [|exfalso; apply Hi', in_seq; apply in_seq in Hi; lia]. cbn.
      apply Rmult_le_reg_l with (INR m); [lra|]. rewrite Ec. nra.
    + rewrite sum_app, sum_cons, sum_nil, Hz, app_length, plus_INR, Hsize by assumption. cbn [length]. simpl (INR 1). cbn. lra.
  - set (c := / (INR m + 1)). assert (Hc : 0 < c) by (apply Rinv_0_lt_compat; lra). assert (Ec : (INR m + 1) * c = 1) by (unfold c; field; lra).
    pose proof (pool_least (m + 1) [0%nat] (seq 1 m) [0%nat] (seq 1 m) p c Hp Hd HM ltac:(lra)) as H.
    replace (ln ((INR m + 1) / 2) + phi g) with (sum ([0%nat] ++ seq 1 m) (fun i => p i * ln (p i / c))).
    + apply H. unfold pool_of. repeat match goal with |- _ /\ _ => split end; try apply Hd; try apply incl_refl; try tauto.
      * intros a [<-|[]]. cbn. nra.
      * intros i Hi. destruct (Hin i Hi) as [->|h]; [cbn; nra|rewrite E0 by assumption; lra].
      * rewrite sum_app, Es, !sum_cons, sum_nil, Hz by assumption. rewrite <- Es, app_length, seq_length, plus_INR. cbn [length].
        simpl (INR 1). cbn. lra.
    + rewrite Es, sum_app, !sum_cons, sum_nil, (Hz (fun i => p i * ln (p i / c))) by (intros i Hi; rewrite E0 by assumption; lra).
      rewrite !pln_div by (cbn; lra). cbn. unfold c. rewrite ln_Rinv by lra. unfold phi. rewrite (ln_div (1 + g) 2), (ln_div (INR m + 1) 2) by lra.
      destruct (Req_dec g 1) as [->|h].
      * replace ((1 - 1) / 2) with 0 by field. replace (1 - 1) with 0 by ring. lra.
      * rewrite (ln_div (1 - g) 2) by lra. field.
Qed.

Theorem accepted_whole : Statements.MI_all_accepted.
Proof.
  split; [|split].
  - intros V a b p g t i Hp Ha Hb Hab E Hg Hi. pose proof (pair_mass_le_1 V a b p Hp Ha Hb Hab). pose proof (proj1 Hp i Hi). lra.
  - intros V a B p g Hp Hn HB HV Hgap n.
    assert (Hsum : p a + sum B p <= 1).
    { rewrite <- (proj2 Hp), <- sum_cons. apply sum_sub_le; auto using NoDup_seq; [intros i Hi; now apply in_vocab, HV|].
      intros i Hi. now apply Hp, in_vocab. }
    assert (Hall : forall t, (forall i, In i B -> t <= p i) -> n * t <= sum B p).
    { intros t Ht. unfold n. rewrite <- sum_const. now apply sum_le. }
    destruct B as [|b B]; [easy|]. specialize (Hgap b ltac:(now left)). pose proof (pos_INR (length (b :: B))) as Hn0. fold n in Hn0.
    split.
    + intros alpha Hal Hi. specialize (Hall _ Hi). specialize (Hi b ltac:(now left)).
      assert (0 <= n * alpha) by (apply Rmult_le_pos; lra).
      apply Rle_trans with ((1 - alpha) * p a * (1 + n * alpha)); [apply Rmult_le_compat_r; lra|].
      rewrite Rmult_assoc. rewrite <- (Rmult_1_r (1 - alpha)) at 2. apply Rmult_le_compat_l; lra.
    + intros tau Hi. specialize (Hall _ Hi). specialize (Hi b ltac:(now left)). lra.
  - intros n g Hn b. assert (Hn1 : 1 <= INR n) by (change 1 with (INR 1); now apply le_INR).
    assert (E : (INR n + 1) * b = 1 - g) by (unfold b; field; lra).
    split; [intros alpha H|intros tau H]; apply Rmult_le_reg_l with (INR n + 1); try lra.
    assert (alpha * ((INR n + 1) * b) = alpha * (1 - g)) by now rewrite E. lra.
Qed.

Theorem none_accepted : Statements.nothing_accepted.
Proof.
  intros V m p Hp Hm. split.
  - exists p. split; [assumption|]. split; [|split; [intros i _ h; exact h|apply kl_self]].
    exists (seq 0 m). split; [apply NoDup_seq|]. split; [apply seq_length|]. split; [|intros i a _ []].
    intros i Hi. apply in_vocab in Hi. split; [lia|intros []].
  - intros q Hq _ Hf. now apply KL_nonneg.
Qed.
