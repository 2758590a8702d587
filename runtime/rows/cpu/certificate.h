// From the statistics of a row to its accepted set and certificate. rows.cpp includes this file once.
//
// docs/soundness.md derives the rounding budgets.

// ---- The rule -------------------------------------------------------------------------------------------------------

// The exact number lies in [low, high]; NaN where nothing is known, and then nothing is accepted.
struct Interval { double low, high; };

// Two units in the last place outwards: what an operation or a library function may be off by.
inline Interval widened(double low, double high) {
  for (int i = 0; i < 2; ++i) low = std::nextafter(low, -INFINITY), high = std::nextafter(high, INFINITY);
  return {low, high};
}

template <class T>
inline T least(T a, T b) { return a != a || a < b ? a : b; }
template <class T>
inline T greatest(T a, T b) { return a != a || a > b ? a : b; }

// The first `count` tokens of the order, those up to `gap` below the maximum.
struct Cut { int64_t count; double gap; };
struct Cuts { Cut surely, possibly; };

inline Cut cut_and(Cut a, Cut b) { return {std::min(a.count, b.count), least(a.gap, b.gap)}; }
inline Cut cut_or(Cut a, Cut b) { return {std::max(a.count, b.count), greatest(a.gap, b.gap)}; }

template <int kDepth, class T>
class Stack {
 public:
  void push(T x) { items_[size_++] = x; }
  T pop() { return items_[--size_]; }

 private:
  T items_[kDepth];
  int size_ = 0;
};
constexpr int kDeepest = 64;

// Gaps of thresholds from here on are infinite ones, whose enclosure just misses infinity from below.
constexpr double kBeyond = 0x1p1000;

// Whether a program leaves one cut and never reads or writes outside its stacks.
bool valid(const draftcert_rule& rule, int64_t vocab, int64_t k) {
  if (!rule.program || rule.candidates < 1 || rule.candidates >= vocab || k <= rule.candidates) return false;
  int64_t numbers = 0, cuts = 0;
  for (int64_t i = 0; i < rule.length; ++i) {
    int op = rule.program[i].op;
    if (op < DRAFTCERT_CONSTANT || op > DRAFTCERT_OR) return false;
    if (op == DRAFTCERT_RANK && !(rule.program[i].low >= 1 && (rule.program[i].low + rule.candidates <= k || k == vocab))) return false;
    bool two_numbers = op >= DRAFTCERT_ADD && op <= DRAFTCERT_MAXIMUM, two_cuts = op >= DRAFTCERT_AND;
    bool one_number = (op >= DRAFTCERT_EXP && op <= DRAFTCERT_RECIPROCAL) || op == DRAFTCERT_ROW || op == DRAFTCERT_THRESHOLD;
    if (numbers < (two_numbers ? 2 : one_number) || cuts < (two_cuts ? 2 : 0)) return false;
    numbers += op <= DRAFTCERT_LOGIT_RATIO ? 1 : two_numbers || op == DRAFTCERT_ROW || op == DRAFTCERT_THRESHOLD ? -1 : 0;
    cuts += op >= DRAFTCERT_RANK && op <= DRAFTCERT_THRESHOLD ? 1 : two_cuts ? -1 : 0;
    if (numbers > kDeepest || cuts > kDeepest) return false;
  }
  return numbers == 0 && cuts == 1;
}

// What a rule may ask of a row.
struct Known {
  Interval log_top, entropy, logit_ratio;
  std::vector<std::pair<double, Interval>> floored;  // entropies with a floor that were asked for before
};

