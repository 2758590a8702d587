// From what people type to certificates. The records generate RULES, PRESETS, EXAMPLES and the functions `certificate`,
// `ceiling` and `logLoss`; this file has no formula of the theory. Whatever is compared is an exact fraction of whole
// numbers: which token is likelier, which reaches a threshold, which is pooled. Only values become doubles.

/** What is wrong, in words, and in which field. */
class Refusal extends Error {
  constructor(field, message) {
    super(message);
    this.field = field;
  }
}

// ---- exact fractions ------------------------------------------------------------------------------------------------

const absolute = (n) => (n < 0n ? -n : n);
const bits = (n) => absolute(n).toString(16).length * 4;

function commonDivisor(a, b) {
  [a, b] = [absolute(a), absolute(b)];
  while (b) [a, b] = [b, a % b];
  return a;
}

function ratio(n, d = 1n) {
  const divisor = commonDivisor(n, d) * (d < 0n ? -1n : 1n);
  return { n: n / divisor, d: d / divisor };
}

const sum = (...terms) => terms.reduce((x, y) => ratio(x.n * y.d + y.n * x.d, x.d * y.d));
const product = (...factors) => factors.reduce((x, y) => ratio(x.n * y.n, x.d * y.d));
const power = (x, k) =>
  k < 0 ? ratio(x.d ** BigInt(-k), x.n ** BigInt(-k)) : ratio(x.n ** BigInt(k), x.d ** BigInt(k));
const difference = (x, y) => sum(x, { n: -y.n, d: y.d });
const compare = (x, y) => Number(x.n * y.d > y.n * x.d) - Number(x.n * y.d < y.n * x.d);
const least = (...values) => values.reduce((x, y) => (compare(x, y) > 0 ? y : x));
const largest = (...values) => values.reduce((x, y) => (compare(x, y) < 0 ? y : x));

/** The double nearest to n/d, or next to it; never 0 for what is not. */
function quotient(n, d) {
  const shift = 64 + bits(d) - bits(n);
  const scaled = shift > 0 ? (n << BigInt(shift)) / d : n / (d << BigInt(-shift));
  const half = Math.trunc(shift / 2); // 2 ** -shift alone can be below any double
  return Number(scaled) * 2 ** -half * 2 ** (half - shift) || Number(scaled > 0n) * Number.MIN_VALUE;
}

function toNumber(x) {
  return quotient(x.n, x.d);
}

const commonUnit = (values) => values.reduce((d, x) => (d % x.d ? (d * x.d) / commonDivisor(d, x.d) : d), 1n);

/** ln of a fraction, which may be beyond any double or as near to 1 as it likes. */
function logarithm({ n, d }) {
  if (2n * absolute(n - d) < d) return n === d ? 0 : Math.log1p(quotient(n - d, d));
  const shift = bits(n) - bits(d);
  const mantissa = shift > 0 ? quotient(n, d << BigInt(shift)) : quotient(n << BigInt(-shift), d);
  return Math.log(mantissa) + shift * Math.LN2;
}

const greatest = (numbers) => numbers.reduce((x, y) => Math.max(x, y));

/** e^-x for fractions x >= 0, in units of 2^-precision: x is halved until the series is short, its value squared. */
function exponentials(fractions, precision) {
  const halvings = 16n + BigInt(bits(BigInt(Math.ceil(greatest(fractions.map(toNumber))))));
  const guard = halvings + 32n;
  const places = BigInt(precision) + guard;
  return fractions.map(({ n, d }) => {
    const x = ((n << places) / d) >> halvings;
    let [value, term] = [1n << places, 1n << places];
    for (let k = 1n; term; k++) {
      term = ((term * x) >> places) / k;
      value += k % 2n ? -term : term;
    }
    for (let k = 0n; k < halvings; k++) value = (value * value) >> places;
    return value >> guard;
  });
}

