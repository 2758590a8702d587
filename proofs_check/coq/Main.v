(** * Every statement of [Statements], proved. *)

From Coq Require Import Reals List Arith Lra Lia Sorted.
From Draftcert Require Statements.
From Draftcert Require Import Definitions Sums LogFacts Projection Competitors ClosedForm Ceilings.
From Draftcert Require Import StrictGreedy Margins Trees MeanKL Renyi Orders.
From Draftcert Require Import Guarantee Search Equality Candidates Runs Sampling Suprema Vocabulary Largest TreeSuprema.
From Draftcert Require Import JointRange LogLoss Typical Approached Lengths.
Import ListNotations.
Open Scope R_scope.

Theorem guarantee : Statements.guarantee.
Proof.
  intros V A m p x H. split.
  - intros q Hq Hf Hlt. exact (Competitors.guarantee V A m p x q H Hq Hf Hlt).
  - intros e He. destruct H as [(q & h1 & h2 & h3 & h4) _]. exists q.
    split; [assumption|]. split; [assumption|]. split; [now rewrite h4|assumption].
Qed.

Definition T1_level_exists : Statements.T1_level_exists := level_exists.

Theorem T1_projection : Statements.T1_projection.
Proof.
  intros V A M p c Hp Hd HM Hc Hl. exists (levelled A M p c).
  split; [split; [|split]|split; [|split; [|split; [|split; [|split]]]]].
  - intros a Ha. now apply levelled_A.
  - intros i Hi. now apply (levelled_M V).
  - intros j H1 H2. now apply levelled_rest.
  - exact (levelled_prob V A M p c Hp Hd Hc Hl).
  - exact (levelled_beats V A M p c Hd).
  - exact (levelled_finite V A M p c Hp Hd Hc Hl).
  - exact (levelled_value V A M p c Hd).
  - intros q'. exact (levelled_optimal V A M p c Hp Hd Hc Hl q' HM).
  - intros q'. exact (levelled_unique V A M p c Hp Hd Hc Hl q' HM).
Qed.

Definition T2_worst_competitors : Statements.T2_worst_competitors := top_competitors.

Theorem T2_among_competitors : Statements.T2_among_competitors.
Proof.
  intros V A M M' p x x' Hp Hd (d1 & d2 & d3 & d4) Hlen Htop Hx [(q & h1 & h2 & h3 & <-) _].
  apply (top_competitors V A M p x Hp Hd Htop Hx); [exact h1| |exact h3].
  exists M'. now repeat split; try apply d4.
Qed.

Definition T3_level_is_mean : Statements.T3_level_is_mean := level_is_mean.

Theorem T3_closed_form : Statements.T3_closed_form.
Proof.
  intros V A M PA PM p n S c Hp Hd HM Hn h1 h2 h3 h4 h5 h6 h7 h8.
  assert (Hpool : pool_of A M p c PA PM).
  { unfold pool_of. repeat match goal with |- _ /\ _ => split end; auto.
    change (S = n * c). unfold c. field. lra. }
  split; [|split].
  - exact (closed_form V A M PA PM p Hp Hd HM Hn Hpool).
  - exact (closed_form_kl_div V A M PA PM p Hp Hd HM Hn Hpool).
  - intros Hc i Hi. apply kl_div_term_nonneg; [|assumption].
    exact (pool_subset V A M PA PM p c Hp Hd Hpool i Hi).
Qed.

Theorem T4_ceiling : Statements.T4_ceiling.
Proof. intros V A m p p1 x Hp H1 HA Hx. split; [now apply (ceiling V A m p p1 x)|now apply (ceiling_log V A m p x)]. Qed.

Theorem T4_attained : Statements.T4_attained.
Proof. intros V m Hm HV. split; [apply (point_mass_prob V); lia|exact (ceiling_attained V m Hm HV)]. Qed.

Theorem T5_strict_greedy : Statements.T5_strict_greedy.
Proof.
  intros V a b p Hp Ha Hb Hab Hle Htop s g. split.
  - exact (strict_greedy V a b p Hp Ha Hb Hab Hle Htop).
  - apply (two_point_phi (p a) (p b)). split; [now apply Hp|assumption].
Qed.

Theorem M1_bounds : Statements.M1_bounds.
Proof.
  intros V a b p x Hp Ha Hb Hab Hle Htop Hx g s.
  pose proof (strict_greedy V a b p Hp Ha Hb Hab Hle Htop) as H.
  rewrite (certificate_unique _ _ _ _ _ _ Hx H). pose proof (proj1 Hp b Hb).
  split; [|split; [|split]].
  - apply two_point_ge_phi; [lra|]. now apply (pair_mass_le_1 V).
  - exact (strict_upper_finite V a b p Hp Ha Hb Hab Hle Htop).
  - apply two_point_le_g_ln2. lra.
  - intros h1 h2. apply two_point_lt_g_ln2. unfold g in h2. lra.
