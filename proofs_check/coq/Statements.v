(** * The statements, each a proposition by itself.

    They use the objects of [Definitions] and Coq's standard library and nothing else, so no proof file can change what
    they mean.  [Main] proves each under the same name; the audit compiles this file and [Definitions] before any other,
    and hashes every statement, with all definitions it uses, in the form to which Coq has elaborated it. *)

From Coq Require Import Reals List Arith Sorted.
From Draftcert Require Import Definitions.
Import ListNotations.
Open Scope R_scope.

(** ** The certificate as a guarantee, and its exactness *)

Definition guarantee : Prop := forall V A m p x,
  certificate V A m p x ->
  (forall q, prob V q -> KL_finite V p q -> KL V p q < x -> ~ rejects V A m q) /\
  (forall e, x < e -> exists q, prob V q /\ KL_finite V p q /\ KL V p q < e /\ rejects V A m q).

(** ** T1 *)

Definition T1_level_exists : Prop := forall V (A M : list nat) p,
  prob V p -> disjoint_sets V A M -> exists c, 0 <= c <= 1 /\ level_eq A M p c.

(** At every level that solves the equation: the projection is feasible, its KL is
    finite and has the stated value, no feasible q does better, and no other q does as well. *)
Definition T1_projection : Prop := forall V (A M : list nat) p c,
  prob V p -> disjoint_sets V A M -> M <> nil -> 0 <= c -> level_eq A M p c ->
  exists q,
    ((forall a, In a A -> q a = Rmin (p a) c) /\
     (forall i, In i M -> q i = Rmax (p i) c) /\
     (forall j, ~ In j A -> ~ In j M -> q j = p j)) /\
    prob V q /\ beats A M q /\ KL_finite V p q /\
    KL V p q = sum (moved A M p c) (fun i => p i * ln (p i / c)) /\
    (forall q', prob V q' -> beats A M q' -> KL_finite V p q' -> KL V p q <= KL V p q') /\
    (forall q', prob V q' -> beats A M q' -> KL_finite V p q' -> KL V p q' <= KL V p q ->
       forall i, (i < V)%nat -> q' i = q i).

(** ** T2: the [m] most likely rejected tokens decide the whole region. *)
Definition T2_worst_competitors : Prop := forall V (A M : list nat) p x,
  prob V p -> disjoint_sets V A M -> top_rejected V A M p -> least V A M p x -> certificate V A (length M) p x.

(** ... so for any other [m] competitors the least value is no smaller. *)
Definition T2_among_competitors : Prop := forall V (A M M' : list nat) p x x',
  prob V p -> disjoint_sets V A M -> disjoint_sets V A M' -> length M' = length M -> top_rejected V A M p ->
  least V A M p x -> least V A M' p x' -> x <= x'.

(** ** T3 *)
Definition T3_level_is_mean : Prop := forall (A M : list nat) p c,
  level_eq A M p c -> sum (moved A M p c) p = INR (length (moved A M p c)) * c.

(** A pool whose mean separates it from the rest gives the value, in both forms. *)
Definition T3_closed_form : Prop := forall V (A M PA PM : list nat) p,
  let n := INR (length (PA ++ PM)) in
  let S := sum (PA ++ PM) p in
  let c := S / n in
  prob V p -> disjoint_sets V A M -> M <> nil -> 0 < n ->
  NoDup PA -> NoDup PM -> incl PA A -> incl PM M ->
  (forall a, In a PA -> c <= p a) -> (forall a, In a A -> ~ In a PA -> p a <= c) ->
  (forall i, In i PM -> p i <= c) -> (forall i, In i M -> ~ In i PM -> c <= p i) ->
  least V A M p (sum (PA ++ PM) (fun i => p i * ln (p i)) - S * ln (S / n)) /\
  least V A M p (sum (PA ++ PM) (fun i => p i * ln (p i / c) - p i + c)) /\
  (0 < c -> forall i, In i (PA ++ PM) -> 0 <= p i * ln (p i / c) - p i + c).

(** ** T4 *)
Definition T4_ceiling : Prop := forall V A m p p1 x,
  prob V p -> (forall i, (i < V)%nat -> p i <= p1) -> (forall a, In a A -> (a < V)%nat) ->
  certificate V A m p x -> x <= ln (1 + INR m * p1) /\ x <= ln (INR m + 1).

Definition T4_attained : Prop := forall V m,
  (1 <= m)%nat -> (m + 1 <= V)%nat ->
  prob V (fun i => if Nat.eq_dec i 0 then 1 else 0) /\
  certificate V [0%nat] m (fun i => if Nat.eq_dec i 0 then 1 else 0) (ln (INR m + 1)).

(** ** T5 and M1: strict greedy; [a] is a most likely token, [b] a most likely other one. *)
Definition T5_strict_greedy : Prop := forall V a b p,
  prob V p -> (a < V)%nat -> (b < V)%nat -> a <> b -> p b <= p a ->
  (forall j, (j < V)%nat -> j <> a -> p j <= p b) ->
  let s := p a + p b in let g := p a - p b in
  certificate V [a] 1%nat p (p a * ln (2 * p a / s) + p b * ln (2 * p b / s)) /\
  p a * ln (2 * p a / s) + p b * ln (2 * p b / s) = s * phi (g / s).

Definition M1_bounds : Prop := forall V a b p x,
  prob V p -> (a < V)%nat -> (b < V)%nat -> a <> b -> p b <= p a ->
  (forall j, (j < V)%nat -> j <> a -> p j <= p b) -> certificate V [a] 1%nat p x ->
  let g := p a - p b in let s := g + 2 * (1 - g) / INR V in
  phi g <= x /\ x <= s * phi (g / s) /\ x <= g * ln 2 /\ (0 < p b -> 0 < g -> x < g * ln 2).

(** The bound for [V] tokens is attained for every margin; at [V = 2] it is phi g,
    the infimum; and it tends to [g ln 2], the supremum over all [V]. *)
Definition M1_attained : Prop := forall V g,
  0 <= g <= 1 -> (2 <= V)%nat ->
  let p := fun i => (1 - g) / INR V + (if in_dec Nat.eq_dec i [0%nat] then g else 0) in
  let s := g + 2 * (1 - g) / INR V in
  prob V p /\ p 0%nat - p 1%nat = g /\ (forall j, j <> 0%nat -> p j = p 1%nat) /\
  certificate V [0%nat] 1%nat p (s * phi (g / s)) /\
  (V = 2%nat -> s * phi (g / s) = phi g).

Definition M1_supremum : Prop := forall g e,
  0 <= g < 1 -> 0 < e -> exists V, (2 <= V)%nat /\ forall N, (V <= N)%nat ->
  let s := g + 2 * (1 - g) / INR N in g * ln 2 - e < s * phi (g / s).

(** ** M6: the gap to one of the [m] most likely rejected tokens (the [m]-th one, for the sharpest bound) *)

Definition M6_lower_bound : Prop := forall V (A M : list nat) a b m p x g,
  prob V p -> disjoint_sets V A M -> In a A -> length M = m -> top_rejected V A M p -> In b M ->
  p a - p b = g -> 0 <= g < 1 -> certificate V A m p x -> tree_gap_value m g <= x.

Definition M6_sharp : Prop := forall m g,
  (1 <= m)%nat -> 0 <= g < 1 ->
  exists p, prob (m + 1)%nat p /\ p 0%nat - p m = g /\ (forall i, p m <= p i <= p 0%nat) /\
  certificate (m + 1)%nat [0%nat] m p (tree_gap_value m g).

(** ** M7: the gap to the runner-up *)

Definition M7_lower_bound : Prop := forall V A a m p x g,
  prob V p -> In a A -> (a < V)%nat -> 0 <= g < 1 -> (1 <= m)%nat ->
  (forall j, (j < V)%nat -> ~ In j A -> p j <= p a - g) -> certificate V A m p x -> runner_up_value m g <= x.

Definition M7_sharp : Prop := forall m g,
  (1 <= m)%nat -> 0 <= g < 1 ->
  exists p, prob (m + 1)%nat p /\ (forall j, j <> 0%nat -> p j = p 0%nat - g) /\
  certificate (m + 1)%nat [0%nat] m p (runner_up_value m g).

(** ** M3: multiplicative(alpha) *)
Definition M3_lower_bounds : Prop := forall V A a p alpha g x,
  let g0 := (1 - alpha) / (1 + alpha) in
  prob V p -> NoDup A -> (a < V)%nat ->
  (forall i, In i A <-> (i < V)%nat /\ alpha * p a <= p i) ->
  0 < alpha < 1 -> 0 <= g -> (forall j, (j < V)%nat -> j <> a -> p j <= p a - g) ->
  certificate V A 1%nat p x ->
  phi g <= x /\ g / g0 * phi g0 <= x /\ (1 + alpha) * p a * phi g0 <= x.

(** The chord is the infimum below [g0]: targets of gap [g] come as close to it as wanted. *)
Definition M3_sharp : Prop := forall alpha g e,
  let g0 := (1 - alpha) / (1 + alpha) in
  0 < alpha < 1 -> 0 < g < g0 -> 0 < e ->
  exists V p, prob V p /\ (2 <= V)%nat /\ p 1%nat = p 0%nat - g /\
    (forall j, (j < V)%nat -> j <> 0%nat -> p j <= p 1%nat) /\
    (forall i, In i [0%nat] <-> (i < V)%nat /\ alpha * p 0%nat <= p i) /\
    exists x, certificate V [0%nat] 1%nat p x /\ x < g / g0 * phi g0 + e.

(** ** M2: additive(t); [g] is at most the gap to every other token *)
Definition M2_lower_bounds : Prop := forall V A a p t g x,
  prob V p -> NoDup A -> (a < V)%nat -> (forall i, In i A <-> (i < V)%nat /\ p a - t <= p i) ->
  0 <= g -> 0 <= t <= 1 -> (forall j, (j < V)%nat -> j <> a -> p j <= p a - g) ->
  certificate V A 1%nat p x -> phi t <= x /\ phi g <= x.

(** ... where the runner-up [b] is accepted, at the gap [g <= t] *)
Definition M2_lower_bounds_accepted_runner_up : Prop := forall V A a b p t g x,
  prob V p -> NoDup A -> (a < V)%nat -> (forall i, In i A <-> (i < V)%nat /\ p a - t <= p i) ->
  (b < V)%nat -> b <> a -> p b = p a - g -> 0 <= g <= t -> 2 * t - 1 < g -> certificate V A 1%nat p x ->
  let u := (1 + g + t) / 3 in let s := 2 * u - t in
  s * phi (t / s) <= x /\
  (g <= t / 2 -> ln 3 + (u * ln u + (u - g) * ln (u - g) + (u - t) * ln (u - t)) <= x).

(** ** M4: the [k] accepted tokens are at least as likely as every rejected one *)
Definition M4_lower_bound : Prop := forall V A a p g k x,
  prob V p -> NoDup A -> (forall i, In i A -> (i < V)%nat) -> In a A -> 0 <= g <= 1 -> length A = k ->
  (forall i j, In i A -> (j < V)%nat -> ~ In j A -> p j <= p i) ->
  (forall j, (j < V)%nat -> j <> a -> p j <= p a - g) -> certificate V A 1%nat p x ->
  let s := (2 + (INR k - 1) * g) / (INR k + 1) in s * phi (g / s) <= x.

Definition M4_sharp : Prop := forall k g,
  (1 <= k)%nat -> 0 <= g <= 1 ->
  let s := (2 + (INR k - 1) * g) / (INR k + 1) in
  exists p, prob (k + 1)%nat p /\ (forall j, j <> 0%nat -> p j = p 0%nat - g) /\
  certificate (k + 1)%nat (seq 0 k) 1%nat p (s * phi (g / s)).

(** ** M5: no rejected token is above [tau] *)
Definition M5_lower_bound : Prop := forall V A a p g tau x,
  prob V p -> NoDup A -> (forall i, In i A -> (i < V)%nat) -> In a A -> 0 <= g ->
  (forall j, (j < V)%nat -> j <> a -> p j <= p a - g) ->
  (forall j, (j < V)%nat -> ~ In j A -> p j <= tau) -> 0 < g + 2 * tau -> certificate V A 1%nat p x ->
  let s := Rmin 1 (g + 2 * tau) in s * phi (g / s) <= x.

(** ** T6 *)
Definition T6_order : Prop := forall V A A' m m' p x x',
  incl A A' -> (m <= m')%nat -> certificate V A m p x -> certificate V A' m' p x' -> x <= x'.

(** The typical rule (with the exact entropy, [0 < delta < 1]) accepts whatever
    multiplicative(delta) accepts, hence always the argmax. *)
Definition T6_typical_contains_multiplicative : Prop := forall V p p1 i eps delta,
  prob V p -> (forall j, (j < V)%nat -> p j <= p1) -> 0 < p1 -> (i < V)%nat -> 0 < delta < 1 ->
  delta * p1 <= p i -> Rmin eps (delta * exp (sum (seq 0 V) (fun j => p j * ln (p j)))) < p i.

(** ** T7: [a] accepted, [b] the most likely rejected token *)
Definition T7_two_point : Prop := forall V A a b p x,
  prob V p -> NoDup A -> (forall i, In i A -> (i < V)%nat) -> In a A ->
  (b < V)%nat -> ~ In b A -> (forall j, (j < V)%nat -> ~ In j A -> p j <= p b) -> p b <= p a ->
  certificate V A 1%nat p x ->
  let s := p a + p b in
  s * phi ((p a - p b) / s) <= x /\
  (x = s * phi ((p a - p b) / s) <-> forall i, In i A -> i <> a -> p i <= s / 2).

(** ** B2: the mean-KL guarantee over [N] contexts.

    [ord] lists the contexts with a finite certificate in ascending order of it; in the
    others no drafter can be rejected.  [rej] is any set of contexts in which the drafter
    [q] is rejected: the first [length rej] certificates fit into the budget [N eps], so
    [length rej] is at most the largest [k] whose certificates do. *)
Definition B2_guarantee : Prop := forall N V A m p C (ord : list nat) eps,
  (forall n, (n < N)%nat -> prob (V n) (p n)) ->
  (forall n, In n ord -> (n < N)%nat) ->
  StronglySorted (fun i j : nat => C i <= C j) ord ->
  (forall n, In n ord -> certificate (V n) (A n) (m n) (p n) (C n)) ->
  (forall n, (n < N)%nat -> ~ In n ord -> forall q, prob (V n) q -> ~ rejects (V n) (A n) (m n) q) ->
  forall (q : nat -> nat -> R) (rej : list nat),
  (forall n, (n < N)%nat -> prob (V n) (q n) /\ KL_finite (V n) (p n) (q n)) ->
  sum (seq 0 N) (fun n => KL (V n) (p n) (q n)) <= INR N * eps ->
  NoDup rej -> (forall n, In n rej -> (n < N)%nat /\ rejects (V n) (A n) (m n) (q n)) ->
  ((length rej <= length ord)%nat /\ sum (firstn (length rej) ord) C <= INR N * eps) /\
  (forall k, (forall j, (k < j <= length ord)%nat -> INR N * eps < sum (firstn j ord) C) -> (length rej <= k)%nat).

Definition B2_tight : Prop := forall N V A m p C (ord : list nat) eps k,
  (forall n, (n < N)%nat -> prob (V n) (p n)) ->
  NoDup ord -> (forall n, In n ord -> (n < N)%nat) ->
  (forall n, In n ord -> certificate (V n) (A n) (m n) (p n) (C n)) ->
  (k <= length ord)%nat -> sum (firstn k ord) C <= INR N * eps ->
  exists (q : nat -> nat -> R) (rej : list nat),
    (forall n, (n < N)%nat -> prob (V n) (q n) /\ KL_finite (V n) (p n) (q n)) /\
    sum (seq 0 N) (fun n => KL (V n) (p n) (q n)) <= INR N * eps /\
    NoDup rej /\ length rej = k /\
    (forall n, In n rej -> (n < N)%nat /\ rejects (V n) (A n) (m n) (q n)).

(** ** B3: the Renyi divergence of order [a > 0], [a <> 1] *)

(** [S] is the mass of the [n] tokens that the level moves; the level equation holds for powers. *)
Definition B3_projection : Prop := forall V (A M : list nat) p a c,
  prob V p -> disjoint_sets V A M -> M <> nil -> 0 < a -> a <> 1 -> 0 <= c ->
  sum A (fun i => Rmax 0 (pw (p i) a - pw c a)) = sum M (fun i => Rmax 0 (pw c a - pw (p i) a)) ->
  let S := sum (moved A M p c) p in let n := INR (length (moved A M p c)) in
  least_renyi V A M a p (a / (a - 1) * ln (1 - S + n * c)).

Definition B3_level_exists : Prop := forall V (A M : list nat) p a,
  prob V p -> disjoint_sets V A M -> 0 < a -> exists c, 0 <= c /\
  sum A (fun i => Rmax 0 (pw (p i) a - pw c a)) = sum M (fun i => Rmax 0 (pw c a - pw (p i) a)).

(** Strict greedy: the level is the power mean of the two tokens. *)
Definition B3_strict_greedy : Prop := forall V x y p a,
  prob V p -> (x < V)%nat -> (y < V)%nat -> x <> y -> 0 <= p y <= p x -> 0 < p x -> 0 < a -> a <> 1 ->
  let c := Rpower ((pw (p x) a + pw (p y) a) / 2) (/ a) in
  least_renyi V [x] [y] a p (a / (a - 1) * ln (1 - (p x + p y) + 2 * c)).

(** ** B3: total variation, with T1's own level *)
Definition B3_total_variation : Prop := forall V (A M : list nat) p c,
  prob V p -> disjoint_sets V A M -> M <> nil -> 0 <= c -> level_eq A M p c ->
  let v := sum A (fun a => Rmax 0 (p a - c)) in
  (exists q, prob V q /\ beats A M q /\ tv V p q = v) /\
  (forall q, prob V q -> beats A M q -> v <= tv V p q).

(** ** B3: the reverse divergence KL(q||p); the level equation holds for logarithms.
    Here KL(q||p) is infinite exactly where [KL_finite V q p] fails. *)
Definition B3_reverse : Prop := forall V (A M : list nat) p c,
  prob V p -> disjoint_sets V A M -> M <> nil -> 0 < c ->
  (forall a, In a A -> 0 < p a) -> (forall i, In i M -> 0 < p i) ->
  sum A (fun a => Rmax 0 (ln (p a) - ln c)) = sum M (fun i => Rmax 0 (ln c - ln (p i))) ->
  let S := sum (moved A M p c) p in let n := INR (length (moved A M p c)) in
  (exists q, prob V q /\ beats A M q /\ KL_finite V q p /\ KL V q p = - ln (1 - S + n * c)) /\
  (forall q, prob V q -> beats A M q -> KL_finite V q p -> - ln (1 - S + n * c) <= KL V q p).

(** ** B5: a second evaluation keeps the greedy token: by divergence, and by logits *)
Definition B5_same_greedy_token : Prop := forall V a p p' x,
  certificate V [a] 1%nat p x -> prob V p' -> KL_finite V p p' -> KL V p p' < x ->
  forall j, (j < V)%nat -> j <> a -> p' j < p' a.

Definition B5_logits : Prop := forall (z z' : nat -> R) V a d,
  (a < V)%nat -> (forall j, (j < V)%nat -> Rabs (z j - z' j) <= d) ->
  (forall j, (j < V)%nat -> j <> a -> 2 * d < z a - z j) ->
  forall j, (j < V)%nat -> j <> a -> z' j < z' a.

(** ** phi *)
Definition phi_bounds : Prop := forall x,
  0 <= x <= 1 -> x * x / 2 <= phi x /\ phi x <= x * ln 2 /\ phi x <= ln 2.

Definition phi_convexity : Prop := forall x y t,
  -1 <= x <= 1 -> -1 <= y <= 1 -> 0 <= t <= 1 ->
  phi (t * x + (1 - t) * y) <= t * phi x + (1 - t) * phi y.