/** Whether the product of n^k over pairs [n, k] of whole numbers is 1: the n are split until no two share a divisor. */
function productIsOne(powers) {
  const coprime = [];
  const pending = [...powers];
  while (pending.length) {
    const [n, k] = pending.pop();
    if (n === 1n) continue;
    const place = coprime.findIndex(([m]) => commonDivisor(m, n) > 1n);
    if (place < 0) coprime.push([n, k]);
    else {
      const [[m, j]] = coprime.splice(place, 1);
      const shared = commonDivisor(m, n);
      pending.push([shared, j + k], [m / shared, j], [n / shared, k]);
    }
  }
  return coprime.every(([, k]) => k === 0n);
}

/** ln of a whole number in units of 2^-precision, by the series of atanh, up to 2^40 of these units. */
function preciseLogarithm(n, precision) {
  const one = 1n << precision;
  const near = (y) => {
    const z = ((y - one) * one) / (y + one);
    const square = (z * z) / one;
    let [value, term] = [0n, z];
    for (let k = 1n; term; k += 2n, term = (term * square) / one) value += term / k;
    return 2n * value;
  };
  const shift = BigInt(bits(n)) - 2n; // what is left lies between 1/4 and 4
  return near((n * one) >> shift) + shift * near(2n * one);
}

/** The sign of the sum of k ln n over pairs [n, k], exactly. */
function signOfLogarithms(powers) {
  const size = powers.reduce((total, [, k]) => total + absolute(k), 0n);
  for (let precision = BigInt(bits(size)) + 256n; ; precision *= 2n) {
    const total = powers.reduce((value, [n, k]) => value + k * preciseLogarithm(n, precision), 0n);
    if (absolute(total) > size << 40n) return total > 0n ? 1 : -1;
    if (productIsOne(powers)) return 0;
  }
}

// ---- reading --------------------------------------------------------------------------------------------------------

const DECIMAL = /^([+-]?)(\d+\.?\d*|\.\d+)(?:e([+-]?\d+))?$/i;
const MOST_DIGITS = 2000;
const MOST_TOKENS = 300000;
const LARGEST_GAP = 2000;
const MOST_WORDS = 500;
const MOST_BITS = 2 ** 27;

function decimal(text) {
  const [, minus, digits, exponent] = text.match(DECIMAL) ?? [];
  if (!digits || digits.length + Math.abs(exponent ?? 0) > MOST_DIGITS) return null;
  const [whole, places = ""] = digits.split(".");
  const shift = Number(exponent ?? 0) - places.length;
  const n = BigInt(minus + "1") * BigInt(whole + places);
  return shift > 0 ? ratio(n * 10n ** BigInt(shift)) : ratio(n, 10n ** BigInt(-shift));
}

/** A decimal, or a fraction such as 3/10, exactly. */
function readNumber(text, what, field) {
  const parts = text.split("/").map((part) => decimal(part.trim()));
  if (parts.length > 2 || parts.includes(null))
    throw new Refusal(
      field,
      `${what} is “${shortened(text)}”: write a decimal (${MOST_DIGITS} digits at most) or a fraction such as 3/10.`,
    );
  if (parts.length === 2 && parts[1].n === 0n)
    throw new Refusal(field, `${what} is “${shortened(text)}”: it divides by zero.`);
  return parts.length === 2 ? ratio(parts[0].n * parts[1].d, parts[0].d * parts[1].n) : parts[0];
}

const shortened = (text) => (text.length > 40 ? `${text.slice(0, 40)}…` : text);

function readList(text, what, special = {}) {
  const bare = text
    .trim()
    .replace(/^\[|\]$/g, "")
    .trim();
  const entries = bare ? bare.split(/\s*[,;]\s*|\s+/) : [];
  if (entries.length > 1 && entries.at(-1) === "") entries.pop();
  if (!entries.length) throw new Refusal("numbers", "The row is empty: give at least one number.");
  if (entries.length > MOST_TOKENS)
    throw new Refusal("numbers", `${entries.length} numbers: this page reads ${MOST_TOKENS}.`);
  return entries.map(
    (entry, token) => special[entry.toLowerCase()] ?? readNumber(entry, `${what} ${token}`, "numbers"),
  );
}

