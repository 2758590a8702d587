(** * The axioms behind the main statements.

    All statements are put into one tuple: walking the library once per theorem
    would take longer than checking the theorems.  Expected are the axioms of
    Coq's classical real numbers and no other: [ClassicalDedekindReals.sig_forall_dec],
    [ClassicalDedekindReals.sig_not_dec], [Classical_Prop.classic] and
    [FunctionalExtensionality.functional_extensionality_dep]. *)

From Draftcert Require Import Main.

Definition every_statement :=
  (guarantee,
   T1_level_exists,
   T1_projection,
   T2_worst_competitors,
   T2_among_competitors,
   T3_level_is_mean,
   T3_closed_form,
   T4_ceiling,
   T4_attained,
   T5_strict_greedy,
   M1_bounds,
   M1_attained,
   M1_supremum,
   M6_lower_bound,
   M6_sharp,
   M7_lower_bound,
   M7_sharp,
   M3_lower_bounds,
   M3_sharp,
   M2_lower_bounds,
   M2_lower_bounds_accepted_runner_up,
   M4_lower_bound,
   M4_sharp,
   M5_lower_bound,
   T6_order,
   T6_typical_contains_multiplicative,
   T7_two_point,
   B2_guarantee,
   B2_tight,
   B3_projection,
   B3_level_exists,
   B3_strict_greedy,
   B3_total_variation,
   B3_reverse,
   B5_same_greedy_token,
   B5_logits,
   phi_bounds,
   phi_convexity).

Print Assumptions every_statement.
