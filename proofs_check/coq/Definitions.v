(** * The objects of the theory, stated once.

    Vectors over a vocabulary of [V] tokens are functions [nat -> R] of which
    only the values at [0 .. V-1] matter; token sets are lists of indices.

    Two conventions of Coq's reals matter for a reader:
    - [ln x = 0] for [x <= 0], and [x / 0 = 0].  In [p * ln (p / q)] neither is
      reached where [0 < p] and [0 < q]; where [p = 0] the product is [0], which
      is the convention [0 ln 0 = 0];
    - a real number cannot be [+inf], so an infinite KL(p||q), which happens
      exactly where [q i = 0 < p i] for some token, is the failure of
      [KL_finite].  A lower bound on KL is therefore claimed for the [q] with
      [KL_finite] (for the others it holds trivially), while an attained value
      always comes with a proof of [KL_finite]. *)

From Coq Require Import Reals List Arith.
Open Scope R_scope.

Definition sum (l : list nat) (f : nat -> R) : R := fold_right Rplus 0 (map f l).

Definition prob (V : nat) (p : nat -> R) : Prop :=
  (forall i, (i < V)%nat -> 0 <= p i) /\ sum (seq 0 V) p = 1.

Definition KL (V : nat) (p q : nat -> R) : R :=
  sum (seq 0 V) (fun i => p i * ln (p i / q i)).

Definition KL_finite (V : nat) (p q : nat -> R) : Prop :=
  forall i, (i < V)%nat -> 0 < p i -> 0 < q i.

(** [A] and [M] are disjoint sets of tokens (no repetitions). *)
Definition disjoint_sets (V : nat) (A M : list nat) : Prop :=
  NoDup A /\ NoDup M /\ (forall a, In a A -> (a < V)%nat) /\
  (forall i, In i M -> (i < V)%nat /\ ~ In i A).

(** Every competitor in [M] is at least as likely under [q] as every accepted
    token in [A]: ties of the drafter count as rejections. *)
Definition beats (A M : list nat) (q : nat -> R) : Prop :=
  forall i a, In i M -> In a A -> q a <= q i.

(** [x] is the least KL(p||q) over the distributions [q] for which the given
    competitors [M] beat [A]; the minimum is attained. *)
Definition least (V : nat) (A M : list nat) (p : nat -> R) (x : R) : Prop :=
  (exists q, prob V q /\ beats A M q /\ KL_finite V p q /\ KL V p q = x) /\
  (forall q, prob V q -> beats A M q -> KL_finite V p q -> x <= KL V p q).

(** The rejection region for [m] candidates: SOME [m] rejected tokens beat [A]. *)
Definition rejects (V : nat) (A : list nat) (m : nat) (q : nat -> R) : Prop :=
  exists M, NoDup M /\ length M = m /\
    (forall i, In i M -> (i < V)%nat /\ ~ In i A) /\ beats A M q.

(** [x] is the certificate C(p): least KL(p||q) over the rejection region. *)
Definition certificate (V : nat) (A : list nat) (m : nat) (p : nat -> R) (x : R) : Prop :=
  (exists q, prob V q /\ rejects V A m q /\ KL_finite V p q /\ KL V p q = x) /\
  (forall q, prob V q -> rejects V A m q -> KL_finite V p q -> x <= KL V p q).

(** [T] is one choice of the [m] most likely tokens of [q]: where tokens tie, there are several. *)
Definition proposes (V m : nat) (q : nat -> R) (T : list nat) : Prop :=
  NoDup T /\ length T = m /\ (forall i, In i T -> (i < V)%nat) /\
  (forall i j, In i T -> (j < V)%nat -> ~ In j T -> q j <= q i).

(** [M] holds [m] of the most likely rejected tokens. *)
Definition top_rejected (V : nat) (A M : list nat) (p : nat -> R) : Prop :=
  forall i j, In i M -> (j < V)%nat -> ~ In j A -> ~ In j M -> p j <= p i.

(** The level equation and the projection at level [c]. *)
Definition level_eq (A M : list nat) (p : nat -> R) (c : R) : Prop :=
  sum A (fun a => Rmax 0 (p a - c)) = sum M (fun i => Rmax 0 (c - p i)).

Definition mem (l : list nat) (i : nat) : bool := if in_dec Nat.eq_dec i l then true else false.

Definition levelled (A M : list nat) (p : nat -> R) (c : R) (i : nat) : R :=
  if mem A i then Rmin (p i) c else if mem M i then Rmax (p i) c else p i.

(** A pool [PA ++ PM] whose mean [c] separates it from the other tokens of [A] and [M].
    Tokens exactly at the level may be pooled or not. *)
Definition pool_of (A M : list nat) (p : nat -> R) (c : R) (PA PM : list nat) : Prop :=
  NoDup PA /\ NoDup PM /\ incl PA A /\ incl PM M /\
  (forall a, In a PA -> c <= p a) /\ (forall a, In a A -> ~ In a PA -> p a <= c) /\
  (forall i, In i PM -> p i <= c) /\ (forall i, In i M -> ~ In i PM -> c <= p i) /\
  sum (PA ++ PM) p = INR (length (PA ++ PM)) * c.