const MASKED = { n: 0n, d: 0n }; // a logit of minus infinity
const INFINITE = { "-inf": MASKED, "-infinity": MASKED, "−∞": MASKED };

/** A row of whole-numbered weights over their total, most likely first, ties by lowest id. */
class Row {
  constructor(weights, total, logitRatio = null) {
    this.order = weights
      .map((_, token) => token)
      .sort((a, b) => Number(weights[b] > weights[a]) - Number(weights[b] < weights[a]));
    this.weights = weights;
    this.ranked = this.order.map((token) => weights[token]);
    this.total = total;
    this.rest = total - weights.reduce((a, b) => a + b);
    this.statistics = { "p_(1)": ratio(this.ranked[0], total), "z_(2)/z_(1)": logitRatio };
  }

  get size() {
    return this.weights.length;
  }

  /** How many tokens there are: more than any number, where a list leaves some out. */
  get all() {
    return this.rest ? Infinity : this.size;
  }

  // How many tokens satisfy a condition of a rule: always the first so many in the order.

  ranks(limit) {
    return Number(limit.n > BigInt(this.size) ? this.size : limit.n);
  }

  everyIf(value, strict) {
    return value.n > 0n || (value.n === 0n && !strict) ? this.all : 0;
  }

  reaching(threshold, strict) {
    return this.first((weight) => compare({ n: weight, d: this.total }, threshold) >= Number(strict));
  }

  /** Probabilities that reach `scale * exp(sum of k Entropy(f))`: by doubles where these can tell, else exactly. */
  reachingEntropies(scale, entropies, strict) {
    if (scale.n <= 0n) return this.reaching(scale, strict);
    if (this.rest)
      throw new Refusal(
        "rule",
        "This rule depends on the entropy of the whole row, which a list of its top does not give.",
      );
    const exponent = entropies.map(([k, floor]) => toNumber(k) * this.entropy(floor)).reduce((a, b) => a + b);
    const threshold = logarithm(scale) + exponent;
    return this.first((weight) => {
      if (!weight) return false;
      const distance = logarithm({ n: weight, d: this.total }) - threshold;
      const clear = Math.abs(distance) > 1e-10 * (1 + Math.abs(threshold));
      return (clear ? distance : this.side(weight, scale, entropies)) >= (strict ? Number.MIN_VALUE : 0);
    });
  }

  first(accepts) {
    const rejected = this.ranked.findIndex((weight) => !accepts(weight));
    if (rejected >= 0) return rejected;
    return accepts(0n) ? this.all : this.size;
  }

  entropy(floor) {
    let value = 0;
    for (const weight of this.ranked) {
      const raised = { n: weight * floor.d + floor.n * this.total, d: floor.d * this.total };
      if (weight) value -= quotient(weight, this.total) * logarithm(raised);
    }
    return value;
  }

  /** On which side of that threshold weight/total lies: a sum of logarithms of whole numbers has its sign. */
  side(weight, scale, entropies) {
    const common = entropies.reduce((d, [k]) => d * k.d, this.total);
    const powers = [
      [weight, common],
      [this.total, -common],
      [scale.n, -common],
      [scale.d, common],
    ];
    for (const [k, floor] of entropies) {
      const times = new Map();
      for (const each of this.ranked)
        times.set(each, (times.get(each) ?? 0n) + (each * k.n * common) / (this.total * k.d));
      for (const [each, exponent] of times) {
        if (each) powers.push([each * floor.d + floor.n * this.total, exponent], [floor.d * this.total, -exponent]);
      }
    }
    return signOfLogarithms(powers);
  }
}

