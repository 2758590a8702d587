(** * The axioms behind every main statement.

    Expected: those of Coq's classical real numbers and no other, namely
    [ClassicalDedekindReals.sig_forall_dec], [ClassicalDedekindReals.sig_not_dec],
    [FunctionalExtensionality.functional_extensionality_dep] and [Classical_Prop.classic].
    A file of its own because walking the whole library once per theorem takes longer
    than checking the theorems. *)

From Draftcert Require Import Main.

Print Assumptions guarantee.
Print Assumptions T1_level_exists.
Print Assumptions T1_projection.
Print Assumptions T2_worst_competitors.
Print Assumptions T2_among_competitors.
Print Assumptions T3_level_is_mean.
Print Assumptions T3_closed_form.
Print Assumptions T4_ceiling.
Print Assumptions T4_attained.
Print Assumptions T5_strict_greedy.
Print Assumptions M1_bounds.
Print Assumptions M1_attained.
Print Assumptions M1_supremum.
Print Assumptions M6_lower_bound.
Print Assumptions M6_sharp.
Print Assumptions M7_lower_bound.
Print Assumptions M7_sharp.
Print Assumptions M3_lower_bounds.
Print Assumptions T6_order.
Print Assumptions T7_two_point.
Print Assumptions B2_guarantee.
Print Assumptions B2_tight.
Print Assumptions phi_bounds.
Print Assumptions phi_convexity.
