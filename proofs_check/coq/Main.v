(** * The main statements, fully unfolded.

    Every statement below uses only Coq's reals and lists and the notations of
    this file.  The notations are abbreviations that the parser expands: no
    definition of another file occurs in a statement, so a definition weakened
    elsewhere cannot weaken a theorem here; it makes this file fail.

    Vectors over [V] tokens are functions [nat -> R] read at [0 .. V-1]; token
    sets are lists without repetitions.  Two conventions of Coq's reals: [ln x]
    is [0] for [x <= 0], and [x / 0] is [0].  Neither is met in a term
    [p i * ln (p i / q i)] with [0 < p i] and [0 < q i]; with [p i = 0] the term
    is [0].  KL(p||q) is infinite exactly where [FINITE V p q] fails. *)

From Coq Require Import Reals List Arith Lra Lia Sorted.
From Draftcert Require Import Definitions Sums LogFacts Projection Competitors ClosedForm Ceilings.
From Draftcert Require Import StrictGreedy Margins Trees MeanKL Rules Renyi Orders.
Import ListNotations.
Open Scope R_scope.

Notation SUM l f := (fold_right Rplus 0 (map f l)).
Notation DIST V p := ((forall i, (i < V)%nat -> 0 <= p i) /\ SUM (seq 0 V) (fun i => (p i)%R) = 1).
Notation KLD V p q := (SUM (seq 0 V) (fun i => p i * ln (p i / q i))).
Notation FINITE V p q := (forall i, (i < V)%nat -> 0 < p i -> 0 < q i).
(** The competitors [M] all are at least as likely under [q] as every token of [A]. *)
Notation BEATS A M q := (forall i a, In i M -> In a A -> q a <= q i).
(** Some [m] tokens outside [A] beat [A]: no accepted token need be among the top [m] of [q]. *)
Notation REJECTED V A m q :=
  (exists M : list nat, NoDup M /\ length M = m /\ (forall i, In i M -> (i < V)%nat /\ ~ In i A) /\ BEATS A M q).
(** [x] is the least KL(p||q), and it is attained: for given competitors, and over the region. *)
Notation LEAST V A M p x :=
  ((exists q, DIST V q /\ BEATS A M q /\ FINITE V p q /\ KLD V p q = x%R) /\
   (forall q, DIST V q -> BEATS A M q -> FINITE V p q -> x <= KLD V p q)).
Notation CERTIFICATE V A m p x :=
  ((exists q, DIST V q /\ REJECTED V A m q /\ FINITE V p q /\ KLD V p q = x%R) /\
   (forall q, DIST V q -> REJECTED V A m q -> FINITE V p q -> x <= KLD V p q)).
(** [A] and [M] are disjoint sets of tokens of the vocabulary. *)
Notation SETS V A M :=
  (NoDup A /\ NoDup M /\ (forall a, In a A -> (a < V)%nat) /\ (forall i, In i M -> (i < V)%nat /\ ~ In i A)).
(** No rejected token outside [M] is likelier than one in [M]. *)
Notation TOP V A M p :=
  (forall i j, In i M -> (j < V)%nat -> ~ In j A -> ~ In j M -> p j <= p i).
Notation LEVEL A M p c := (SUM A (fun a => Rmax 0 (p a - c)) = SUM M (fun i => Rmax 0 (c - p i))).
Notation MOVED A M p c :=
  (filter (fun a => if Rlt_dec c (p a) then true else false) A ++
   filter (fun i => if Rlt_dec (p i) c then true else false) M).
Notation PHI x := (((1 + x) * ln (1 + x) + (1 - x) * ln (1 - x)) / 2).

(** ** The certificate as a guarantee, and its exactness *)

Theorem guarantee V A m p x :
  CERTIFICATE V A m p x ->
  (forall q, DIST V q -> FINITE V p q -> KLD V p q < x -> ~ REJECTED V A m q) /\
  (forall e, x < e -> exists q, DIST V q /\ FINITE V p q /\ KLD V p q < e /\ REJECTED V A m q).
Proof.
  intros H. split.
  - intros q Hq Hf Hlt. exact (Competitors.guarantee V A m p x q H Hq Hf Hlt).
  - intros e He. destruct H as [(q & h1 & h2 & h3 & h4) _]. exists q.
    split; [assumption|]. split; [assumption|]. split; [now rewrite h4|assumption].