function readProbabilities(text, normalize, logitRatio) {
  const values = readList(text, "Probability");
  const negative = values.findIndex((value) => value.n < 0n);
  if (negative >= 0) throw new Refusal("numbers", `Probability ${negative} is negative.`);
  let unit = 1n;
  for (const value of values) {
    unit = commonUnit([{ d: unit }, value]);
    if (bits(unit) * values.length > MOST_BITS)
      throw new Refusal("numbers", "These fractions are too long: give decimals.");
  }
  const weights = values.map((value) => value.n * (unit / value.d));
  const total = weights.reduce((a, b) => a + b);
  if (total === 0n) throw new Refusal("numbers", "All probabilities are 0: at least one must be positive.");
  if (total !== unit && !normalize) {
    const excess = quotient(total - unit, unit);
    const told =
      Math.abs(excess) < 1e-6
        ? `1 ${excess < 0 ? "−" : "+"} ${Math.abs(excess).toPrecision(3)}`
        : `${quotient(total, unit)}`;
    throw new Refusal("numbers", `The probabilities sum to ${told}, not 1: correct them or tick “divide by the sum”.`);
  }
  return new Row(weights, total, logitRatio);
}

/** Weights e^z: their common factor is lost in the row, and what is left is precise far below the smallest gap. */
function weightsOf(logarithms, origin, what) {
  const finite = logarithms.filter((z) => z !== MASKED);
  const gaps = finite.map((z) => difference(origin, z));
  const far = greatest(gaps.map(toNumber));
  if (far > LARGEST_GAP)
    throw new Refusal(
      "numbers",
      `A ${what} lies ${Math.round(far)} below the largest: write -inf for a token that is masked.`,
    );
  const finest = greatest(gaps.map((gap) => bits(gap.d)));
  const precision = 256 + finest + Math.ceil(far * Math.LOG2E);
  const values = exponentials(gaps, precision);
  let next = 0;
  return [logarithms.map((z) => (z === MASKED ? 0n : values[next++])), 1n << BigInt(precision)];
}

function readLogits(text) {
  const logits = readList(text, "Logit", INFINITE);
  const ranked = logits.filter((z) => z !== MASKED).sort((a, b) => -compare(a, b));
  if (!ranked.length) throw new Refusal("numbers", "Every logit is minus infinity: at least one must be finite.");
  const [weights] = weightsOf(logits, ranked[0], "logit");
  const compared =
    ranked.length > 1 && ranked[0].n !== 0n ? ratio(ranked[1].n * ranked[0].d, ranked[1].d * ranked[0].n) : null;
  return new Row(
    weights,
    weights.reduce((a, b) => a + b),
    compared,
  );
}

function readLogprobs(text, logitRatio) {
  const listed = readList(text, "Log-probability", INFINITE);
  const zero = ratio(0n);
  listed.forEach((value, k) => {
    if (value !== MASKED && compare(value, zero) > 0) throw new Refusal("numbers", `Log-probability ${k} is above 0.`);
    const before = listed[k - 1];
    if (k && value !== MASKED && (before === MASKED || compare(before, value) < 0))
      throw new Refusal(
        "numbers",
        "The log-probabilities are not in descending order: give the most likely token first.",
      );
  });
  if (listed[0] === MASKED) throw new Refusal("numbers", "The most likely token has log-probability minus infinity.");
  const [weights, one] = weightsOf(listed, zero, "log-probability");
  const total = weights.reduce((a, b) => a + b);
  if (total * 10000n > one * 10001n)
    throw new Refusal("numbers", `The listed probabilities sum to ${quotient(total, one)}, more than 1.`);
  return new Row(weights, total > one ? total : one, logitRatio);
}

let last = { key: "", row: null };

/** The row, read anew only where it has changed: a row of a whole vocabulary takes a second. */
function readRow({ kind, numbers, normalize }, logitRatio) {
  const key = [kind, normalize, logitRatio && fraction(logitRatio), numbers].join();
  if (last.key !== key) {
    const row =
      kind === "probabilities"
        ? readProbabilities(numbers, normalize, logitRatio)
        : kind === "logits"
          ? readLogits(numbers)
          : readLogprobs(numbers, logitRatio);
    last = { key, row };
  }
  return last.row;
}