Qed.

Theorem M1_attained : Statements.M1_attained.
Proof.
  intros V g Hg HV p s.
  assert (Hpf : forall i, p i = flat_family V g i).
  { intros i. unfold p, flat_family, mem. destruct (in_dec Nat.eq_dec i (0%nat :: nil)); reflexivity. }
  destruct (flat_family_certificate V g Hg HV) as (h1 & h2 & h3).
  split; [|split; [|split; [|split]]].
  - now apply (prob_ext V (flat_family V g)).
  - now rewrite !Hpf.
  - intros j Hj. unfold p.
    destruct (in_dec Nat.eq_dec j [0%nat]) as [[h|[]]|h], (in_dec Nat.eq_dec 1%nat [0%nat]) as [[h'|[]]|h']; try congruence.
  - now apply (certificate_ext V [0%nat] 1 (flat_family V g)).
  - intros ->. assert (Hs : s = 1) by (unfold s; simpl; field). rewrite Hs. unfold Rdiv. rewrite Rinv_1, Rmult_1_r. lra.
Qed.

Theorem M6_lower_bound : Statements.M6_lower_bound.
Proof.
  intros V A M a b m p x g Hp (d1 & d2 & d3 & d4) Ha Hlen Htop Hb Hgap Hg Hx.
  exact (M6_lower V A M a b m p x g Hp d1 d3 Ha d2 Hlen d4 Htop Hb Hgap Hg Hx).
Qed.

Theorem M6_sharp : Statements.M6_sharp.
Proof. intros m g Hm Hg. exists (tree_family m (tree_y m g)). exact (M6_attained m g Hm Hg). Qed.

Definition M7_lower_bound : Statements.M7_lower_bound := runner_up_bound.

Theorem M7_sharp : Statements.M7_sharp.
Proof. intros m g Hm Hg. exists (flat_family (m + 1) g). destruct (runner_up_attained m g Hm Hg) as (h1 & _ & h2 & h3). auto. Qed.

Definition T6_order : Statements.T6_order := certificate_mono.
Definition T6_typical_contains_multiplicative : Statements.T6_typical_contains_multiplicative := typical_contains_multiplicative.

Theorem T7_two_point : Statements.T7_two_point.
Proof.
  intros V A a b p x Hp HA HA' Ha Hb HbA Htop Hle Hx s.
  change (s * phi ((p a - p b) / s)) with ((p a + p b) * phi ((p a - p b) / (p a + p b))).
  rewrite <- two_point_phi by (split; [now apply Hp|assumption]). split.
  - exact (two_point_bound V A a b p x Hp HA HA' Ha Hb HbA Htop Hle Hx).
  - exact (two_point_equality V A a b p x Hp HA HA' Ha Hb HbA Htop Hle Hx).
Qed.

Theorem B2_guarantee : Statements.B2_guarantee.
Proof.
  intros N V A m p C ord eps Hp HN Hs Hc Hi q rej Hq Hmean Hn Hr. split.
  - exact (mean_kl_guarantee N V A m p C ord eps Hp Hs Hc Hi q rej Hq Hmean Hn Hr).
  - intros k Hk. exact (mean_kl_at_most N V A m p C ord eps Hp Hs Hc Hi q rej k Hk Hq Hmean Hn Hr).
Qed.

Theorem B2_tight : Statements.B2_tight.
Proof. intros N V A m p C ord eps k h1 h2 h3 h4. exact (mean_kl_tight N V A m p C ord eps h1 h2 h3 h4 k). Qed.

Theorem B3_projection : Statements.B3_projection.
Proof.
  intros V A M p a c Hp Hd HM Ha Ha1 Hc Hl S n. pose proof (renyi_projection V A M p a c Hp Hd HM Ha Ha1 Hc Hl) as H.
  cbv zeta in H. rewrite (levelled_mass V A M p c Hp Hd) in H. exact H.
Qed.

Definition B3_level_exists : Statements.B3_level_exists := renyi_level_exists.
Definition B3_strict_greedy : Statements.B3_strict_greedy := renyi_strict.
Definition B3_total_variation : Statements.B3_total_variation := tv_projection.

Theorem B3_reverse : Statements.B3_reverse.
Proof.
  intros V A M p c Hp Hd HM Hc HA HM' Hl S n. pose proof (reverse_projection V A M p c Hp Hd HM Hc HA HM' Hl) as H.
  cbv zeta in H. rewrite (levelled_mass V A M p c Hp Hd) in H. exact H.
Qed.

Definition B5_same_greedy_token : Statements.B5_same_greedy_token := same_greedy_token.

Theorem B5_logits : Statements.B5_logits.
Proof.
  intros z z' V a Ha. enough (H : forall w, (forall i j, (i < V)%nat -> (j < V)%nat -> (z i - z' i) - (z j - z' j) <= w) ->
    (forall j, (j < V)%nat -> j <> a -> w < z a - z j) -> forall j, (j < V)%nat -> j <> a -> z' j < z' a).
  - split; [exact H|]. intros d Hd. apply H. intros i j Hi Hj. pose proof (Hd i Hi). pose proof (Hd j Hj).
    unfold Rabs in *. destruct Rcase_abs, Rcase_abs; lra.
  - intros w Hw Hg j Hj Hja. specialize (Hw a j Ha Hj). specialize (Hg j Hj Hja). lra.
Qed.

Theorem phi_bounds : Statements.phi_bounds.
Proof. intros x H. split; [now apply phi_ge_half_sq|]. split; [now apply phi_le_chord|now apply phi_le_ln2]. Qed.

Definition phi_convexity : Statements.phi_convexity := phi_convex.
Definition guarantee_of_candidates : Statements.guarantee_of_candidates := Guarantee.guarantee_of_candidates.
Definition certificate_exists : Statements.certificate_exists := Guarantee.certificate_exists.
Definition witness_is_proof : Statements.witness_is_proof := Guarantee.witness_is_proof.
Definition T0_no_cancellation : Statements.T0_no_cancellation := no_cancellation.
Definition T3_search : Statements.T3_search := pool_search.

Theorem T4_equality : Statements.T4_equality.
Proof.
  intros V A m p p1 x Hp HA HA' Hm H1 H2 Hx. split.
  - exact (ceiling_equality V A m p p1 x Hp HA HA' Hm H1 H2 Hx).
  - exact (ceiling_log_equality V A m p x Hp HA HA' Hm Hx).
Qed.

Definition M2_candidates : Statements.M2_candidates := additive_margin_bounds_m.
Definition M2_M3_runner_up_rejected : Statements.M2_M3_runner_up_rejected := runner_up_rejected.
Definition M3_candidates : Statements.M3_candidates := ratio_bounds_m.
Definition M3_candidates_sharp : Statements.M3_candidates_sharp := chord_sharp_m.
Definition M4_candidates : Statements.M4_candidates := top_k_bound_m.
Definition M4_candidates_sharp : Statements.M4_candidates_sharp := top_k_attained_m.
Definition M5_candidates : Statements.M5_candidates := threshold_bound_m.
Definition M5_candidates_sharp : Statements.M5_candidates_sharp := threshold_attained_m.
Definition M5t_candidates : Statements.M5t_candidates := typical_bounds_m.
Definition M6_upper_bound : Statements.M6_upper_bound := M6_upper.
Definition M6_supremum : Statements.M6_supremum := Suprema.M6_supremum.

Theorem T6_inclusions : Statements.T6_inclusions.
Proof.
  intros V p k i Hp Hk Hi Hle. split.
  - intros alpha. exact (additive_contains_multiplicative V p k i alpha Hp Hk Hi Hle).
  - intros tau Ht H. split.
    + exact (additive_contains_absolute V p k i tau Hp Hk Hi Hle Ht H).
    + exact (multiplicative_contains_absolute V p k i tau Hp Hk Hi Hle Ht H).
Qed.

Theorem B1_step : Statements.B1_step.
Proof.
  intros V A m p x q T eps HA Hx Hq Hf Hle Hlt HT.
  destruct (Guarantee.guarantee_of_candidates V A m p x HA Hx) as [H _]. apply (H q T Hq Hf); [lra|assumption].
Qed.

Definition B1_run_lengths : Statements.B1_run_lengths := run_length.
Definition B2_inverse : Statements.B2_inverse := mean_kl_inverse.
Definition B2c_lorenz_bound : Statements.B2c_lorenz_bound := lorenz_bound.
Definition B3r_at_zero : Statements.B3r_at_zero := reverse_at_zero.
Definition B4_multipliers : Statements.B4_multipliers := multipliers_bound.
Definition B4_lumped : Statements.B4_lumped := lumped.
Definition M3v_candidates : Statements.M3v_candidates := ratio_bound_in_vocabulary.
Definition M5v_candidates : Statements.M5v_candidates := threshold_bound_in_vocabulary.
Definition M3pv_candidates : Statements.M3pv_candidates := first_token_in_vocabulary.
Definition crowded_rows : Statements.crowded_rows := Vocabulary.crowded_rows.
Definition M3p_sharp : Statements.M3p_sharp := Vocabulary.M3p_sharp.
Definition B3i_infinite_order : Statements.B3i_infinite_order := infinite_order.
Definition S1_acceptance : Statements.S1_acceptance := Sampling.S1_acceptance.
Definition S2_least_acceptance : Statements.S2_least_acceptance := Sampling.S2_least_acceptance.
Definition S2_sharp : Statements.S2_sharp := Sampling.S2_sharp.
Definition S2_coins : Statements.S2_coins := Sampling.S2_coins.
Definition S3_mean : Statements.S3_mean := Sampling.S3_mean.
Definition first_alone : Statements.first_alone := Largest.first_alone.
Definition MS_upper_bounds : Statements.MS_upper_bounds := two_accepted.
Definition M5s_upper_bounds : Statements.M5s_upper_bounds := second_rejected.
Definition M5s_no_more : Statements.M5s_no_more := threshold_no_more.
Definition M5s_approached : Statements.M5s_approached := threshold_approached.
Definition M7s_rows : Statements.M7s_rows := largest_rows.
Definition M7s_upper_bounds : Statements.M7s_upper_bounds := tree_no_more.
Definition B2c_attained : Statements.B2c_attained := lorenz_attained.
Definition B4_upper : Statements.B4_upper := lift_bound.
Definition MI_all_accepted : Statements.MI_all_accepted := accepted_whole.
Definition M3p_supremum : Statements.M3p_supremum := alone_supremum.
Definition S5_block_verification : Statements.S5_block_verification := Sampling.S5_block_verification.
Definition S7_nobody_accepts_more : Statements.S7_nobody_accepts_more := Sampling.S7_nobody_accepts_more.
Definition S4_joint_range : Statements.S4_joint_range := joint_range.
Definition S6_log_loss : Statements.S6_log_loss := log_loss.
Definition S6_sharp : Statements.S6_sharp := log_loss_sharp.
Definition S6_along_a_text : Statements.S6_along_a_text := log_loss_along_a_text.
Definition nothing_accepted : Statements.nothing_accepted := none_accepted.
Definition M5t_candidates_sharp : Statements.M5t_candidates_sharp := typical_attained_m.
Definition M5t_never_whole : Statements.M5t_never_whole := typical_never_whole.
Definition M6_convexity : Statements.M6_convexity := certificate_convex.
Definition T6_rank : Statements.T6_rank := rank_of_threshold.
Definition T6_entropy_power : Statements.T6_entropy_power := entropy_power.
Definition B4_entropy : Statements.B4_entropy := entropy_of_unlisted.
Definition S2r_convexity : Statements.S2r_convexity := coins_convex.
Definition S5_recursive_rejection : Statements.S5_recursive_rejection := recursive_rejection.
Definition S7_level : Statements.S7_level := level_accepts.
Definition crowded_rows_approached : Statements.crowded_rows_approached := Approached.crowded_rows_approached.
Definition M5_approached : Statements.M5_approached := threshold_infimum_approached.
Definition M5t_uniform : Statements.M5t_uniform := typical_uniform.
Definition M5t_supremum : Statements.M5t_supremum := typical_supremum.
Definition S2_one_pair : Statements.S2_one_pair := Sampling.S2_one_pair.
Definition S2r_two_masses : Statements.S2r_two_masses := two_masses.
Definition S3_attained : Statements.S3_attained := Sampling.S3_attained.
Definition S4_jensen : Statements.S4_jensen := jensen_range.
Definition S5_expected_length : Statements.S5_expected_length := expected_length.
Definition S7_entropy : Statements.S7_entropy := entropy_of_output.
Definition S7_full_tree : Statements.S7_full_tree := full_tree.
Definition B3_limit : Statements.B3_limit := renyi_limit.
Definition B4_one_unlisted : Statements.B4_one_unlisted := one_unlisted.
Definition B4_entropy_attained : Statements.B4_entropy_attained := entropy_of_unlisted_attained.
Definition M5t_from_a_margin_on : Statements.M5t_from_a_margin_on := typical_from_a_margin_on.
Definition B2c_lorenz_curve : Statements.B2c_lorenz_curve := lorenz_curve.
Definition M3p_approached : Statements.M3p_approached := first_token_approached.
Definition M3p_one_candidate : Statements.M3p_one_candidate := second_always_rejected.
Definition MS_attained : Statements.MS_attained := spike.
