(** * Two hand-made certificates in the form that [Bridge] asks a generator for. *)

From Coq Require Import Reals List ZArith.
From Draftcert Require Import Definitions Bridge.
Import ListNotations.
Open Scope R_scope.

(** p = (.5, .45, .05), strict greedy, tree m = 2.  Token 1 is above the pool's mean
    and must not be pooled (pooling all three would claim 0.2429...). *)
Definition tree_p (i : nat) : R := IZR (nth i [50; 45; 5]%Z 0%Z) / IZR 100.

Theorem tree_value : exists C,
  certificate 3%nat [0]%nat 2%nat tree_p C /\
  Rabs (C - 2136810957658890 / 10000000000000000) <= 1 / 100000000000000.
Proof. bridge [50; 45; 5]%Z 100%Z [0]%nat [1; 2]%nat [0]%nat [2]%nat. Qed.

(** p = (.4, .35, .25), additive(0.1), one candidate: both accepted tokens are pooled. *)
Definition additive_p (i : nat) : R := IZR (nth i [40; 35; 25]%Z 0%Z) / IZR 100.

Theorem additive_value : exists C,
  certificate 3%nat [0; 1]%nat 1%nat additive_p C /\
  Rabs (C - 180846620639378 / 10000000000000000) <= 1 / 100000000000000.
Proof. bridge [40; 35; 25]%Z 100%Z [0; 1]%nat [2]%nat [0; 1]%nat [2]%nat. Qed.

Theorem additive_rule : forall i, (i < 3)%nat -> (In i [0; 1]%nat <-> 30 / 100 <= additive_p i).
Proof. bridge_rule [40; 35; 25]%Z 100%Z [0; 1]%nat 30%Z 100%Z. Qed.