Qed.

(** ** T1 *)

Theorem T1_level_exists V (A M : list nat) p :
  DIST V p -> SETS V A M -> exists c, 0 <= c <= 1 /\ LEVEL A M p c.
Proof. exact (level_exists V A M p). Qed.

(** At every level that solves the equation: the projection is feasible, its KL is
    finite and has the stated value, no feasible q does better, and no other q does as well. *)
Theorem T1_projection V (A M : list nat) p c :
  DIST V p -> SETS V A M -> M <> nil -> 0 <= c -> LEVEL A M p c ->
  exists q,
    ((forall a, In a A -> q a = Rmin (p a) c) /\
     (forall i, In i M -> q i = Rmax (p i) c) /\
     (forall j, ~ In j A -> ~ In j M -> q j = p j)) /\
    DIST V q /\ BEATS A M q /\ FINITE V p q /\
    KLD V p q = SUM (MOVED A M p c) (fun i => p i * ln (p i / c)) /\
    (forall q', DIST V q' -> BEATS A M q' -> FINITE V p q' -> KLD V p q <= KLD V p q') /\
    (forall q', DIST V q' -> BEATS A M q' -> FINITE V p q' -> KLD V p q' <= KLD V p q ->
       forall i, (i < V)%nat -> q' i = q i).
Proof.
  intros Hp Hd HM Hc Hl. exists (levelled A M p c).
  split; [split; [|split]|split; [|split; [|split; [|split; [|split]]]]].
  - intros a Ha. now apply levelled_A.
  - intros i Hi. now apply (levelled_M V).
  - intros j H1 H2. now apply levelled_rest.
  - exact (levelled_prob V A M p c Hp Hd Hc Hl).
  - exact (levelled_beats V A M p c Hd).
  - exact (levelled_finite V A M p c Hp Hd Hc Hl).
  - exact (levelled_value V A M p c Hd).
  - intros q'. exact (levelled_optimal V A M p c Hp Hd Hc Hl q' HM).
  - intros q'. exact (levelled_unique V A M p c Hp Hd Hc Hl q' HM).
Qed.

(** ** T2: the [m] most likely rejected tokens decide the whole region. *)
Theorem T2_worst_competitors V (A M : list nat) p x :
  DIST V p -> SETS V A M -> TOP V A M p -> LEAST V A M p x -> CERTIFICATE V A (length M) p x.
Proof. exact (top_competitors V A M p x). Qed.