/** A rule from its text: {family, values}, {all: parts} or {any: parts}; `&` binds tighter than `|`. */
function readRule(text) {
  const tokens = text.match(/[A-Za-z_]\w*|[+-]?[\d.][\d.]*(?:[eE][+-]?\d+)?(?:\s*\/\s*[\d.]+)?|\S/g) ?? [];
  let at = 0;
  const fail = (why) => {
    throw new Refusal("rule", why);
  };
  if (tokens.length > MOST_WORDS)
    fail(`The rule is longer than this page reads: ${MOST_WORDS} names, numbers and signs.`);
  const take = (sign) => tokens[at] === sign && ++at;
  const joined = (sign, key, part) => {
    const parts = [part()];
    while (take(sign)) parts.push(part());
    const flat = parts.flatMap((each) => each[key] ?? [each]);
    const distinct = [...new Map(flat.map((each) => [ruleText(each), each])).values()];
    return distinct.length > 1 ? { [key]: distinct } : distinct[0];
  };
  const anyOf = () => joined("|", "any", allOf);
  const allOf = () => joined("&", "all", one);
  const one = () => {
    if (take("(")) {
      const rule = anyOf();
      return take(")") ? rule : fail("A parenthesis is not closed.");
    }
    const name = tokens[at++];
    if (name === undefined) fail("The rule is not complete: a name is missing.");
    if (Object.hasOwn(PRESETS, name)) fail(`${name} stands for ${PRESETS[name]}: write that.`);
    if (!Object.hasOwn(RULES, name))
      fail(`No rule is called “${shortened(name)}”; there are ${Object.keys(RULES).join(", ")}.`);
    const family = RULES[name];
    const values = {};
    if (take("(") && !take(")")) {
      do {
        const named =
          tokens[at + 1] === "=" ? tokens[(at += 2) - 2] : family.parameters[Object.keys(values).length]?.name;
        const parameter = family.parameters.find((each) => each.name === named && !(named in values));
        if (!parameter) fail(`${name} takes ${signature(name)}.`);
        values[named] = within(parameter, readNumber(tokens[at++] ?? "", `${name}: ${named}`, "rule"), name);
      } while (take(","));
      if (!take(")")) fail("A parenthesis is not closed.");
    }
    if (Object.keys(values).length < family.parameters.length) fail(`${name} takes ${signature(name)}.`);
    return { family: name, values };
  };
  const rule = anyOf();
  return at === tokens.length
    ? rule
    : fail(`“${shortened(tokens[at])}” is unexpected: join rules by & (both accept) or | (either).`);
}

const signature = (name) => RULES[name].parameters.map((each) => each.name).join(", ") || "no parameters";

function within({ name, low, high, whole }, value, rule) {
  if (compare(value, low) < 0 || (high && compare(value, high) > 0) || (whole && value.d !== 1n))
    throw new Refusal(
      "rule",
      `${rule}: ${name} = ${fraction(value)} must be ${whole ? "a whole number" : "a number"} ` +
        (high ? `from ${fraction(low)} to ${fraction(high)}.` : `from ${fraction(low)} up.`),
    );
  return value;
}

const fraction = ({ n, d }) => (d === 1n ? `${n}` : `${n}/${d}`);

function ruleText(rule) {
  if (rule.any) return rule.any.map(ruleText).join(" | ");
  if (rule.all) return rule.all.map((part) => (part.any ? `(${ruleText(part)})` : ruleText(part))).join(" & ");
  const values = RULES[rule.family].parameters.map(({ name }) => fraction(rule.values[name]));
  return rule.family + (values.length ? `(${values.join(", ")})` : "");
}

const atoms = (rule) => (rule.all ?? rule.any)?.flatMap(atoms) ?? [rule];

// ---- certificates ---------------------------------------------------------------------------------------------------

/** How many tokens, most likely first, the rule accepts. */
function acceptedCount(rule, row) {
  if (rule.all) return Math.min(...rule.all.map((part) => acceptedCount(part, row)));
  if (rule.any) return Math.max(...rule.any.map((part) => acceptedCount(part, row)));
  return RULES[rule.family].count(row, { ...rule.values, ...row.statistics });
}

