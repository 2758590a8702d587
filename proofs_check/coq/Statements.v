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

(** Whatever tokens the drafter proposes as its [m] most likely, however it breaks ties, one of them is accepted; and
    for every larger bound some draft, with some choice among its ties, proposes none that is. *)
Definition guarantee_of_candidates : Prop := forall V A m p x,
  (forall a, In a A -> (a < V)%nat) -> certificate V A m p x ->
  (forall q T, prob V q -> KL_finite V p q -> KL V p q < x -> proposes V m q T -> exists a, In a T /\ In a A) /\
  (forall e, x < e -> exists q T, prob V q /\ KL_finite V p q /\ KL V p q < e /\ proposes V m q T /\
     forall i, In i T -> ~ In i A).

(** There is a certificate if and only if at least [m] tokens are rejected. *)
Definition certificate_exists : Prop := forall V A m p,
  prob V p -> NoDup A -> (forall a, In a A -> (a < V)%nat) -> (1 <= m)%nat ->
  ((exists x, certificate V A m p x) <-> (length A + m <= V)%nat).

(** What a witness file holds: a rejected draft [q], multipliers [l], and for each token the equation that makes the
    bounds from above and from below one number. *)
Definition witness_is_proof : Prop := forall V A M p q l,
  prob V p -> disjoint_sets V A M -> M <> nil -> top_rejected V A M p ->
  prob V q -> beats A M q ->
  (forall a, In a A -> 0 <= l a) -> (forall i, In i M -> 0 <= l i <= 1) -> sum A l = sum M l ->
  (forall i, (i < V)%nat -> q i * factor A M l i = p i) ->
  certificate V A (length M) p (sum (A ++ M) (fun i => p i * ln (factor A M l i))).

(** ** T0: the divergence as a sum without negative terms; and what [d = ln (p/q)] alone determines of it *)
Definition T0_no_cancellation : Prop := forall V p q,
  prob V p -> prob V q -> KL_finite V p q ->
  KL V p q = sum (seq 0 V) (fun i => q i * bennett ((p i - q i) / q i)) /\
  (forall i, (i < V)%nat -> 0 <= q i * bennett ((p i - q i) / q i)) /\
  sum (seq 0 V) (fun i => p i * (ln (p i / q i) + exp (- ln (p i / q i)) - 1)) =
    KL V p q - sum (seq 0 V) (fun i => if Rlt_dec 0 (p i) then 0 else q i).

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

(** Growing the pool from its two ends ends at a pool that its mean separates from the rest, which gives the value;
    and no other pool is separated by another mean. *)