// The accepted tokens among those whose gaps are given: counts that reach beyond them are their number, unless all
// `vocab` tokens are accepted. The largest finite gap that a threshold asked about goes to `reach`.
template <class FlooredEntropy>
Cuts run(const draftcert_rule& rule, Known& known, const std::vector<double>& gaps, const std::vector<double>& ranked,
         int64_t vocab, FlooredEntropy&& floored_entropy, double& reach) {
  Stack<kDeepest, Interval> numbers;
  Stack<kDeepest, Cuts> cuts;
  auto monotone = [&](auto&& function) {
    Interval x = numbers.pop();
    numbers.push(widened(function(x.low), function(x.high)));
  };
  auto entropy = [&](double floor) {
    if (floor == 0) return known.entropy;
    for (auto& [of, value] : known.floored)
      if (of == floor) return value;
    return known.floored.emplace_back(floor, floored_entropy(floor)).second;
  };
  auto everything_if = [&](bool holds) { return Cut{holds ? vocab : 0, holds ? INFINITY : -INFINITY}; };
  for (const draftcert_instruction* step = rule.program; step < rule.program + rule.length; ++step) {
    switch (step->op) {
      case DRAFTCERT_CONSTANT: numbers.push({step->low, step->high}); break;
      case DRAFTCERT_LOG_TOP: numbers.push(known.log_top); break;
      case DRAFTCERT_ENTROPY: numbers.push(entropy(step->low)); break;
      case DRAFTCERT_LOGIT_RATIO: numbers.push(known.logit_ratio); break;
      case DRAFTCERT_EXP: monotone([](double x) { return std::exp(x); }); break;
      case DRAFTCERT_LOG: monotone([](double x) { return std::log(x < 0 ? 0 : x); }); break;
      case DRAFTCERT_LOG1P: monotone([](double x) { return std::log1p(x < -1 ? -1 : x); }); break;
      case DRAFTCERT_RECIPROCAL: {
        Interval x = numbers.pop();
        numbers.push(x.low > 0 || x.high < 0 ? widened(1 / x.high, 1 / x.low) : Interval{NAN, NAN});
        break;
      }
      case DRAFTCERT_ADD:
      case DRAFTCERT_MULTIPLY:
      case DRAFTCERT_MINIMUM:
      case DRAFTCERT_MAXIMUM: {
        Interval b = numbers.pop(), a = numbers.pop();
        if (step->op == DRAFTCERT_ADD) {
          numbers.push(widened(a.low + b.low, a.high + b.high));
        } else if (step->op == DRAFTCERT_MULTIPLY) {
          double w = a.low * b.low, x = a.low * b.high, y = a.high * b.low, z = a.high * b.high;
          numbers.push(widened(least(least(w, x), least(y, z)), greatest(greatest(w, x), greatest(y, z))));
        } else if (step->op == DRAFTCERT_MINIMUM) {
          numbers.push({least(a.low, b.low), least(a.high, b.high)});
        } else {
          numbers.push({greatest(a.low, b.low), greatest(a.high, b.high)});
        }
        break;
      }
      case DRAFTCERT_RANK: {
        int64_t limit = int64_t(std::min(step->low, double(vocab)));  // a rank may be larger than integers are
        Cut cut{limit, ranked[std::min<int64_t>(limit, ranked.size()) - 1]};
        cuts.push({cut, cut});
        break;
      }
      case DRAFTCERT_ROW: {
        Interval x = numbers.pop();
        cuts.push({everything_if(step->strict ? x.low > 0 : x.low >= 0), everything_if(step->strict ? x.high > 0 : x.high >= 0)});
        break;
      }
      case DRAFTCERT_THRESHOLD: {
        Interval bound = numbers.pop();
        // A threshold of 0 or less accepts all tokens. Strictly above 0 are those that have a probability; whether a
        // computed threshold is 0 or less, its gap does not tell.
        const bool everything = !step->strict && bound.low >= kBeyond;
        const bool maybe_everything = bound.high == INFINITY && !(step->strict && bound.low == INFINITY);
        if (!everything) reach = std::max(reach, step->strict || std::isfinite(bound.high) ? bound.high : bound.low);
        Cuts found{{0, bound.low}, {0, bound.high}};
        for (double gap : gaps) {
          double rounded_up = gap * (1 + budgets::gap(kUnit));
          found.surely.count += step->strict ? rounded_up < bound.low : rounded_up <= bound.low;
          found.possibly.count += step->strict ? gap < bound.high : gap <= bound.high;
        }
        if (everything) found.surely.count = vocab;
        if (maybe_everything) found.possibly.count = vocab;
        cuts.push(found);
        break;
      }
      default: {
        Cuts b = cuts.pop(), a = cuts.pop();
        auto combine = step->op == DRAFTCERT_AND ? cut_and : cut_or;
        cuts.push({combine(a.surely, b.surely), combine(a.possibly, b.possibly)});
      }
    }
  }
  return cuts.pop();
}