(** ... so for any other [m] competitors the least value is no smaller. *)
Theorem T2_among_competitors V (A M M' : list nat) p x x' :
  DIST V p -> SETS V A M -> SETS V A M' -> length M' = length M -> TOP V A M p ->
  LEAST V A M p x -> LEAST V A M' p x' -> x <= x'.
Proof.
  intros Hp Hd (d1 & d2 & d3 & d4) Hlen Htop Hx [(q & h1 & h2 & h3 & <-) _].
  apply (top_competitors V A M p x Hp Hd Htop Hx); [exact h1| |exact h3].
  exists M'. now repeat split; try apply d4.
Qed.

(** ** T3 *)
Theorem T3_level_is_mean (A M : list nat) p c :
  LEVEL A M p c -> SUM (MOVED A M p c) p = INR (length (MOVED A M p c)) * c.
Proof. exact (level_is_mean A M p c). Qed.

(** A pool whose mean separates it from the rest gives the value, in both forms. *)
Theorem T3_closed_form V (A M PA PM : list nat) p :
  let n := INR (length (PA ++ PM)) in
  let S := SUM (PA ++ PM) p in
  let c := S / n in
  DIST V p -> SETS V A M -> M <> nil -> 0 < n ->
  NoDup PA -> NoDup PM -> incl PA A -> incl PM M ->
  (forall a, In a PA -> c <= p a) -> (forall a, In a A -> ~ In a PA -> p a <= c) ->
  (forall i, In i PM -> p i <= c) -> (forall i, In i M -> ~ In i PM -> c <= p i) ->
  LEAST V A M p (SUM (PA ++ PM) (fun i => p i * ln (p i)) - S * ln (S / n)) /\
  LEAST V A M p (SUM (PA ++ PM) (fun i => p i * ln (p i / c) - p i + c)) /\
  (0 < c -> forall i, In i (PA ++ PM) -> 0 <= p i * ln (p i / c) - p i + c).
Proof.
  intros n S c Hp Hd HM Hn h1 h2 h3 h4 h5 h6 h7 h8.
  assert (Hpool : is_pool A M PA PM p c).
  { unfold is_pool. repeat match goal with |- _ /\ _ => split end; auto.
    change (S = n * c). unfold c. field. lra. }
  split; [|split].
  - exact (closed_form V A M PA PM p Hp Hd HM Hn Hpool).
  - exact (closed_form_kl_div V A M PA PM p Hp Hd HM Hn Hpool).
  - intros Hc i Hi. apply kl_div_term_nonneg; [|assumption].
    exact (pool_subset V A M PA PM p c Hp Hd Hpool i Hi).
Qed.

(** ** T4 *)
Theorem T4_ceiling V A m p p1 x :
  DIST V p -> (forall i, (i < V)%nat -> p i <= p1) -> (forall a, In a A -> (a < V)%nat) ->
  CERTIFICATE V A m p x -> x <= ln (1 + INR m * p1) /\ x <= ln (INR m + 1).
Proof.
  intros Hp H1 HA Hx. split; [now apply (ceiling V A m p p1 x)|now apply (ceiling_log V A m p x)].
Qed.

Theorem T4_attained V m :
  (1 <= m)%nat -> (m + 1 <= V)%nat ->
  DIST V (fun i => if Nat.eq_dec i 0 then 1 else 0) /\
  CERTIFICATE V [0%nat] m (fun i => if Nat.eq_dec i 0 then 1 else 0) (ln (INR m + 1)).
Proof.
  intros Hm HV. split; [apply (point_mass_prob V); lia|exact (ceiling_attained V m Hm HV)].
Qed.

(** ** T5 and M1: strict greedy; [a] is a most likely token, [b] a most likely other one. *)
Theorem T5_strict_greedy V a b p :
  DIST V p -> (a < V)%nat -> (b < V)%nat -> a <> b -> p b <= p a ->
  (forall j, (j < V)%nat -> j <> a -> p j <= p b) ->
  let s := p a + p b in let g := p a - p b in
  CERTIFICATE V [a] 1%nat p (p a * ln (2 * p a / s) + p b * ln (2 * p b / s)) /\
  p a * ln (2 * p a / s) + p b * ln (2 * p b / s) = s * PHI (g / s).
Proof.
  intros Hp Ha Hb Hab Hle Htop s g. split.
  - exact (strict_greedy V a b p Hp Ha Hb Hab Hle Htop).
  - apply (two_point_phi (p a) (p b)). split; [now apply Hp|assumption].
Qed.

Theorem M1_bounds V a b p x :
  DIST V p -> (a < V)%nat -> (b < V)%nat -> a <> b -> p b <= p a ->
  (forall j, (j < V)%nat -> j <> a -> p j <= p b) -> CERTIFICATE V [a] 1%nat p x ->
  let g := p a - p b in let s := g + 2 * (1 - g) / INR V in
  PHI g <= x /\ x <= s * PHI (g / s) /\ x <= g * ln 2 /\ (0 < p b -> 0 < g -> x < g * ln 2).
Proof.
  intros Hp Ha Hb Hab Hle Htop Hx g s.
  pose proof (strict_greedy V a b p Hp Ha Hb Hab Hle Htop) as H.
  rewrite (certificate_unique _ _ _ _ _ _ Hx H). pose proof (proj1 Hp b Hb).
  split; [|split; [|split]].
  - apply two_point_ge_phi; [lra|]. now apply (pair_mass_le_1 V).
  - exact (strict_upper_finite V a b p Hp Ha Hb Hab Hle Htop).
  - apply two_point_le_g_ln2. lra.
  - intros h1 h2. apply two_point_lt_g_ln2. unfold g in h2. lra.
Qed.

(** The bound for [V] tokens is attained for every margin; at [V = 2] it is PHI g,
    the infimum; and it tends to [g ln 2], the supremum over all [V]. *)
Theorem M1_attained V g :
  0 <= g <= 1 -> (2 <= V)%nat ->
  let p := fun i => (1 - g) / INR V + (if in_dec Nat.eq_dec i [0%nat] then g else 0) in
  let s := g + 2 * (1 - g) / INR V in
  DIST V p /\ p 0%nat - p 1%nat = g /\ (forall j, j <> 0%nat -> p j = p 1%nat) /\
  CERTIFICATE V [0%nat] 1%nat p (s * PHI (g / s)) /\
  (V = 2%nat -> s * PHI (g / s) = PHI g).
Proof.
  intros Hg HV p s.
  assert (Hpf : forall i, p i = flat_family V g i).
  { intros i. unfold p, flat_family, mem. destruct (in_dec Nat.eq_dec i (0%nat :: nil)); reflexivity. }
  destruct (flat_family_certificate V g Hg HV) as (h1 & h2 & h3).
  split; [|split; [|split; [|split]]].
  - now apply (prob_ext V (flat_family V g)).
  - now rewrite !Hpf.
  - intros j Hj. unfold p.
    destruct (in_dec Nat.eq_dec j [0%nat]) as [[h|[]]|h], (in_dec Nat.eq_dec 1%nat [0%nat]) as [[h'|[]]|h']; try congruence.
  - now apply (certificate_ext V [0%nat] 1 (flat_family V g)).
  - intros ->. assert (Hs : s = 1) by (unfold s; simpl; field). rewrite Hs. unfold Rdiv. rewrite Rinv_1, Rmult_1_r. lra.
Qed.

Theorem M1_supremum g e :
  0 <= g < 1 -> 0 < e -> exists V, (2 <= V)%nat /\ forall N, (V <= N)%nat ->
  let s := g + 2 * (1 - g) / INR N in g * ln 2 - e < s * PHI (g / s).
Proof. exact (strict_supremum g e). Qed.

(** ** M6: the gap to one of the [m] most likely rejected tokens (the [m]-th one, for the sharpest bound) *)
Notation TREE_Y m g :=
  ((g * (INR m - 1) + sqrt (g * g * ((INR m - 1) * (INR m - 1)) + 4 * (1 - g * g))) / (2 * (1 - g))).
Notation TREE_GAP m g :=
  (ln (TREE_Y m g) * g - ln ((INR m - 1 + (TREE_Y m g + / TREE_Y m g)) / (INR m + 1))).

Theorem M6_lower_bound V (A M : list nat) a b m p x g :
  DIST V p -> SETS V A M -> In a A -> length M = m -> TOP V A M p -> In b M ->
  p a - p b = g -> 0 <= g < 1 -> CERTIFICATE V A m p x -> TREE_GAP m g <= x.
Proof.
  intros Hp (d1 & d2 & d3 & d4) Ha Hlen Htop Hb Hgap Hg Hx.
  exact (M6_lower V A M a b m p x g Hp d1 d3 Ha d2 Hlen d4 Htop Hb Hgap Hg Hx).
Qed.

Theorem M6_sharp m g : (1 <= m)%nat -> 0 <= g < 1 ->
  exists p, DIST (m + 1)%nat p /\ p 0%nat - p m = g /\ (forall i, p m <= p i <= p 0%nat) /\
  CERTIFICATE (m + 1)%nat [0%nat] m p (TREE_GAP m g).
Proof. intros Hm Hg. exists (tree_family m (tree_y m g)). exact (M6_attained m g Hm Hg). Qed.

(** ** M7: the gap to the runner-up *)
Notation RUNNER_UP m g :=
  (((1 + INR m * g) * ln (1 + INR m * g) + INR m * (1 - g) * ln (1 - g)) / (INR m + 1)).

Theorem M7_lower_bound V A a m p x g :
  DIST V p -> In a A -> (a < V)%nat -> 0 <= g < 1 -> (1 <= m)%nat ->
  (forall j, (j < V)%nat -> ~ In j A -> p j <= p a - g) -> CERTIFICATE V A m p x -> RUNNER_UP m g <= x.
Proof. exact (M7_lower V A a m p x g). Qed.

Theorem M7_sharp m g : (1 <= m)%nat -> 0 <= g < 1 ->
  exists p, DIST (m + 1)%nat p /\ (forall j, j <> 0%nat -> p j = p 0%nat - g) /\
  CERTIFICATE (m + 1)%nat [0%nat] m p (RUNNER_UP m g).
Proof. intros Hm Hg. exists (flat_family (m + 1) g). exact (M7_attained m g Hm Hg). Qed.

(** ** M3: multiplicative(alpha) *)
Theorem M3_lower_bounds V A a p alpha g x :
  let g0 := (1 - alpha) / (1 + alpha) in
  DIST V p -> NoDup A -> (a < V)%nat ->
  (forall i, In i A <-> (i < V)%nat /\ alpha * p a <= p i) ->
  0 < alpha < 1 -> 0 <= g -> (forall j, (j < V)%nat -> j <> a -> p j <= p a - g) ->
  CERTIFICATE V A 1%nat p x ->
  PHI g <= x /\ g / g0 * PHI g0 <= x /\ (1 + alpha) * p a * PHI g0 <= x.
Proof. exact (multiplicative_bounds V A a p alpha g x). Qed.

(** The chord is the infimum below [g0]: targets of gap [g] come as close to it as wanted. *)
Theorem M3_sharp alpha g e :
  let g0 := (1 - alpha) / (1 + alpha) in
  0 < alpha < 1 -> 0 < g < g0 -> 0 < e ->
  exists V p, DIST V p /\ (2 <= V)%nat /\ p 1%nat = p 0%nat - g /\
    (forall j, (j < V)%nat -> j <> 0%nat -> p j <= p 1%nat) /\
    (forall i, In i [0%nat] <-> (i < V)%nat /\ alpha * p 0%nat <= p i) /\
    exists x, CERTIFICATE V [0%nat] 1%nat p x /\ x < g / g0 * PHI g0 + e.
Proof. exact (multiplicative_sharp alpha g e). Qed.

(** ** M2: additive(t); [g] is at most the gap to every other token *)
Theorem M2_lower_bounds V A a p t g x :
  DIST V p -> NoDup A -> (a < V)%nat -> (forall i, In i A <-> (i < V)%nat /\ p a - t <= p i) ->
  0 <= g -> 0 <= t <= 1 -> (forall j, (j < V)%nat -> j <> a -> p j <= p a - g) ->
  CERTIFICATE V A 1%nat p x -> PHI t <= x /\ PHI g <= x.
Proof. exact (additive_bounds V A a p t g x). Qed.

(** ... where the runner-up [b] is accepted, at the gap [g <= t] *)
Theorem M2_lower_bounds_accepted_runner_up V A a b p t g x :
  DIST V p -> NoDup A -> (a < V)%nat -> (forall i, In i A <-> (i < V)%nat /\ p a - t <= p i) ->
  (b < V)%nat -> b <> a -> p b = p a - g -> 0 <= g <= t -> 2 * t - 1 < g -> CERTIFICATE V A 1%nat p x ->
  let u := (1 + g + t) / 3 in let s := 2 * u - t in
  s * PHI (t / s) <= x /\
  (g <= t / 2 -> ln 3 + (u * ln u + (u - g) * ln (u - g) + (u - t) * ln (u - t)) <= x).
Proof. exact (additive_margin_bounds V A a b p t g x). Qed.

(** ** M4: the [k] accepted tokens are at least as likely as every rejected one *)
Theorem M4_lower_bound V A a p g k x :
  DIST V p -> NoDup A -> (forall i, In i A -> (i < V)%nat) -> In a A -> 0 <= g <= 1 -> length A = k ->
  (forall i j, In i A -> (j < V)%nat -> ~ In j A -> p j <= p i) ->
  (forall j, (j < V)%nat -> j <> a -> p j <= p a - g) -> CERTIFICATE V A 1%nat p x ->
  let s := (2 + (INR k - 1) * g) / (INR k + 1) in s * PHI (g / s) <= x.
Proof. exact (top_k_bound V A a p g k x). Qed.

Theorem M4_sharp k g : (1 <= k)%nat -> 0 <= g <= 1 ->
  let s := (2 + (INR k - 1) * g) / (INR k + 1) in
  exists p, DIST (k + 1)%nat p /\ (forall j, j <> 0%nat -> p j = p 0%nat - g) /\
  CERTIFICATE (k + 1)%nat (seq 0 k) 1%nat p (s * PHI (g / s)).
Proof.
  intros Hk Hg s. exists (flat_family (k + 1) g).
  destruct (top_k_attained k g Hk Hg) as [h1 h2]. split; [exact h1|]. split; [|exact h2].
  intros j Hj. unfold flat_family.
  rewrite (mem_in [0%nat] 0) by now left. rewrite mem_out by (intros [h|[]]; congruence). lra.
Qed.

(** ** M5: no rejected token is above [tau] *)
Theorem M5_lower_bound V A a p g tau x :
  DIST V p -> NoDup A -> (forall i, In i A -> (i < V)%nat) -> In a A -> 0 <= g ->
  (forall j, (j < V)%nat -> j <> a -> p j <= p a - g) ->
  (forall j, (j < V)%nat -> ~ In j A -> p j <= tau) -> 0 < g + 2 * tau -> CERTIFICATE V A 1%nat p x ->
  let s := Rmin 1 (g + 2 * tau) in s * PHI (g / s) <= x.
Proof. exact (threshold_bound V A a p g tau x). Qed.

(** ** T6 *)
Theorem T6_order V A A' m m' p x x' :
  incl A A' -> (m <= m')%nat -> CERTIFICATE V A m p x -> CERTIFICATE V A' m' p x' -> x <= x'.
Proof. exact (certificate_mono V A A' m m' p x x'). Qed.

(** The typical rule (with the exact entropy, [0 < delta < 1]) accepts whatever
    multiplicative(delta) accepts, hence always the argmax. *)
Theorem T6_typical_contains_multiplicative V p p1 i eps delta :
  DIST V p -> (forall j, (j < V)%nat -> p j <= p1) -> 0 < p1 -> (i < V)%nat -> 0 < delta < 1 ->
  delta * p1 <= p i -> Rmin eps (delta * exp (SUM (seq 0 V) (fun j => p j * ln (p j)))) < p i.
Proof. exact (typical_contains_multiplicative V p p1 i eps delta). Qed.

(** ** T7: [a] accepted, [b] the most likely rejected token *)
Theorem T7_two_point V A a b p x :
  DIST V p -> NoDup A -> (forall i, In i A -> (i < V)%nat) -> In a A ->
  (b < V)%nat -> ~ In b A -> (forall j, (j < V)%nat -> ~ In j A -> p j <= p b) -> p b <= p a ->
  CERTIFICATE V A 1%nat p x ->
  let s := p a + p b in
  s * PHI ((p a - p b) / s) <= x /\
  (x = s * PHI ((p a - p b) / s) <-> forall i, In i A -> i <> a -> p i <= s / 2).
Proof.
  intros Hp HA HA' Ha Hb HbA Htop Hle Hx s.
  change (s * PHI ((p a - p b) / s)) with ((p a + p b) * phi ((p a - p b) / (p a + p b))).
  rewrite <- two_point_phi by (split; [now apply Hp|assumption]). split.
  - exact (two_point_bound V A a b p x Hp HA HA' Ha Hb HbA Htop Hle Hx).
  - exact (two_point_equality V A a b p x Hp HA HA' Ha Hb HbA Htop Hle Hx).
Qed.

(** ** B2: the mean-KL guarantee over [N] contexts.

    [ord] lists the contexts with a finite certificate in ascending order of it; in the
    others no drafter can be rejected.  [rej] is any set of contexts in which the drafter
    [q] is rejected: the first [length rej] certificates fit into the budget [N eps], so
    [length rej] is at most the largest [k] whose certificates do. *)
Theorem B2_guarantee N V A m p C (ord : list nat) eps :
  (forall n, (n < N)%nat -> DIST (V n) (p n)) ->
  (forall n, In n ord -> (n < N)%nat) ->
  StronglySorted (fun i j : nat => C i <= C j) ord ->
  (forall n, In n ord -> CERTIFICATE (V n) (A n) (m n) (p n) (C n)) ->
  (forall n, (n < N)%nat -> ~ In n ord -> forall q, DIST (V n) q -> ~ REJECTED (V n) (A n) (m n) q) ->
  forall (q : nat -> nat -> R) (rej : list nat),
  (forall n, (n < N)%nat -> DIST (V n) (q n) /\ FINITE (V n) (p n) (q n)) ->
  SUM (seq 0 N) (fun n => KLD (V n) (p n) (q n)) <= INR N * eps ->
  NoDup rej -> (forall n, In n rej -> (n < N)%nat /\ REJECTED (V n) (A n) (m n) (q n)) ->
  ((length rej <= length ord)%nat /\ SUM (firstn (length rej) ord) C <= INR N * eps) /\
  (forall k, (forall j, (k < j <= length ord)%nat -> INR N * eps < SUM (firstn j ord) C) -> (length rej <= k)%nat).
Proof.
  intros Hp HN Hs Hc Hi q rej Hq Hmean Hn Hr. split.
  - exact (mean_kl_guarantee N V A m p C ord eps Hp Hs Hc Hi q rej Hq Hmean Hn Hr).
  - intros k Hk. exact (mean_kl_at_most N V A m p C ord eps Hp Hs Hc Hi q rej k Hk Hq Hmean Hn Hr).
Qed.

Theorem B2_tight N V A m p C (ord : list nat) eps k :
  (forall n, (n < N)%nat -> DIST (V n) (p n)) ->
  NoDup ord -> (forall n, In n ord -> (n < N)%nat) ->
  (forall n, In n ord -> CERTIFICATE (V n) (A n) (m n) (p n) (C n)) ->
  (k <= length ord)%nat -> SUM (firstn k ord) C <= INR N * eps ->
  exists (q : nat -> nat -> R) (rej : list nat),
    (forall n, (n < N)%nat -> DIST (V n) (q n) /\ FINITE (V n) (p n) (q n)) /\
    SUM (seq 0 N) (fun n => KLD (V n) (p n) (q n)) <= INR N * eps /\
    NoDup rej /\ length rej = k /\
    (forall n, In n rej -> (n < N)%nat /\ REJECTED (V n) (A n) (m n) (q n)).
Proof. intros h1 h2 h3 h4. exact (mean_kl_tight N V A m p C ord eps h1 h2 h3 h4 k). Qed.

(** ** B3: the Renyi divergence of order [a > 0], [a <> 1].

    [PW x a] is [x^a] with [0^a = 0].  The divergence is infinite where [1 < a] and
    [FINITE V p q] fails, and where [a < 1] and the sum is 0. *)
Notation PW x a := (if Rlt_dec 0 x then Rpower x a else 0).
Notation RENYI_SUM V a p q := (SUM (seq 0 V) (fun i => PW (p i) a * PW (q i) (1 - a))).
Notation RENYI V a p q := (ln (RENYI_SUM V a p q) / (a - 1)).
Notation LEAST_RENYI V A M a p v :=
  ((exists q, DIST V q /\ BEATS A M q /\ FINITE V p q /\ 0 < RENYI_SUM V a p q /\ RENYI V a p q = v%R) /\
   (forall q, DIST V q -> BEATS A M q -> (1 < a -> FINITE V p q) -> (a < 1 -> 0 < RENYI_SUM V a p q) ->
      v <= RENYI V a p q)).

(** [S] is the mass of the [n] tokens that the level moves; the level equation holds for powers. *)
Theorem B3_projection V (A M : list nat) p a c :
  DIST V p -> SETS V A M -> M <> nil -> 0 < a -> a <> 1 -> 0 <= c ->
  SUM A (fun i => Rmax 0 (PW (p i) a - PW c a)) = SUM M (fun i => Rmax 0 (PW c a - PW (p i) a)) ->
  let S := SUM (MOVED A M p c) p in let n := INR (length (MOVED A M p c)) in
  LEAST_RENYI V A M a p (a / (a - 1) * ln (1 - S + n * c)).
Proof.
  intros Hp Hd HM Ha Ha1 Hc Hl S n. pose proof (renyi_projection V A M p a c Hp Hd HM Ha Ha1 Hc Hl) as H.
  cbv zeta in H. rewrite (levelled_mass V A M p c Hp Hd) in H. exact H.
Qed.

Theorem B3_level_exists V (A M : list nat) p a :
  DIST V p -> SETS V A M -> 0 < a -> exists c, 0 <= c /\
  SUM A (fun i => Rmax 0 (PW (p i) a - PW c a)) = SUM M (fun i => Rmax 0 (PW c a - PW (p i) a)).
Proof. exact (renyi_level_exists V A M p a). Qed.

(** Strict greedy: the level is the power mean of the two tokens. *)
Theorem B3_strict_greedy V x y p a :
  DIST V p -> (x < V)%nat -> (y < V)%nat -> x <> y -> 0 <= p y <= p x -> 0 < p x -> 0 < a -> a <> 1 ->
  let c := Rpower ((PW (p x) a + PW (p y) a) / 2) (/ a) in
  LEAST_RENYI V [x] [y] a p (a / (a - 1) * ln (1 - (p x + p y) + 2 * c)).
Proof. exact (renyi_strict V x y p a). Qed.

(** ** B3: total variation, with T1's own level *)
Theorem B3_total_variation V (A M : list nat) p c :
  DIST V p -> SETS V A M -> M <> nil -> 0 <= c -> LEVEL A M p c ->
  let v := SUM A (fun a => Rmax 0 (p a - c)) in
  (exists q, DIST V q /\ BEATS A M q /\ SUM (seq 0 V) (fun i => Rabs (p i - q i)) / 2 = v) /\
  (forall q, DIST V q -> BEATS A M q -> v <= SUM (seq 0 V) (fun i => Rabs (p i - q i)) / 2).
Proof. exact (tv_projection V A M p c). Qed.

(** ** B3: the reverse divergence KL(q||p); the level equation holds for logarithms.
    Here KL(q||p) is infinite exactly where [FINITE V q p] fails. *)
Theorem B3_reverse V (A M : list nat) p c :
  DIST V p -> SETS V A M -> M <> nil -> 0 < c ->
  (forall a, In a A -> 0 < p a) -> (forall i, In i M -> 0 < p i) ->
  SUM A (fun a => Rmax 0 (ln (p a) - ln c)) = SUM M (fun i => Rmax 0 (ln c - ln (p i))) ->
  let S := SUM (MOVED A M p c) p in let n := INR (length (MOVED A M p c)) in
  (exists q, DIST V q /\ BEATS A M q /\ FINITE V q p /\ KLD V q p = - ln (1 - S + n * c)) /\
  (forall q, DIST V q -> BEATS A M q -> FINITE V q p -> - ln (1 - S + n * c) <= KLD V q p).
Proof.
  intros Hp Hd HM Hc HA HM' Hl S n. pose proof (reverse_projection V A M p c Hp Hd HM Hc HA HM' Hl) as H.
  cbv zeta in H. rewrite (levelled_mass V A M p c Hp Hd) in H. exact H.
Qed.

(** ** B5: a second evaluation keeps the greedy token: by divergence, and by logits *)
Theorem B5_same_greedy_token V a p p' x :
  CERTIFICATE V [a] 1%nat p x -> DIST V p' -> FINITE V p p' -> KLD V p p' < x ->
  forall j, (j < V)%nat -> j <> a -> p' j < p' a.
Proof. exact (same_greedy_token V a p p' x). Qed.

Theorem B5_logits (z z' : nat -> R) V a d :
  (a < V)%nat -> (forall j, (j < V)%nat -> Rabs (z j - z' j) <= d) ->
  (forall j, (j < V)%nat -> j <> a -> 2 * d < z a - z j) ->
  forall j, (j < V)%nat -> j <> a -> z' j < z' a.
Proof.
  intros Ha Hd Hg j Hj Hja. pose proof (Hd a Ha). pose proof (Hd j Hj). specialize (Hg j Hj Hja).
  unfold Rabs in *. destruct Rcase_abs, Rcase_abs; lra.
Qed.

(** ** phi *)
Theorem phi_bounds x : 0 <= x <= 1 -> x * x / 2 <= PHI x /\ PHI x <= x * ln 2 /\ PHI x <= ln 2.
Proof. intros H. split; [now apply phi_ge_half_sq|]. split; [now apply phi_le_chord|now apply phi_le_ln2]. Qed.

Theorem phi_convexity x y t : -1 <= x <= 1 -> -1 <= y <= 1 -> 0 <= t <= 1 ->
  PHI (t * x + (1 - t) * y) <= t * PHI x + (1 - t) * PHI y.
Proof. exact (phi_convex x y t). Qed.
