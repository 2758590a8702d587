From Coq Require Import Arith.
From Draftcert Require Import Definitions.

Definition grows : Prop := forall n, n <= max n (double n).

Definition doubles : Prop := forall n, double n = n + n.
