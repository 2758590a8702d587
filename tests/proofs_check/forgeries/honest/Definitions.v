From Coq Require Import Arith.

Definition double (n : nat) : nat := n + n.