(** The pool, grown from its two ends: of [A], in descending order, and [M], in ascending order, the first token that
    lies on the wrong side of the pool's mean joins it, as long as there is one. *)
Definition mean (p : nat -> R) (l : list nat) : R := sum l p / INR (length l).

Definition grow (p : nat -> R) : nat -> list nat -> list nat -> list nat -> list nat -> list nat * list nat :=
  fix grow steps A M PA PM :=
    match steps with
    | O => (PA, PM)
    | S rest =>
        let c := mean p (PA ++ PM) in
        let above := match A with a :: _ => if Rlt_dec c (p a) then true else false | nil => false end in
        let below := match M with i :: _ => if Rlt_dec (p i) c then true else false | nil => false end in
        if above then grow rest (tl A) M (hd 0%nat A :: PA) PM
        else if below then grow rest A (tl M) PA (hd 0%nat M :: PM)
        else (PA, PM)
    end.

(** By how much multipliers [l] of accepted tokens and competitors say that a target exceeds a draft. *)
Definition factor (A M : list nat) (l : nat -> R) (i : nat) : R :=
  if mem A i then 1 + l i else if mem M i then 1 - l i else 1.

(** The tokens that the level moves. *)
Definition moved (A M : list nat) (p : nat -> R) (c : R) : list nat :=
  filter (fun a => if Rlt_dec c (p a) then true else false) A ++
  filter (fun i => if Rlt_dec (p i) c then true else false) M.

(** The function of Bennett's inequality. *)
Definition bennett (x : R) : R := (1 + x) * ln (1 + x) - x.

Definition phi (x : R) : R := ((1 + x) * ln (1 + x) + (1 - x) * ln (1 - x)) / 2.

(** The certificate of one accepted token at [x] against [m] competitors at [y]. *)
Definition one_ahead (m : nat) (x y : R) : R :=
  let c := (x + INR m * y) / (INR m + 1) in x * ln (x / c) + INR m * (y * ln (y / c)).

(** The certificate of one accepted token at [x] and [n] at [y] against [m] competitors at [z], where all are levelled. *)
Definition all_levelled (n m : nat) (x y z : R) : R :=
  let V := INR n + INR m + 1 in x * ln (V * x) + INR n * (y * ln (V * y)) + INR m * (z * ln (V * z)).

(** The least certificates of [m] candidates for a gap [g]: to the [m]-th competitor, and to the runner-up. *)
Definition tree_y (m : nat) (g : R) : R :=
  (g * (INR m - 1) + sqrt (g * g * ((INR m - 1) * (INR m - 1)) + 4 * (1 - g * g))) / (2 * (1 - g)).

Definition tree_gap_value (m : nat) (g : R) : R :=
  let y := tree_y m g in ln y * g - ln ((INR m - 1 + (y + / y)) / (INR m + 1)).

Definition runner_up_value (m : nat) (g : R) : R :=
  ((1 + INR m * g) * ln (1 + INR m * g) + INR m * (1 - g) * ln (1 - g)) / (INR m + 1).

(** The lengths of the runs of [true] in a list, the first of which continues one of [n]. *)
Definition runs : nat -> list bool -> list nat :=
  fix runs n steps :=
    match steps with
    | nil => n :: nil
    | true :: rest => runs (S n) rest
    | false :: rest => n :: runs 0%nat rest
    end.

(** ** Sampling: a token drawn from [q] is accepted with probability [min 1 (p / (l q))], [l] the lenience *)

Definition acceptance (V : nat) (l : R) (p q : nat -> R) : R := sum (seq 0 V) (fun i => Rmin (q i) (p i / l)).

(** What is kept of [n] tokens drafted after the text [s], in expectation: [step] makes of what is kept so far, at first
    [P], and the ratio of target and draft what is kept with one more. *)
Definition kept (step : R -> R -> R) (V : nat) (p q : list nat -> nat -> R) :=
  fix kept (n : nat) (P : R) (s : list nat) : R :=
    match n with
    | O => P
    | S rest => sum (seq 0 V) (fun x => q s x * kept rest (step P (p s x / q s x)) (x :: s))
    end.

(** The sum of [f] over the nodes of a tree of limited depth, each with the probability that a text goes through it;
    nodes are texts, their last tokens first, and those of which a beginning is no node do not count. *)
Definition passed (V : nat) (p : list nat -> nat -> R) (node : list nat -> bool) (f : list nat -> R) :=
  fix passed (depth : nat) (s : list nat) : R :=
    match depth with
    | O => 0
    | S rest => if node s then f s + sum (seq 0 V) (fun x => p s x * passed rest (x :: s)) else 0
    end.

(** ** Other divergences *)

(** Total variation. *)
Definition tv (V : nat) (p q : nat -> R) : R := sum (seq 0 V) (fun i => Rabs (p i - q i)) / 2.

(** Jensen-Shannon. *)
Definition jensen_shannon (V : nat) (p q : nat -> R) : R :=
  let m := fun i => (p i + q i) / 2 in (KL V p m + KL V q m) / 2.

(** [x^a] with [0^a = 0]; Coq's [Rpower 0 a] is not 0. *)
Definition pw (x a : R) : R := if Rlt_dec 0 x then Rpower x a else 0.

Definition renyi_sum (V : nat) (a : R) (p q : nat -> R) : R :=
  sum (seq 0 V) (fun i => pw (p i) a * pw (q i) (1 - a)).

(** The Renyi divergence of order [a > 0], [a <> 1].  It is infinite where [1 < a] and
    [KL_finite V p q] fails, and where [a < 1] and the sum is 0. *)
Definition renyi (V : nat) (a : R) (p q : nat -> R) : R := ln (renyi_sum V a p q) / (a - 1).

(** [v] is the least of it over the distributions for which [M] beats [A], and it is attained. *)
Definition least_renyi (V : nat) (A M : list nat) (a : R) (p : nat -> R) (v : R) : Prop :=
  (exists q, prob V q /\ beats A M q /\ KL_finite V p q /\ 0 < renyi_sum V a p q /\ renyi V a p q = v) /\
  (forall q, prob V q -> beats A M q -> (1 < a -> KL_finite V p q) -> (a < 1 -> 0 < renyi_sum V a p q) ->
     v <= renyi V a p q).