// ---- The projection -------------------------------------------------------------------------------------------------

struct Projection { double value, level; int64_t pooled; };

// Theorems T1 to T3 from the gaps of the first `accepted` tokens, ascending and asked for one after the other as far as
// they matter, and those of the competitors that follow them.
//
// With r = p/p_(1) - 1 = expm1(-gap), f(x) = sum_A (r - x)_+ - sum_M (x - r)_+ falls in x, and the level is its root: an
// accepted token belongs to the pool iff f < 0 at its own r, a competitor iff f > 0 there. Hence the pool is made of the
// first accepted tokens, and of all competitors unless every accepted token is in it.
template <class Gap>
Projection project(double top_probability, int64_t accepted, Gap&& gap, const std::vector<double>& competitors) {
  const int64_t m = competitors.size();
  std::vector<double> below(m), pool;
  double below_sum = 0, above_sum = 0;
  for (int64_t j = 0; j < m; ++j) below_sum += below[j] = std::expm1(-competitors[j]);
  for (int64_t i = 0; i < accepted; ++i) {
    double r = std::expm1(-gap(i));
    if (above_sum + r - (i + 1 + m) * r + below_sum >= 0) break;
    above_sum += r;
    pool.push_back(r);
  }
  const bool all = int64_t(pool.size()) == accepted;
  double after = 0, sum = above_sum;
  for (int64_t j = m - 1; j >= 0; --j) {
    if (all && !(above_sum - accepted * below[j] - ((m - 1 - j) * below[j] - after) > 0)) break;
    after += below[j];
    pool.push_back(below[j]);
  }
  sum += after;
  const double n = pool.size(), mean = pool.empty() ? 0 : draftcert::level(sum, n);
  double value = 0;
  for (double r : pool) value += draftcert::certificate_of_gaps(top_probability, r, mean);
  return {value, top_probability * (1 + mean), int64_t(pool.size())};
}

// ---- The certificate of a row ---------------------------------------------------------------------------------------

struct Certificate {
  double value, level, threshold;
  int64_t accepted;
  bool exact;
  int passes;
};

// A list that is sorted, smallest first, only as far as it was read.
class Ascending {
 public:
  Ascending(double* begin, double* end) : begin_(begin), sorted_(begin), end_(end) {}

  double operator()(int64_t i) {
    while (begin_ + i >= sorted_) {
      double* next = sorted_ + std::min<int64_t>(std::max<int64_t>(64, 3 * (sorted_ - begin_)), end_ - sorted_);
      if (next < end_) std::nth_element(sorted_, next, end_);
      std::sort(sorted_, next);
      sorted_ = next;
    }
    return begin_[i];
  }

 private:
  double *begin_, *sorted_, *end_;
};

