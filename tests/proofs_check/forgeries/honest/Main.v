From Draftcert Require Statements.
From Draftcert Require Import Definitions Facts.

Theorem grows : Statements.grows.
Proof. exact le_max_double. Qed.

Theorem doubles : Statements.doubles.
Proof.
  intros n.
  - reflexivity.
Qed.