Definition T3_search : Prop := forall V A M a i p,
  prob V p -> disjoint_sets V (a :: A) (i :: M) -> p i < p a ->
  StronglySorted (fun a b => p b <= p a) (a :: A) -> StronglySorted (fun i j => p i <= p j) (i :: M) ->
  let P := grow p (length A + length M) A M [a] [i] in let c := mean p (fst P ++ snd P) in
  pool_of (a :: A) (i :: M) p c (fst P) (snd P) /\
  least V (a :: A) (i :: M) p (sum (fst P ++ snd P) (fun j => p j * ln (p j / c))) /\
  (forall PA PM c', pool_of (a :: A) (i :: M) p c' PA PM -> c' = c).

(** ** T4 *)
Definition T4_ceiling : Prop := forall V A m p p1 x,
  prob V p -> (forall i, (i < V)%nat -> p i <= p1) -> (forall a, In a A -> (a < V)%nat) ->
  certificate V A m p x -> x <= ln (1 + INR m * p1) /\ x <= ln (INR m + 1).

Definition T4_attained : Prop := forall V m,
  (1 <= m)%nat -> (m + 1 <= V)%nat ->
  prob V (fun i => if Nat.eq_dec i 0 then 1 else 0) /\
  certificate V [0%nat] m (fun i => if Nat.eq_dec i 0 then 1 else 0) (ln (INR m + 1)).

(** The first ceiling is attained if and only if the target is uniform on a support that is accepted, the second if and
    only if it is an accepted point mass. *)
Definition T4_equality : Prop := forall V A m p p1 x,
  prob V p -> NoDup A -> (forall a, In a A -> (a < V)%nat) -> (1 <= m)%nat ->
  (forall i, (i < V)%nat -> p i <= p1) -> (exists i, (i < V)%nat /\ p i = p1) -> certificate V A m p x ->
  (x = ln (1 + INR m * p1) <-> forall i, (i < V)%nat -> 0 < p i -> In i A /\ p i = p1) /\
  (x = ln (INR m + 1) <-> forall i, (i < V)%nat -> 0 < p i -> In i A /\ p i = 1).

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
  prob V p -> In a A -> (a < V)%nat -> 0 <= g <= 1 -> (1 <= m)%nat ->
  (forall j, (j < V)%nat -> ~ In j A -> p j <= p a - g) -> certificate V A m p x -> runner_up_value m g <= x.

Definition M7_sharp : Prop := forall m g,
  (1 <= m)%nat -> 0 <= g <= 1 ->
  exists p, prob (m + 1)%nat p /\ (forall j, j <> 0%nat -> p j = p 0%nat - g) /\
  certificate (m + 1)%nat [0%nat] m p (runner_up_value m g).

(** ** M2 to M5 for [m] candidates *)

(** M2 where the runner-up [b] is accepted, at the gap [g] *)
Definition M2_candidates : Prop := forall V A a b m p t g x,
  prob V p -> In a A -> (a < V)%nat -> In b A -> (b < V)%nat -> b <> a -> p b = p a - g -> 0 <= g <= t -> 2 * t - 1 < g ->
  (forall j, (j < V)%nat -> ~ In j A -> p j <= p a - t) -> (1 <= m)%nat -> certificate V A m p x ->
  let u := (1 + g + INR m * t) / (INR m + 2) in
  one_ahead m u (u - t) <= x /\ (g <= INR m * t / (INR m + 1) -> all_levelled 1 m u (u - g) (u - t) <= x).

(** M2 and M3 where the runner-up is rejected: M7's bound, attained *)
Definition M2_M3_runner_up_rejected : Prop := forall m g, (1 <= m)%nat -> 0 <= g <= 1 ->
  exists p, prob (m + 1) p /\ (forall j, j <> 0%nat -> p j = p 0%nat - g) /\
  certificate (m + 1) [0%nat] m p (runner_up_value m g) /\
  (forall t, 0 <= t < g -> forall i, In i [0%nat] <-> (i < m + 1)%nat /\ p 0%nat - t <= p i) /\
  (forall alpha, 0 < alpha <= 1 -> (1 - alpha) / (1 + INR m * alpha) < g ->
     forall i, In i [0%nat] <-> (i < m + 1)%nat /\ alpha * p 0%nat <= p i).

(** M3 from the gap, and M3p from the first token: no rejected token is above [alpha p_a] *)
Definition M3_candidates : Prop := forall V A a m p alpha g x,
  prob V p -> In a A -> (a < V)%nat -> 0 < alpha < 1 -> 0 <= g -> 0 < p a -> (1 <= m)%nat ->
  (forall j, (j < V)%nat -> ~ In j A -> p j <= alpha * p a /\ p j <= p a - g) -> certificate V A m p x ->
  g / (1 - alpha) * one_ahead m 1 alpha <= x /\ p a * one_ahead m 1 alpha <= x.

Definition M3_candidates_sharp : Prop := forall m alpha g e,
  (1 <= m)%nat -> 0 < alpha < 1 -> 0 < g -> g * (1 + INR m * alpha) <= 1 - alpha -> 0 < e ->
  exists V p x, prob V p /\ p 1%nat = p 0%nat - g /\ (forall j, j <> 0%nat -> p j <= p 1%nat) /\
    (forall i, In i [0%nat] <-> (i < V)%nat /\ alpha * p 0%nat <= p i) /\
    certificate V [0%nat] m p x /\ x < g / (1 - alpha) * one_ahead m 1 alpha + e.

Definition M4_candidates : Prop := forall V A a m p g k x,
  prob V p -> NoDup A -> (forall i, In i A -> (i < V)%nat) -> In a A -> 0 <= g <= 1 -> length A = k -> (1 <= m)%nat ->
  (forall i j, In i A -> (j < V)%nat -> ~ In j A -> p j <= p i) ->
  (forall j, (j < V)%nat -> j <> a -> p j <= p a - g) -> certificate V A m p x ->
  let b := (1 - g) / (INR m + INR k) in one_ahead m (g + b) b <= x.

Definition M4_candidates_sharp : Prop := forall m k g, (1 <= m)%nat -> (1 <= k)%nat -> 0 <= g <= 1 ->
  let b := (1 - g) / (INR m + INR k) in
  exists p, prob (k + m) p /\ (forall j, j <> 0%nat -> p j = p 0%nat - g) /\
  certificate (k + m) (seq 0 k) m p (one_ahead m (g + b) b).

Definition M5_candidates : Prop := forall V A a m p g tau x,
  prob V p -> In a A -> (a < V)%nat -> 0 <= g -> 0 < tau -> (1 <= m)%nat ->
  (forall j, (j < V)%nat -> ~ In j A -> p j <= tau /\ p j <= p a - g) -> certificate V A m p x ->
  one_ahead m (g + tau) tau <= x.

(** ... attained with [n] tokens of dust where a token at [tau] itself is rejected *)
Definition M5_candidates_sharp : Prop := forall m n g tau,
  (1 <= m)%nat -> (1 <= n)%nat -> 0 <= g -> 0 < tau ->
  g + (INR m + 1) * tau <= 1 -> 1 <= g + (INR m + 1 + INR n) * tau ->
  exists p, prob (1 + (m + n)) p /\ p 0%nat = g + tau /\ (forall j, j <> 0%nat -> p j <= tau) /\ p 1%nat = tau /\
  certificate (1 + (m + n)) [0%nat] m p (one_ahead m (g + tau) tau).

(** Where nothing is accepted, the target itself is rejected. *)
Definition nothing_accepted : Prop := forall V m p, prob V p -> (m <= V)%nat -> certificate V [] m p 0.

(** M5t: typical acceptance has the bounds of multiplicative(delta) *)
Definition M5t_candidates : Prop := forall V A a m p eps delta g x,
  prob V p -> (a < V)%nat -> (forall j, (j < V)%nat -> p j <= p a) -> 0 < delta < 1 -> 0 <= g -> (1 <= m)%nat ->
  (forall i, In i A <-> (i < V)%nat /\ Rmin eps (delta * exp (sum (seq 0 V) (fun j => p j * ln (p j)))) < p i) ->
  (forall j, (j < V)%nat -> j <> a -> p j <= p a - g) -> certificate V A m p x ->
  g / (1 - delta) * one_ahead m 1 delta <= x /\ p a * one_ahead m 1 delta <= x.

(** ... and M7's, attained, from the margin on at which the competitors of M7's target are rejected *)
Definition M5t_candidates_sharp : Prop := forall m eps delta g, (1 <= m)%nat -> 0 < delta < 1 -> 0 <= g < 1 ->
  let b := (1 - g) / (INR m + 1) in b <= eps -> (g + b) * ln (b / (g + b)) <= ln delta ->
  exists p, prob (m + 1) p /\ (forall j, j <> 0%nat -> p j = p 0%nat - g) /\
  (forall i, In i [0%nat] <->
     (i < m + 1)%nat /\ Rmin eps (delta * exp (sum (seq 0 (m + 1)) (fun j => p j * ln (p j)))) < p i) /\
  certificate (m + 1) [0%nat] m p (runner_up_value m g).

(** ... which on all larger margins they are; for one candidate, from [1 - 2 min(eps, nu)] on *)
Definition M5t_from_a_margin_on : Prop :=
  (forall m g g', (1 <= m)%nat -> 0 <= g < g' -> g' < 1 ->
     let b x := (1 - x) / (INR m + 1) in let relative x := (x + b x) * ln (b x / (x + b x)) in
     b g' < b g /\ relative g' < relative g) /\
  (forall delta, 0 < delta <= 1 -> exists nu, 0 < nu <= 1 / 2 /\ (1 - nu) * ln (nu / (1 - nu)) = ln delta /\
     forall eps g, 0 <= g < 1 -> let b := (1 - g) / 2 in
       (1 - 2 * Rmin eps nu <= g <-> b <= eps /\ (g + b) * ln (b / (g + b)) <= ln delta)).

(** At [delta = 1] a uniform target of [1/eps] tokens or more lies on its own threshold. *)
Definition M5t_uniform : Prop := forall V eps i, (1 <= V)%nat -> 1 <= INR V * eps ->
  let p := fun _ : nat => / INR V in prob V p /\ p i <= Rmin eps (1 * exp (sum (seq 0 V) (fun j => p j * ln (p j)))).

(** Where the second token of [((1+g)/2, (1-g)/2)] is rejected, no target of this margin is accepted whole. *)
Definition M5t_never_whole : Prop := forall V a b p eps delta g,
  prob V p -> (a < V)%nat -> (b < V)%nat -> b <> a -> p b = p a - g -> 0 <= g < 1 -> 0 < delta ->
  (1 - g) / 2 <= eps -> (1 + g) / 2 * ln ((1 - g) / (1 + g)) <= ln delta ->
  exists i, (i < V)%nat /\ p i <= Rmin eps (delta * exp (sum (seq 0 V) (fun j => p j * ln (p j)))).

(** ... and MS's bounds are approached by [((1+g)/2, (1-g)/2)] and dust, which drives [exp(-H)] to 0. *)
Definition M5t_supremum : Prop := forall m g eps delta e, (1 <= m)%nat -> 0 <= g < 1 -> 0 < eps -> 0 < delta -> 0 < e ->
  exists V p c, prob V p /\ p 1%nat = p 0%nat - g /\ (forall j, (1 < j)%nat -> p j <= p 1%nat) /\
    (forall i, In i [0%nat; 1%nat] <->
       (i < V)%nat /\ Rmin eps (delta * exp (sum (seq 0 V) (fun j => p j * ln (p j)))) < p i) /\
    certificate V [0%nat; 1%nat] m p c /\
    ((INR m + 2) * g <= INR m -> ln (1 + INR m / 2) + phi g - e < c) /\
    (INR m <= (INR m + 2) * g -> (1 + g) / 2 * ln (INR m + 1) - e < c).

(** ** M3v, M3pv and M5v: [m + n + 1] tokens, in which the [n] others have to take what is left *)
Definition M3v_candidates : Prop := forall V A a m n p alpha g x,
  prob V p -> In a A -> (a < V)%nat -> V = (m + n + 1)%nat -> (1 <= m)%nat -> 0 < alpha < 1 -> 0 <= g ->
  (forall j, (j < V)%nat -> j <> a -> p j <= p a - g) -> (forall j, (j < V)%nat -> ~ In j A -> p j <= alpha * p a) ->
  certificate V A m p x ->
  let s := 1 + INR m * alpha in let u := (1 + INR n * g) / (s + INR n) in let rho := exp (INR m * alpha * ln alpha / s) in
  u * one_ahead m 1 alpha <= x /\
  (1 <= INR V * (u - g) -> u - g <= rho * u -> all_levelled n m u (u - g) (alpha * u) <= x) /\
  ln (INR V * rho / (s + INR n * rho)) <= x.

(** ... from the first token *)
Definition M3pv_candidates : Prop := forall V A a m n p alpha x,
  prob V p -> In a A -> (a < V)%nat -> V = (m + n + 1)%nat -> (1 <= m)%nat -> (1 <= n)%nat -> 0 < alpha < 1 ->
  (forall j, (j < V)%nat -> p j <= p a) -> (forall j, (j < V)%nat -> ~ In j A -> p j <= alpha * p a) ->
  certificate V A m p x ->
  let y := (1 - (1 + INR m * alpha) * p a) / INR n in
  y <= p a /\ (1 <= INR V * y -> all_levelled n m (p a) y (alpha * p a) <= x).

Definition M5v_candidates : Prop := forall V A a m n p g tau x,
  prob V p -> In a A -> (a < V)%nat -> V = (m + n + 1)%nat -> (1 <= m)%nat -> 0 <= g -> 0 < tau ->
  g + INR V * tau <= 1 ->
  (forall j, (j < V)%nat -> j <> a -> p j <= p a - g) -> (forall j, (j < V)%nat -> ~ In j A -> p j <= tau) ->
  certificate V A m p x ->
  let y := (1 - g - INR m * tau) / (INR n + 1) in
  one_ahead m (g + y) tau <= x /\ (1 <= INR V * y -> all_levelled n m (g + y) y tau <= x).

(** The rows that attain these bounds, and M2's: one token at [x], [n] at [y], all accepted, and [m] at [z] *)
Definition crowded_rows : Prop := forall m n x y z,
  (1 <= m)%nat -> 0 <= z <= y -> y <= x -> x + INR n * y + INR m * z = 1 ->
  let V := (1 + (n + m))%nat in
  exists p, prob V p /\ p 0%nat = x /\ (forall i, (1 <= i <= n)%nat -> p i = y) /\ (forall i, (n < i)%nat -> p i = z) /\
    (INR V * y <= 1 -> certificate V (seq 0 (1 + n)) m p (one_ahead m x z)) /\
    (1 <= INR V * y -> certificate V (seq 0 (1 + n)) m p (all_levelled n m x y z)).

(** ... and where the [m] lie on the threshold [alpha p_0 + beta] of a rule that accepts what reaches it, rows in which
    they lie below it come as close as wanted. They move towards a row without them, which is accepted whole. *)
Definition crowded_rows_approached : Prop := forall m n x y z x' y' alpha beta e,
  (1 <= m)%nat -> 0 <= z <= y -> y <= x -> x + INR n * y + INR m * z = 1 -> 0 <= x' -> 0 <= y' -> x' + INR n * y' = 1 ->
  z = alpha * x + beta -> 0 < alpha * x' + beta <= y' -> alpha * x' + beta <= x' -> 0 < e ->
  let V := (1 + (n + m))%nat in
  exists s p c, 0 < s < 1 /\ s <= e /\ prob V p /\ p 0%nat = (1 - s) * x + s * x' /\
    (forall i, (1 <= i <= n)%nat -> p i = (1 - s) * y + s * y') /\ (forall i, (n < i)%nat -> p i = (1 - s) * z) /\
    (forall i, In i (seq 0 (1 + n)) <-> (i < V)%nat /\ alpha * p 0%nat + beta <= p i) /\
    certificate V (seq 0 (1 + n)) m p c /\
    (INR V * y <= 1 -> c < one_ahead m x z + e) /\ (1 <= INR V * y -> c < all_levelled n m x y z + e).

(** M5's bound is approached by absolute(tau), which accepts a token at [tau]. *)
Definition M5_approached : Prop := forall m g tau e,
  (1 <= m)%nat -> 0 < g -> 0 < tau -> g + (INR m + 1) * tau <= 1 -> 0 < e ->
  exists V p c, prob V p /\ p 1%nat = p 0%nat - g /\ (forall j, (j < V)%nat -> j <> 0%nat -> p j <= p 1%nat) /\
    (forall i, In i [0%nat] <-> (i < V)%nat /\ tau <= p i) /\ certificate V [0%nat] m p c /\
    c < one_ahead m (g + tau) tau + e.

(** M3p: dust takes what is left of the mass, and the bound from the first token is attained. *)
Definition M3p_sharp : Prop := forall m alpha p1,
  (1 <= m)%nat -> 0 < alpha < 1 -> 0 < p1 -> (1 + INR m * alpha) * p1 <= 1 ->
  exists V p, prob V p /\ p 0%nat = p1 /\ (forall j, j <> 0%nat -> p j <= alpha * p1) /\
    certificate V [0%nat] m p (p1 * one_ahead m 1 alpha).

(** ... approached by multiplicative(alpha), which accepts a token at [alpha p1]; and where the second token is always
    rejected, for one candidate *)
Definition M3p_approached : Prop := forall m alpha p1 e,
  (1 <= m)%nat -> 0 < alpha < 1 -> 0 < p1 -> (1 + INR m * alpha) * p1 <= 1 -> 0 < e ->
  exists V p x, prob V p /\ p 0%nat = p1 /\ (forall i, In i [0%nat] <-> (i < V)%nat /\ alpha * p 0%nat <= p i) /\
    certificate V [0%nat] m p x /\ x < p1 * one_ahead m 1 alpha + e.

Definition M3p_one_candidate : Prop := forall alpha p1, 0 < alpha <= 1 -> 1 / (1 + alpha) < p1 <= 1 ->
  (forall V p, prob V p -> (0 < V)%nat -> p 0%nat = p1 ->
     (forall i, In i [0%nat] <-> (i < V)%nat /\ alpha * p 0%nat <= p i) /\
     (forall x, certificate V [0%nat] 1 p x -> phi (2 * p1 - 1) <= x)) /\
  exists p, prob 2 p /\ p 0%nat = p1 /\ certificate 2 [0%nat] 1 p (phi (2 * p1 - 1)).

(** ** MS, M3p and M5s: no certificate exceeds these; the extremal rows are those of [crowded_rows] *)

(** The first token alone is above the level. *)
Definition first_alone : Prop := forall V A a m p x,
  prob V p -> In a A -> (forall b, In b A -> (b < V)%nat /\ (b <> a -> (INR m + 1) * p b <= p a)) -> certificate V A m p x ->
  x <= p a * ln (INR m + 1).

(** ... and where only the first token is accepted, certificates come as close to [first_alone]'s bound as wanted. *)
Definition M3p_supremum : Prop := forall m p1 e, (1 <= m)%nat -> 0 < p1 < 1 -> 0 < e ->
  exists V p x, prob V p /\ p 0%nat = p1 /\ (forall i j, i <> 0%nat -> j <> 0%nat -> p i = p j) /\
    certificate V [0%nat] m p x /\ p1 * ln (INR m + 1) - e < x.

(** [b] is the runner-up, at the gap [g]. *)
Definition MS_upper_bounds : Prop := forall V A a b m p g x,
  prob V p -> In a A -> (forall i, In i A -> (i < V)%nat) -> (b < V)%nat -> b <> a -> p b = p a - g -> 0 <= g ->
  (forall j, (j < V)%nat -> j <> a -> p j <= p b) -> certificate V A m p x ->
  ((INR m + 2) * g <= INR m -> x <= ln (1 + INR m / 2) + phi g) /\
  (INR m <= (INR m + 2) * g -> x <= (1 + g) / 2 * ln (INR m + 1)).

(** ... attained by a target whose second token these rules accept, and no third *)
Definition MS_attained : Prop := forall m g, (1 <= m)%nat -> 0 <= g < 1 ->
  let p := fun i : nat => match i with O => (1 + g) / 2 | S O => (1 - g) / 2 | _ => 0 end in
  prob (2 + m) p /\
  ((INR m + 2) * g <= INR m -> certificate (2 + m) [0%nat; 1%nat] m p (ln (1 + INR m / 2) + phi g)) /\
  (INR m <= (INR m + 2) * g -> certificate (2 + m) [0%nat; 1%nat] m p ((1 + g) / 2 * ln (INR m + 1))) /\
  (forall t, g <= t < (1 + g) / 2 -> forall i, In i [0%nat; 1%nat] <-> (i < 2 + m)%nat /\ p 0%nat - t <= p i) /\
  (forall alpha, 0 < alpha -> g * (1 + alpha) <= 1 - alpha ->
     forall i, In i [0%nat; 1%nat] <-> (i < 2 + m)%nat /\ alpha * p 0%nat <= p i) /\
  (forall tau, 0 < tau <= (1 - g) / 2 -> forall i, In i [0%nat; 1%nat] <-> (i < 2 + m)%nat /\ tau <= p i).

(** Only the first token is accepted, and the second is levelled with it or left where it is. *)
Definition M5s_upper_bounds : Prop := forall V a b m p x,
  prob V p -> (a < V)%nat -> (b < V)%nat -> b <> a -> (1 <= m)%nat -> certificate V [a] m p x ->
  (let c := (p a + p b) / (INR m + 1) in x <= p a * ln (p a / c) + p b * ln (p b / c)) /\
  (p a <= INR m * p b -> x <= p a * ln (INR m)).

(** ... so that where [p_a >= tau], at the gap [g], no certificate exceeds both the first bound at [p_a = tau], which is
    convex in [p_a], and that of M7s's spike; nor the latter alone where the second token is left where it is. *)
Definition M5s_no_more : Prop := forall V a b m p x g tau,
  prob V p -> (a < V)%nat -> (b < V)%nat -> b <> a -> (1 <= m)%nat -> p b = p a - g -> 0 <= g <= tau ->
  0 < tau <= p a -> certificate V [a] m p x ->
  let c := (2 * tau - g) / (INR m + 1) in let raised := tau * ln (tau / c) + (tau - g) * ln ((tau - g) / c) in
  (tau <= INR m * (tau - g) -> x <= (1 + g) / 2 * ln (INR m)) /\
  (INR m * (tau - g) <= tau ->
     ((INR m + 1) * g <= INR m - 1 -> x <= Rmax raised ((1 + g) / 2 * ln (INR m))) /\
     (INR m - 1 <= (INR m + 1) * g -> x <= Rmax raised (ln ((INR m + 1) / 2) + phi g)) /\
     (m = 1%nat -> x <= raised)).

(** ... and the first bound is approached where dust takes what is left of the mass. *)
Definition M5s_approached : Prop := forall m g tau e,
  (1 <= m)%nat -> 0 <= g < tau -> 2 * tau <= 1 + g -> INR m * (tau - g) <= tau -> 0 < e ->
  let c := (2 * tau - g) / (INR m + 1) in
  exists V p x, prob V p /\ p 0%nat = tau /\ p 1%nat = tau - g /\ (forall j, (1 < j)%nat -> p j <= p 1%nat) /\
    certificate V [0%nat] m p x /\ tau * ln (tau / c) + (tau - g) * ln ((tau - g) / c) - e < x.

(** M7s: the two families whose larger certificate is the supremum *)
Definition M7s_rows : Prop := forall m g, (2 <= m)%nat -> 0 <= g <= 1 ->
  (forall V, (m + 1 <= V)%nat -> let b := (1 - g) / INR V in
   exists p, prob V p /\ p 0%nat = g + b /\ (forall j, j <> 0%nat -> p j = b) /\ certificate V [0%nat] m p (one_ahead m (g + b) b)) /\
  (exists p, prob (m + 1) p /\ p 0%nat = (1 + g) / 2 /\ p 1%nat = (1 - g) / 2 /\ (forall j, (1 < j)%nat -> p j = 0) /\
    ((INR m + 1) * g <= INR m - 1 -> certificate (m + 1) [0%nat] m p ((1 + g) / 2 * ln (INR m))) /\
    (INR m - 1 <= (INR m + 1) * g -> certificate (m + 1) [0%nat] m p (ln ((INR m + 1) / 2) + phi g))).

(** ... and no certificate exceeds both; [b] is the runner-up, at the gap [g]. *)
Definition M7s_upper_bounds : Prop := forall V a b m p x g,
  prob V p -> (a < V)%nat -> (b < V)%nat -> b <> a -> p b = p a - g -> 0 <= g ->
  (forall j, (j < V)%nat -> j <> a -> p j <= p b) -> (1 <= m)%nat -> certificate V [a] m p x ->
  let y := (1 - g) / INR V in let dust := one_ahead m (g + y) y in
  ((INR m + 1) * g <= INR m - 1 -> x <= Rmax dust ((1 + g) / 2 * ln (INR m))) /\
  (INR m - 1 <= (INR m + 1) * g -> x <= Rmax dust (ln ((INR m + 1) / 2) + phi g)).

(** MI: what is accepted whole. additive(t) accepts all where [g <= 2 t - 1]; the [B] besides [a] can be accepted by
    multiplicative(alpha), or reach [tau], only for small gaps, and then the flat row does it. *)
Definition MI_all_accepted : Prop :=
  (forall V a b p g t i, prob V p -> (a < V)%nat -> (b < V)%nat -> a <> b -> p b = p a - g -> g <= 2 * t - 1 ->
     (i < V)%nat -> p a - t <= p i) /\
  (forall V a B p g, prob V p -> NoDup (a :: B) -> B <> [] -> (forall i, In i (a :: B) -> (i < V)%nat) ->
     (forall i, In i B -> p i <= p a - g) -> let n := INR (length B) in
     (forall alpha, 0 < alpha < 1 -> (forall i, In i B -> alpha * p a <= p i) -> g * (1 + n * alpha) <= 1 - alpha) /\
     (forall tau, (forall i, In i B -> tau <= p i) -> g + (n + 1) * tau <= 1)) /\
  (forall n g, (1 <= n)%nat -> let b := (1 - g) / (INR n + 1) in
     (forall alpha, g * (1 + INR n * alpha) <= 1 - alpha -> alpha * (g + b) <= b) /\
     (forall tau, g + (INR n + 1) * tau <= 1 -> tau <= b)).

(** ** M6: its supremum, valid for every vocabulary and approached by large ones *)
Definition M6_upper_bound : Prop := forall V a m p x b g,
  prob V p -> (a < V)%nat -> (1 <= m)%nat -> 0 < g -> 0 <= b -> p a = b + g ->
  (exists M, NoDup M /\ length M = m /\ (forall i, In i M -> (i < V)%nat /\ i <> a) /\ top_rejected V [a] M p /\
     forall i, In i M -> b <= p i) ->
  certificate V [a] m p x -> x <= g * ln (INR m + 1).

(** The certificate is convex on targets with the same worst competitors: a mixture has no more than the mean. *)
Definition M6_convexity : Prop := forall V A M p p' w x x' y,
  prob V p -> prob V p' -> 0 <= w <= 1 -> disjoint_sets V A M -> least V A M p x -> least V A M p' x' ->
  certificate V A (length M) (fun i => w * p i + (1 - w) * p' i) y -> y <= w * x + (1 - w) * x'.

Definition M6_supremum : Prop := forall m g e, (1 <= m)%nat -> 0 < g < 1 -> 0 < e ->
  exists V, forall N, (V <= N)%nat -> exists p x, prob N p /\ (forall j, j <> 0%nat -> p j = p 0%nat - g) /\
  certificate N [0%nat] m p x /\ g * ln (INR m + 1) - e < x.

(** ** T6 *)
Definition T6_order : Prop := forall V A A' m m' p x x',
  incl A A' -> (m <= m')%nat -> certificate V A m p x -> certificate V A' m' p x' -> x <= x'.

(** The typical rule (with the exact entropy, [0 < delta < 1]) accepts whatever
    multiplicative(delta) accepts, hence always the argmax. *)
Definition T6_typical_contains_multiplicative : Prop := forall V p p1 i eps delta,
  prob V p -> (forall j, (j < V)%nat -> p j <= p1) -> 0 < p1 -> (i < V)%nat -> 0 < delta < 1 ->
  delta * p1 <= p i -> Rmin eps (delta * exp (sum (seq 0 V) (fun j => p j * ln (p j)))) < p i.

(** What one rule accepts, another accepts; [k] is a most likely token. *)
Definition T6_inclusions : Prop := forall V p k i,
  prob V p -> (k < V)%nat -> (i < V)%nat -> p i <= p k ->
  (forall alpha, 0 <= alpha <= 1 -> alpha * p k <= p i -> p k - (1 - alpha) / (1 + alpha) <= p i) /\
  (forall tau, 0 <= tau <= 1 / 2 -> tau <= p i ->
     p k - (1 - 2 * tau) <= p i /\ tau / (1 - tau) * p k <= p i).

(** No more than [1/tau] tokens are accepted by absolute(tau). *)
Definition T6_rank : Prop := forall V p T tau,
  prob V p -> NoDup T -> (forall i, In i T -> (i < V)%nat /\ tau <= p i) -> INR (length T) * tau <= 1.

(** The threshold of the typical rule, with a floor [f] of the probabilities in its logarithm, from one token's
    probability [s]; and the logarithm of [s] less that of this bound *)
Definition T6_entropy_power : Prop :=
  (forall V p x f, prob V p -> (x < V)%nat -> 0 <= f ->
     let s := p x in let E := sum (seq 0 V) (fun i => p i * ln (p i + f)) in
     E <= s * ln (s + f) + (1 - s) * ln (1 - s + f) /\ (0 < f -> ln f <= E)) /\
  let G f s := ln s - s * ln (s + f) - (1 - s) * ln (1 - s + f) in
  (forall f s s' t, 0 <= f -> 0 < s <= 1 -> 0 < s' <= 1 -> 0 <= t <= 1 ->
     t * G f s + (1 - t) * G f s' <= G f (t * s + (1 - t) * s')) /\
  (forall s s', 0 < s <= s' -> s' <= 1 / 2 -> G 0 s <= G 0 s') /\
  (forall s, 1 / 2 <= s <= 1 -> 0 <= G 0 s).

(** ** T7: [a] accepted, [b] the most likely rejected token *)
Definition T7_two_point : Prop := forall V A a b p x,
  prob V p -> NoDup A -> (forall i, In i A -> (i < V)%nat) -> In a A ->
  (b < V)%nat -> ~ In b A -> (forall j, (j < V)%nat -> ~ In j A -> p j <= p b) -> p b <= p a ->
  certificate V A 1%nat p x ->
  let s := p a + p b in
  s * phi ((p a - p b) / s) <= x /\
  (x = s * phi ((p a - p b) / s) <-> forall i, In i A -> i <> a -> p i <= s / 2).

(** ** B1: a run continues over every step whose certificate exceeds the divergence; [true] marks these steps *)
Definition B1_step : Prop := forall V A m p x q T eps,
  (forall a, In a A -> (a < V)%nat) -> certificate V A m p x -> prob V q -> KL_finite V p q ->
  KL V p q <= eps -> eps < x -> proposes V m q T -> exists a, In a T /\ In a A.

Definition B1_run_lengths : Prop := forall steps,
  let k := count_occ Bool.bool_dec steps false in
  length (runs 0 steps) = (k + 1)%nat /\ list_sum (runs 0 steps) = (length steps - k)%nat /\
  exists r, In r (runs 0 steps) /\ (length steps - k <= r * (k + 1))%nat.

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

(** The inverse: a mean KL below the mean of the [k + 1] least certificates leaves at most [k] contexts rejected. *)
Definition B2_inverse : Prop := forall N V A m p C ord eps k,
  (forall n, (n < N)%nat -> prob (V n) (p n)) -> NoDup ord -> (forall n, In n ord -> (n < N)%nat) ->
  StronglySorted (fun i j : nat => C i <= C j) ord ->
  (forall n, In n ord -> certificate (V n) (A n) (m n) (p n) (C n)) ->
  (forall n, (n < N)%nat -> ~ In n ord -> forall q, prob (V n) q -> ~ rejects (V n) (A n) (m n) q) ->
  INR N * eps < sum (firstn (k + 1) ord) C ->
  forall (q : nat -> nat -> R) (rej : list nat),
  (forall n, (n < N)%nat -> prob (V n) (q n) /\ KL_finite (V n) (p n) (q n)) ->
  sum (seq 0 N) (fun n => KL (V n) (p n) (q n)) <= INR N * eps ->
  NoDup rej -> (forall n, In n rej -> (n < N)%nat /\ rejects (V n) (A n) (m n) (q n)) ->
  (length rej <= k)%nat.

(** B2c: contexts of weights [w], rejected at the rate [sum rej w] *)
Definition B2c_lorenz_bound : Prop := forall N V A m p C w v (q : nat -> nat -> R) rej,
  (forall n, (n < N)%nat -> prob (V n) (p n) /\ 0 <= w n) ->
  (forall n, In n rej -> certificate (V n) (A n) (m n) (p n) (C n)) ->
  (forall n, (n < N)%nat -> prob (V n) (q n) /\ KL_finite (V n) (p n) (q n)) ->
  NoDup rej -> (forall n, In n rej -> (n < N)%nat /\ rejects (V n) (A n) (m n) (q n)) ->
  v * sum rej w - sum rej (fun n => w n * Rmax 0 (v - C n)) <= sum (seq 0 N) (fun n => w n * KL (V n) (p n) (q n)).

(** ... the largest of which, over [v], is the integral of the certificates' quantile function from 0 to the rate [r]:
    of [N] contexts in ascending order, the first [k] count in full, the next one with the rest of [r] *)
Definition B2c_lorenz_curve : Prop := forall N C w k r,
  (forall n, (n < N)%nat -> 0 <= w n) -> (forall i j, (i <= j)%nat -> (j < N)%nat -> C i <= C j) -> (k < N)%nat ->
  let rest := r - sum (seq 0 k) w in 0 <= rest <= w k ->
  let bound v := v * r - sum (seq 0 N) (fun n => w n * Rmax 0 (v - C n)) in
  let L := sum (seq 0 k) (fun n => w n * C n) + rest * C k in (forall v, bound v <= L) /\ bound (C k) = L.

(** ... attained by rejecting contexts with certificates of at most [v] at their certificates *)
Definition B2c_attained : Prop := forall N V A m p C w v rej,
  (forall n, (n < N)%nat -> prob (V n) (p n)) -> NoDup rej ->
  (forall n, In n rej -> (n < N)%nat /\ certificate (V n) (A n) (m n) (p n) (C n) /\ C n <= v) ->
  exists q, (forall n, (n < N)%nat -> prob (V n) (q n) /\ KL_finite (V n) (p n) (q n)) /\
    (forall n, In n rej -> rejects (V n) (A n) (m n) (q n)) /\
    sum (seq 0 N) (fun n => w n * KL (V n) (p n) (q n)) = v * sum rej w - sum rej (fun n => w n * Rmax 0 (v - C n)).

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

(** As the order goes to 1, the least divergence goes to the least KL. *)
Definition B3_limit : Prop := forall V A M p x e, prob V p -> M <> nil -> least V A M p x -> 0 < e ->
  exists d, 0 < d /\ forall a v, a <> 1 -> Rabs (a - 1) < d -> least_renyi V A M a p v -> Rabs (v - x) < e.

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

(** ... where a competitor has probability 0 *)
Definition B3r_at_zero : Prop := forall V A M p j,
  prob V p -> disjoint_sets V A M -> In j M -> p j = 0 ->
  let s := sum A p in
  (forall q, prob V q -> beats A M q -> KL_finite V q p -> s < 1 /\ - ln (1 - s) <= KL V q p) /\
  (s < 1 -> exists q, prob V q /\ beats A M q /\ KL_finite V q p /\ KL V q p = - ln (1 - s)).

(** B3i: the Renyi divergence of infinite order is at most [ln r] if and only if [p <= r q] everywhere *)
Definition B3i_infinite_order : Prop := forall V A M a p,
  prob V p -> disjoint_sets V A M -> In a A -> (forall i, In i A -> p i <= p a) -> (forall i, In i M -> p i <= p a) ->
  let z := 1 - sum M p + INR (length M) * p a in
  (exists q, prob V q /\ beats A M q /\ forall i, (i < V)%nat -> p i <= z * q i) /\
  (forall q r, prob V q -> beats A M q -> (forall i, (i < V)%nat -> p i <= r * q i) -> z <= r).

(** ** B4: of the competitors only bounds [b] are known; and lumping tokens into one never raises KL *)
Definition B4_multipliers : Prop := forall V A M p b l x,
  prob V p -> disjoint_sets V A M -> M <> nil -> top_rejected V A M p ->
  (forall a, In a A -> 0 <= l a) -> (forall i, In i M -> 0 <= l i < 1 /\ p i <= b i) -> sum A l = sum M l ->
  certificate V A (length M) p x ->
  sum A (fun a => p a * ln (1 + l a)) + sum M (fun i => b i * ln (1 - l i)) <= x.

(** From above: a draft with the tokens of [T] at the level [c] and those of [R], each at [b] or above, raised by [c - b] *)
Definition B4_upper : Prop := forall V A M T R p b c x,
  prob V p -> certificate V A (length M) p x -> 0 <= b <= c -> NoDup T -> NoDup R ->
  (forall i, In i T \/ In i R -> (i < V)%nat) -> (forall i, In i R -> ~ In i T /\ b <= p i) ->
  sum T p + INR (length R) * b = (INR (length T) + INR (length R)) * c ->
  (forall a, In a A -> In a T \/ (~ In a R /\ p a <= c)) ->
  NoDup M -> (forall i, In i M -> (i < V)%nat /\ ~ In i A /\ (In i T \/ In i R \/ c <= p i)) ->
  x <= sum T (fun i => p i * ln (p i / c)) + INR (length R) * (b * ln (b / c)).

(** ... attained where only one of the competitors is among the unlisted tokens [U], none of them accepted: of all
    targets with the same list, the one in which these have the same probability has the largest certificate. *)
Definition B4_one_unlisted : Prop := forall V A L U p x,
  prob V p -> disjoint_sets V A (L ++ U) -> U <> nil -> (forall j, (j < V)%nat -> In j (A ++ L ++ U)) ->
  (forall i j, In i U -> In j L -> p i <= p j) -> certificate V A (length L + 1) p x ->
  let p' := fun i => if mem U i then sum U p / INR (length U) else p i in
  prob V p' /\ sum U p' = sum U p /\ forall y, certificate V A (length L + 1) p' y -> x <= y.

Definition B4_lumped : Prop := forall V p q T,
  prob V p -> prob V q -> KL_finite V p q -> NoDup T -> (forall i, In i T -> (i < V)%nat) ->
  sum T p * ln (sum T p / sum T q) <= sum T (fun i => p i * ln (p i / q i)).

(** What the tokens [T], each at most [k], add to the entropy; and all but those of [R] are at most [b]. *)
Definition B4_entropy : Prop := forall T p k, 0 < k -> (forall i, In i T -> 0 <= p i <= k) ->
  let r := sum T p in let H := - sum T (fun i => p i * ln (p i)) in
  r * ln (1 / k) <= H /\ (0 < r -> H <= r * ln (INR (length T) / r)) /\
  (forall R b, NoDup R -> NoDup T -> incl R T -> (forall i, In i T -> ~ In i R -> p i <= b) ->
     r <= INR (length R) * k + (INR (length T) - INR (length R)) * b).

(** ... attained where each has [k] or nothing, and where all have the same *)
Definition B4_entropy_attained : Prop := forall T p k, 0 < k -> (forall i, In i T -> p i = 0 \/ p i = k) ->
  let r := sum T p in let H := - sum T (fun i => p i * ln (p i)) in
  H = r * ln (1 / k) /\ (T <> nil -> (forall i, In i T -> p i = k) -> H = r * ln (INR (length T) / r)).

(** ** B5: a second evaluation keeps the greedy token: by divergence, and by logits *)
Definition B5_same_greedy_token : Prop := forall V a p p' x,
  certificate V [a] 1%nat p x -> prob V p' -> KL_finite V p p' -> KL V p p' < x ->
  forall j, (j < V)%nat -> j <> a -> p' j < p' a.

(** ... where the noise spans [w] between any two tokens, or is at most [d] *)
Definition B5_logits : Prop := forall (z z' : nat -> R) V a, (a < V)%nat ->
  (forall w, (forall i j, (i < V)%nat -> (j < V)%nat -> (z i - z' i) - (z j - z' j) <= w) ->
     (forall j, (j < V)%nat -> j <> a -> w < z a - z j) -> forall j, (j < V)%nat -> j <> a -> z' j < z' a) /\
  (forall d, (forall j, (j < V)%nat -> Rabs (z j - z' j) <= d) ->
     (forall j, (j < V)%nat -> j <> a -> 2 * d < z a - z j) -> forall j, (j < V)%nat -> j <> a -> z' j < z' a).

(** ** S1 to S3: speculative sampling with lenience [l] accepts all but what is drafted too often *)
Definition S1_acceptance : Prop := forall V l p q,
  prob V p -> prob V q -> 0 < l ->
  let R := sum (seq 0 V) (fun i => Rmax 0 (q i - p i / l)) in
  acceptance V l p q = 1 - R /\ (l = 1 -> R = tv V p q) /\
  (forall B, NoDup B -> (forall i, In i B -> (i < V)%nat) -> sum B q - sum B p / l <= R) /\
  (exists B, NoDup B /\ (forall i, In i B -> (i < V)%nat) /\ sum B q - sum B p / l = R).

(** [u] and [v] have the logarithmic mean [l]; equality where every token has one of these ratios *)
Definition S2_least_acceptance : Prop := forall V p q u v,
  prob V p -> prob V q -> 0 < u < v -> let l := (v - u) / ln (v / u) in
  (KL_finite V p q -> (1 - u + ln v - KL V p q) / (v - u) <= acceptance V l p q) /\
  ((forall i, (i < V)%nat -> p i = u * q i \/ p i = v * q i) ->
   KL_finite V p q /\ acceptance V l p q = (1 - u + ln v - KL V p q) / (v - u)).

(** The least acceptance at a divergence of at most [D], its inverse, and two tokens that attain both *)
Definition S2_sharp : Prop := forall l D, 0 < l <= 1 -> 0 < D ->
  exists u v, 0 < u < 1 /\ 1 < v /\ (v - u) / ln (v / u) = l /\ ln v - u * (v - 1) / l = D /\
  let a := (1 - u + u * (v - 1) / l) / (v - u) in
  (forall V p q, prob V p -> prob V q -> KL_finite V p q -> KL V p q <= D -> a <= acceptance V l p q) /\
  (forall V p q, prob V p -> prob V q -> KL_finite V p q -> acceptance V l p q <= a -> D <= KL V p q) /\
  (exists p q, prob 2 p /\ prob 2 q /\ KL_finite 2 p q /\ KL 2 p q = D /\ acceptance 2 l p q = a).

(** No other pair of numbers has the same lenience and divergence; and its straight line lies below the others' least
    acceptance, which so is the largest of these lines. *)
Definition S2_one_pair : Prop := forall u v u' v', 0 < u < 1 -> 1 < v -> 0 < u' < 1 -> 1 < v' ->
  let l := (v - u) / ln (v / u) in let D := ln v - u * (v - 1) / l in let D' := ln v' - u' * (v' - 1) / l in
  (v' - u') / ln (v' / u') = l ->
  (D = D' -> u = u' /\ v = v') /\ (1 - u' + ln v' - D) / (v' - u') <= (1 - u + ln v - D) / (v - u).

(** S2r: a set [B] of target mass [s] and draft mass [b]. Its two coins bound the divergence, and a draft proportional to
    the target on [B] and outside has no more, at an acceptance of at most [1 - b + s/l]. *)
Definition S2_coins : Prop := forall V B p l, NoDup B -> (forall i, In i B -> (i < V)%nat) -> prob V p -> 0 < l ->
  let s := sum B p in let coins b := s * ln (s / b) + (1 - s) * ln ((1 - s) / (1 - b)) in
  (forall q, prob V q -> KL_finite V p q -> coins (sum B q) <= KL V p q) /\
  (forall b, 0 < s < 1 -> 0 < b < 1 -> exists q, prob V q /\ KL_finite V p q /\ sum B q = b /\ KL V p q = coins b /\
     acceptance V l p q <= 1 - b + s / l).

(** The divergence of two coins is convex, so that the largest [b] is concave in [s]. *)
Definition S2r_convexity : Prop := forall s b s' b' t,
  0 < s < 1 -> 0 < b < 1 -> 0 < s' < 1 -> 0 < b' < 1 -> 0 <= t <= 1 ->
  let coins s b := s * ln (s / b) + (1 - s) * ln ((1 - s) / (1 - b)) in
  coins (t * s + (1 - t) * s') (t * b + (1 - t) * b') <= t * coins s b + (1 - t) * coins s' b'.

(** ... so of three masses in this order, each with its largest [b] at a divergence of [D], the second accepts no more
    than the first where the third does: beside the best mass only the two next to it count. *)
Definition S2r_two_masses : Prop := forall l D s1 s2 s3 b1 b2 b3, 0 < l ->
  0 < s1 < 1 -> 0 < s2 < 1 -> 0 < s3 < 1 -> 0 < b1 < 1 -> 0 < b2 < 1 -> 0 < b3 < 1 ->
  s1 <= s2 <= s3 \/ s3 <= s2 <= s1 ->
  let coins s b := s * ln (s / b) + (1 - s) * ln ((1 - s) / (1 - b)) in
  let largest s b := coins s b <= D /\ forall x, 0 < x < 1 -> coins s x <= D -> x <= b in
  largest s1 b1 -> largest s2 b2 -> largest s3 b3 ->
  1 - b3 + s3 / l <= 1 - b1 + s1 / l -> 1 - b2 + s2 / l <= 1 - b1 + s1 / l.

(** S3: contexts of weights [w] *)
Definition S3_mean : Prop := forall N V (p q : nat -> nat -> R) w u v,
  prob N w -> 0 < u < v ->
  (forall n, (n < N)%nat -> prob (V n) (p n) /\ prob (V n) (q n) /\ KL_finite (V n) (p n) (q n)) ->
  (1 - u + ln v - sum (seq 0 N) (fun n => w n * KL (V n) (p n) (q n))) / (v - u) <=
  sum (seq 0 N) (fun n => w n * acceptance (V n) ((v - u) / ln (v / u)) (p n) (q n)).

(** ... attained where all contexts are the same, whatever their number and weights *)
Definition S3_attained : Prop := forall l D, 0 < l <= 1 -> 0 < D ->
  exists p q, prob 2 p /\ prob 2 q /\ KL_finite 2 p q /\ forall N w, prob N w ->
    sum (seq 0 N) (fun n => w n * KL 2 p q) = D /\
    forall N' V w' (p' q' : nat -> nat -> R), prob N' w' ->
      (forall n, (n < N')%nat -> prob (V n) (p' n) /\ prob (V n) (q' n) /\ KL_finite (V n) (p' n) (q' n)) ->
      sum (seq 0 N') (fun n => w' n * KL (V n) (p' n) (q' n)) <= D ->
      sum (seq 0 N) (fun n => w n * acceptance 2 l p q) <=
      sum (seq 0 N') (fun n => w' n * acceptance (V n) l (p' n) (q' n)).

(** S4: a sum of [p] times a concave function of [ln (q/p)], plus [k] times the mass of [q]. Of the pairs with a KL of
    [D], or of no more where [f] is nowhere below its value at 0, those have most for which [q/p] is [exp (- D)]. *)
Definition S4_jensen : Prop := forall f k D, 0 <= D ->
  (forall x y t, 0 <= t <= 1 -> t * f x + (1 - t) * f y <= f (t * x + (1 - t) * y)) ->
  let divergence V (p q : nat -> R) := sum (seq 0 V) (fun i => p i * f (ln (q i / p i))) + k * sum (seq 0 V) q in
  (forall V p q, prob V p -> prob V q -> KL_finite V p q ->
     (KL V p q = D -> divergence V p q <= f (- D) + k) /\
     ((forall x, x <= 0 -> f 0 <= f x) -> KL V p q <= D -> divergence V p q <= f (- D) + k)) /\
  (forall V p q, prob V p -> prob V q -> (forall i, (i < V)%nat -> 0 < p i -> q i = exp (- D) * p i) ->
     KL_finite V p q /\ KL V p q = D /\ divergence V p q = f (- D) + k).

(** S4: the largest squared Hellinger distance and Jensen-Shannon divergence at a KL of at most [D]; and two tokens that
    attain both, whose reverse KL is infinite *)
Definition S4_joint_range : Prop := forall D, 0 <= D -> let r := exp (- D) in
  let hellinger := 1 - sqrt r in let shannon := ln 2 + (r * ln r - (1 + r) * ln (1 + r)) / 2 in
  (forall V p q, prob V p -> prob V q -> KL_finite V p q -> KL V p q <= D ->
     1 - sum (seq 0 V) (fun i => sqrt (p i * q i)) <= hellinger /\ jensen_shannon V p q <= shannon) /\
  (exists p q, prob 2 p /\ prob 2 q /\ KL_finite 2 p q /\ KL 2 p q = D /\ (0 < D -> ~ KL_finite 2 q p) /\
     1 - sum (seq 0 2) (fun i => sqrt (p i * q i)) = hellinger /\ jensen_shannon 2 p q = shannon).

(** S6: the log-loss of a token [x] that a rule lets pass; [k] is a most likely token, [b] a most likely other one *)
Definition S6_log_loss : Prop := forall V p k x, prob V p -> (k < V)%nat -> (x < V)%nat -> 0 < p x <= p k ->
  let loss := ln (p k / p x) in
  (forall theta, 0 < theta <= p x -> loss <= ln (p k / theta)) /\
  (forall alpha, 0 < alpha -> alpha * p k <= p x -> loss <= ln (1 / alpha)) /\
  (forall t, t < p k -> p k - t <= p x -> loss <= ln (p k / (p k - t))) /\
  (x <> k -> forall tau, 0 < tau <= p x -> loss <= ln ((1 - tau) / tau) /\
     forall b g, (b < V)%nat -> b <> k -> p b = p k - g -> 0 <= g -> (forall j, (j < V)%nat -> j <> k -> p j <= p b) ->
       (3 * tau <= 1 - g -> loss <= ln ((1 + g - tau) / (2 * tau))) /\
       (1 - g <= 3 * tau -> loss <= ln ((g + tau) / tau))).

(** ... attained by targets with a token at the threshold; and a second token can have any loss *)
Definition S6_sharp : Prop :=
  (forall alpha, 0 < alpha <= 1 -> exists p, prob 2 p /\ p 1%nat = alpha * p 0%nat /\
     ln (p 0%nat / p 1%nat) = ln (1 / alpha)) /\
  (forall t p1, 0 <= t < p1 -> 2 * p1 - t <= 1 -> exists V p, prob V p /\ p 0%nat = p1 /\ p 1%nat = p1 - t /\
     forall j, (1 < j)%nat -> p j <= p 1%nat) /\
  (forall L, 0 <= L -> exists p, prob 2 p /\ 0 < p 1%nat <= p 0%nat /\ ln (p 0%nat / p 1%nat) = L) /\
  (forall tau, 0 < tau <= 1 / 2 -> exists p, prob 2 p /\ p 0%nat = 1 - tau /\ p 1%nat = tau) /\
  (forall g tau, 0 <= g -> 0 < tau -> g + 2 * tau <= 1 ->
     exists p, prob 3 p /\ p 1%nat = p 0%nat - g /\ p 2%nat <= p 1%nat /\
     (3 * tau <= 1 - g -> p 2%nat = tau /\ p 0%nat / p 2%nat = (1 + g - tau) / (2 * tau)) /\
     (1 - g < 3 * tau -> p 1%nat = tau /\ p 0%nat / p 1%nat = (g + tau) / tau)).

(** ... and summed along a text *)
Definition S6_along_a_text : Prop := forall N V (p : nat -> nat -> R) (k x : nat -> nat) (theta : nat -> R),
  (forall n, (n < N)%nat -> prob (V n) (p n) /\ (k n < V n)%nat /\ (x n < V n)%nat /\ 0 < theta n <= p n (x n)) ->
  sum (seq 0 N) (fun n => ln (p n (k n) / p n (x n))) <= sum (seq 0 N) (fun n => ln (p n (k n) / theta n)).

(** S5: what block verification keeps of tokens with the ratios [l], beside what is kept token by token *)
Definition S5_block_verification : Prop := forall l, (forall r, In r l -> 0 <= r) ->
  fold_left (fun P r => P * Rmin 1 r) l 1 <= fold_left (fun P r => Rmin 1 (P * r)) l 1 <= 1.

(** ... so of [n] tokens, drafted with a divergence of at most [D] each, the number kept is by S2 at least the sum of
    the powers of [a] in expectation, and no less in blocks. *)
Definition S5_expected_length : Prop := forall V p q u v D n, 0 < u < v -> (v - u) / ln (v / u) = 1 ->
  (forall s, prob V (p s) /\ prob V (q s) /\ KL_finite V (p s) (q s) /\ KL V (p s) (q s) <= D) ->
  let a := (1 - u + ln v - D) / (v - u) in 0 <= a ->
  let tokenwise := sum (seq 1 n) (fun i => kept (fun P r => P * Rmin 1 r) V p q i 1 nil) in
  let blockwise := sum (seq 1 n) (fun i => kept (fun P r => Rmin 1 (P * r)) V p q i 1 nil) in
  sum (seq 1 n) (fun i => a ^ i) <= tokenwise <= blockwise.

(** ... and a first candidate accepted with [a], later ones with those of [l] where all before were rejected *)
Definition S5_recursive_rejection : Prop := forall a l, 0 <= a <= 1 -> (forall r, In r l -> 0 <= r <= 1) ->
  a <= 1 - (1 - a) * fold_right Rmult 1 (map (fun r => 1 - r) l) <= 1.

(** S7: nodes [T] of a tree, each accepted with no more than the probability of its path, and as many likeliest ones *)
Definition S7_nobody_accepts_more : Prop := forall T L (accepted path : nat -> R),
  NoDup T -> NoDup L -> length T = length L -> (forall i, In i T -> accepted i <= path i) ->
  (forall i j, In i L -> In j T -> ~ In j L -> path j <= path i) -> sum T accepted <= sum L path.

(** ... on one level, where no token of a path has more than [r] *)
Definition S7_level : Prop := forall T (accepted : nat -> R) (path : nat -> list R) r d,
  (forall i, In i T -> length (path i) = d /\ (forall x, In x (path i) -> 0 <= x <= r) /\
     accepted i <= fold_right Rmult 1 (path i)) ->
  sum T (fun i => fold_right Rmult 1 (path i)) <= 1 -> sum T accepted <= Rmin 1 (INR (length T) * r ^ d).

(** ... from entropy: the path to the last accepted node carries at most the logarithm of the number of nodes; the
    output, of a mean entropy of [mu] a token, at most that of the number of words it can be. *)
Definition S7_entropy : Prop :=
  (forall T (ended path : nat -> R), sum T ended = 1 -> (forall i, In i T -> 0 <= ended i <= path i) ->
     sum T (fun i => ended i * ln (1 / path i)) <= ln (INR (length T))) /\
  (forall V p node depth, (forall s, prob V (p s)) ->
     let nodes := passed V (fun _ _ => 1) node (fun _ => 1) depth nil in
     let tokens := passed V p node (fun _ => 1) depth nil in
     let entropy := passed V p node (fun s => - sum (seq 0 V) (fun x => p s x * ln (p s x))) depth nil in
     entropy <= ln (nodes * (INR V - 1) + 1) /\
     forall mu, 0 < mu -> mu * tokens <= entropy -> tokens <= ln (nodes * (INR V - 1) + 1) / mu).

(** ... attained by a full tree where the target is uniform *)
Definition S7_full_tree : Prop := forall V depth, (1 <= V)%nat ->
  let p := fun (_ : list nat) (_ : nat) => / INR V in let full := fun _ : list nat => true in
  let nodes := passed V (fun _ _ => 1) full (fun _ => 1) depth nil in
  (forall s, prob V (p s)) /\ passed V p full (fun _ => 1) depth nil = INR depth /\
  passed V p full (fun s => - sum (seq 0 V) (fun x => p s x * ln (p s x))) depth nil = INR depth * ln (INR V) /\
  INR depth * ln (INR V) = ln (nodes * (INR V - 1) + 1).

(** ** phi *)
Definition phi_bounds : Prop := forall x,
  0 <= x <= 1 -> x * x / 2 <= phi x /\ phi x <= x * ln 2 /\ phi x <= ln 2.

Definition phi_convexity : Prop := forall x y t,
  -1 <= x <= 1 -> -1 <= y <= 1 -> 0 <= t <= 1 ->
  phi (t * x + (1 - t) * y) <= t * phi x + (1 - t) * phi y.