// `top` are the k largest logits, `s` the statistics, of a row that is ordinary; `dtype` is that of the exponentials.
Certificate certificate_of(const Row& row, int64_t vocab, int dtype, double temperature, const std::vector<Entry>& top,
                           Statistics s, const draftcert_rule& rule, const Kernels& kernels) {
  const double maximum = top[0].value, ratio = top[top.size() > 1].value / maximum;
  Known known;
  known.logit_ratio = widened(ratio, ratio);  // 0/0 is NaN, which no comparison accepts

  auto gap_of = [&](double x) { return (maximum - x) / temperature; };
  std::vector<double> ranked;
  for (const Entry& entry : top) ranked.push_back(gap_of(entry.value));
  auto floored_entropy = [&](double floor) {
    // -sum p ln(p + f) = -ln f - sum p ln(1 + p/f).
    const int type = floor < 0x1p-60 ? DRAFTCERT_FLOAT64 : dtype;
    const double mass = std::exp(s.log_mass), gap = s.entropy - s.log_mass;
    const double sum = kernels.floored_sum[type](row, vocab, temperature, maximum, 1 / mass / floor) / mass;
    const double value = -std::log(floor) - sum;
    const double u = type == DRAFTCERT_FLOAT64 ? Exponential<double>::kUnit : Exponential<float>::kUnit;
    const double bound = budgets::cpu_floored_entropy(u, kUnit, budgets::cpu_slope(temperature), vocab, floor, gap, sum,
                                                      value, s.log_mass_error);
    return widened(value - bound, value + bound);
  };
  double reach = 0;
  std::vector<double> gaps = ranked, competitors;
  auto cuts_of_statistics = [&] {
    known.log_top = widened(-s.log_mass - s.log_mass_error, std::min(s.log_mass_error - s.log_mass, 0.0));
    known.entropy = widened(s.entropy - s.entropy_error, s.entropy + s.entropy_error);
    known.floored.clear();
    return run(rule, known, gaps, ranked, vocab, floored_entropy, reach);
  };
  Cuts cuts;
  auto judge = [&] {
    cuts = cuts_of_statistics();
    if (dtype == DRAFTCERT_FLOAT64 || cuts.surely.count == cuts.possibly.count) return;
    dtype = DRAFTCERT_FLOAT64;  // a token within rounding of a threshold: once more, in double
    s = statistics_in_double(row, vocab, temperature, kernels);
    cuts = cuts_of_statistics();
  };
  judge();
  auto chosen = [&]() -> Cut& { return rule.sound ? cuts.surely : cuts.possibly; };
  const int64_t m = rule.candidates, window = ranked.size();
  int passes = 1;
  const bool beyond = chosen().count < vocab && chosen().count + m > window;
  const bool unknown = cuts.surely.count < vocab && cuts.surely.count >= window;  // whether both cuts are the same
  if (window < vocab && (beyond || unknown)) {
    passes = 2;
    // All that any threshold may accept, in no order, then the candidates that follow them.
    const double lowest = maximum - reach * temperature - budgets::lowest_logit(kUnit, reach, temperature, maximum);
    std::vector<double> values;
    std::vector<Entry> rest;
    kernels.at_least[row.dtype](row, vocab, lowest, m, values, rest);
    for (const Entry& entry : rest) values.push_back(entry.value);
    gaps.clear();
    for (double value : values) gaps.push_back(gap_of(value));
    judge();
  }
  const Cut cut = chosen();
  const double top_probability = std::exp(rule.sound ? known.log_top.low : -s.log_mass);
  Certificate result{INFINITY, NAN, top_probability * std::exp(-cut.gap), cut.count, cuts.surely.count == cuts.possibly.count, passes};
  if (cut.count + m > vocab) return result;
  const int64_t accepted = std::max<int64_t>(cut.count, 1);
  double* split = gaps.data() + accepted;
  if (passes == 2) {
    std::nth_element(gaps.data(), split, gaps.data() + gaps.size());
    std::partial_sort(split, split + m, gaps.data() + gaps.size());
  }
  competitors.assign(split, split + m);
  const Projection projection = project(top_probability, accepted, Ascending(gaps.data(), split), competitors);
  result.level = projection.level;
  result.value = cut.count == 0 ? 0 : projection.value;
  if (rule.sound) result.value = std::max(result.value * (1 - budgets::certificate(kUnit, projection.pooled)), 0.0);
  return result;
}