/** T3: from both ends, an accepted token above the mean of the pool or a competitor below it joins, one at a time. */
function selectPool(accepted, competitors) {
  const last = competitors.length - 1;
  if (!accepted.length || competitors[last] >= accepted[0]) return { above: 0, below: 0, mass: 0n, size: 0n };
  let [above, below, mass, size] = [1, 1, accepted[0] + competitors[last], 2n];
  for (;;) {
    if (above < accepted.length && mass < accepted[above] * size) mass += accepted[above++];
    else if (below <= last && competitors[last - below] * size < mass) mass += competitors[last - below++];
    else return { above, below, mass, size };
    size += 1n;
  }
}

/** The certificate of masses over `total`; each token's deviation from the level is exact until it becomes a double. */
function projected(accepted, competitors, total) {
  const pool = selectPool(accepted, competitors);
  const pooled = [...accepted.slice(0, pool.above), ...competitors.slice(competitors.length - pool.below)];
  const level = pool.size ? quotient(pool.mass, pool.size * total) : 0;
  const value = pooled.reduce(
    (c, weight) => c + certificate(level, quotient(weight * pool.size - pool.mass, pool.mass)),
    0,
  );
  return { ...pool, value: pool.size ? Math.max(value, Number.MIN_VALUE) : 0 };
}

/** All that the page shows of a state; throws a Refusal. */
function certify(state) {
  const { kind, candidates, logitRatio: given } = state;
  const rule = readRule(state.rule);
  const needsLogits = atoms(rule).some(({ family }) => RULES[family].needsLogits);
  const logitRatio = needsLogits && kind !== "logits" && given ? readNumber(given, "The ratio", "ratio") : null;
  const row = readRow(state, logitRatio);
  if (needsLogits && row.statistics["z_(2)/z_(1)"] === null)
    throw kind === "logits"
      ? new Refusal("numbers", "This rule compares the second largest logit with the largest, which is 0 or alone.")
      : new Refusal("ratio", "This rule compares raw logits: give z₍₂₎/z₍₁₎, or paste logits.");
  const m = readCandidates(candidates, row);
  const reached = acceptedCount(rule, row);
  const count = Math.min(reached, row.size);
  if (row.rest && reached && reached < row.all && count + m > row.size)
    throw new Refusal(
      "numbers",
      `The list ends too soon: it holds ${row.size} tokens, and ${quotient(row.rest, row.total).toPrecision(3)} ` +
        "of the mass is elsewhere, where tokens that are accepted or compete may be. Give more log-probabilities.",
    );
  const ranked = row.ranked;
  const [accepted, competitors] = [row.order.slice(0, count), row.order.slice(count, count + m)];
  const likeliest = ranked[0];
  const lowest = ranked[Math.max(count, 1) - 1];
  const result = {
    row,
    rule,
    m,
    count,
    accepted,
    competitors,
    pool: [],
    logLoss: lowest && reached <= row.size ? logLoss({ p_1: ratio(likeliest), theta: ratio(lowest) }) : Infinity,
    ceiling: ceiling(m, quotient(likeliest, row.total)),
    bounds: null,
  };
  if (row.size > 1) {
    const margin = ratio(likeliest - ranked[1], row.total);
    result.margin = toNumber(margin);
    // e^z is no fraction: its margin is only as good as 256 bits, which says on which side of a bound's range it lies
    // unless it lies on its end.
    result.bounds = marginBounds(rule, m, margin);
  }
  if (competitors.length < m) return { ...result, value: reached ? Infinity : 0, level: null };
  const pool = projected(ranked.slice(0, count), ranked.slice(count, count + m), row.total);
  const level = pool.size ? ratio(pool.mass, pool.size * row.total) : ratio(ranked[count ? 0 : m - 1], row.total);
  result.pool = [...accepted.slice(0, pool.above), ...competitors.slice(m - pool.below)];
  return { ...result, value: pool.value, level };
}

function readCandidates(candidates, row) {
  const m = /^\d{1,9}$/.test(`${candidates}`.trim()) ? Number(candidates) : 0;
  const most = row.rest ? MOST_CANDIDATES : row.size - 1;
  if (m >= 1 && m <= most) return m;
  if (most < 1) throw new Refusal("numbers", "A row of one token leaves nothing to draft: give two at least.");
  throw new Refusal("candidates", `With ${row.size} tokens the width is a whole number from 1 to ${most}.`);
}

