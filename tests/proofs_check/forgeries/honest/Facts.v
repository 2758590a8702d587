From Coq Require Import Arith.
From Draftcert Require Import Definitions.

Section Of_a_number.

Variable n : nat.

(* A proof of one line. *)
Lemma le_max_double : n <= max n (double n).
Proof. apply Nat.le_max_l. Qed.

End Of_a_number.