// ---- margin bounds --------------------------------------------------------------------------------------------------

const MOST_LISTED = 100000;
class TooMany extends Error {}

/** The least and the largest certificate of all targets with this margin, over vocabularies of any size. */
function marginBounds(rule, m, margin) {
  const known = { m: ratio(BigInt(m)), g: margin };
  try {
    const [low, high] = ["infimum", "supremum"].map((end) => tightest(rule, end, known));
    return low && high ? { low, high } : null;
  } catch (error) {
    if (error instanceof TooMany) return null;
    throw error;
  }
}

function tightest(rule, end, known) {
  let found = rule.family ? equalAtoms(rule).flatMap((atom) => stated(atom, end, known)) : [];
  const parts = rule.all ?? rule.any;
  if (!found.length && parts) {
    // The certificate is the least (greatest) of those of the parts, and so is its infimum (supremum).
    const own = rule.all ? "infimum" : "supremum";
    const bounds = parts.map((part) => tightest(part, end, known)).filter(Boolean);
    if (bounds.length === parts.length)
      found = [{ ...extreme(bounds, own), sharp: own === end && extreme(bounds, own).sharp }];
  }
  if (!found.length) return null;
  const sharp = found.filter((bound) => bound.sharp);
  const best = extreme(sharp.length ? sharp : found, end === "infimum" ? "supremum" : "infimum");
  return best.value === (end === "infimum" ? Infinity : 0) ? { ...best, sharp: true } : best;
}

const extreme = (bounds, end) =>
  bounds.reduce((x, y) =>
    (end === "infimum" ? y.value < x.value : y.value > x.value) || (y.value === x.value && y.sharp) ? y : x,
  );

/** A rule of one family, and the same predicate as other families have it. */
function equalAtoms(atom) {
  const others = RULES[atom.family].equals
    .filter(({ when }) => when.every(([name, value]) => compare(atom.values[name], value) === 0))
    .map(({ family, values }) => ({ family, values: values(atom.values) }));
  return [atom, ...others];
}

/** What theorems say of a rule: a number, what they say of another rule, or the certificate of extremal rows. */
function stated(atom, end, known) {
  const v = { ...known, ...atom.values };
  const bounds = RULES[atom.family].bounds
    .filter((bound) => bound.end === end && inside(bound.where, v))
    .filter(({ accepts }) => !accepts || acceptedCount(atom, rowOf(accepts.tokens(v))) === accepts.accepted);
  return bounds.flatMap(({ number, other, rows, sharp }) => {
    const found = other
      ? [tightest({ family: other.family, values: other.values(v) }, end, known)].filter(Boolean)
      : (rows ?? [])
          .filter(({ where }) => inside(where, v))
          .map((each) => ({ value: certificateOf(each, v), sharp: true }));
    if (number !== undefined) found.push({ value: number, sharp: true });
    return found.length ? [extreme(found, end)].map((best) => ({ ...best, sharp: best.sharp && sharp })) : [];
  });
}

const inside = (ranges, v) =>
  ranges.every(({ of, from, to, open }) => {
    const value = of(v);
    return (!from || compare(value, from(v)) >= Number(open[0])) && (!to || compare(to(v), value) >= Number(open[1]));
  });

function rowOf(tokens) {
  const masses = listed(tokens);
  const unit = commonUnit(masses);
  return new Row(
    masses.map((mass) => mass.n * (unit / mass.d)),
    unit,
  );
}

function certificateOf({ accepted, competitors }, v) {
  const [above, below] = [listed(accepted(v)), listed(competitors(v))];
  const unit = commonUnit([...above, ...below]);
  const weights = (masses) =>
    masses.map((mass) => mass.n * (unit / mass.d)).sort((a, b) => Number(b > a) - Number(b < a));
  return projected(weights(above), weights(below), unit).value;
}

function listed(tokens) {
  if (tokens.some(([, count]) => count.n > BigInt(MOST_LISTED))) throw new TooMany();
  return tokens.flatMap(([mass, count]) => Array(Number(count.n)).fill(mass));
}
