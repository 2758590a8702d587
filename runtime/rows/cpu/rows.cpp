#include "rows.h"

#include "../../generated/budgets.h"
#include "../../generated/formulas.h"

#include <algorithm>
#include <atomic>
#include <cfloat>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>
#include <numeric>
#include <type_traits>
#include <utility>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace {

namespace budgets = draftcert::budgets;

// ---- Types of logits ------------------------------------------------------------------------------------------------

struct BFloat16 { uint16_t bits; };
struct Float16 { uint16_t bits; };

template <class To, class From>
inline To bit_cast(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}

inline float to_real(float x) { return x; }
inline double to_real(double x) { return x; }
inline float to_real(BFloat16 x) { return bit_cast<float>(uint32_t(x.bits) << 16); }
inline float to_real(Float16 x) {
  uint32_t magnitude = uint32_t(x.bits & 0x7fff) << 13;
  if (magnitude >= 0x7c00u << 13)
    magnitude |= 0x7f800000;  // infinity, NaN
  else
    magnitude = bit_cast<uint32_t>(bit_cast<float>(magnitude) * 0x1p112f);  // the exponent's bias; subnormals too
  return bit_cast<float>(magnitude | uint32_t(x.bits & 0x8000) << 16);
}

template <class T> inline T negative_infinity() { return -std::numeric_limits<T>::infinity(); }
template <> inline BFloat16 negative_infinity() { return {0xff80}; }
template <> inline Float16 negative_infinity() { return {0xfc00}; }

template <class T> using RealOf = decltype(to_real(T{}));

template <class T> constexpr int kDtype = -1;
template <> constexpr int kDtype<float> = DRAFTCERT_FLOAT32;
template <> constexpr int kDtype<BFloat16> = DRAFTCERT_BFLOAT16;
template <> constexpr int kDtype<Float16> = DRAFTCERT_FLOAT16;
template <> constexpr int kDtype<double> = DRAFTCERT_FLOAT64;

template <class Visitor>
auto visit(int dtype, Visitor&& visitor) {
  switch (dtype) {
    case DRAFTCERT_BFLOAT16: return visitor(BFloat16{});
    case DRAFTCERT_FLOAT16: return visitor(Float16{});
    case DRAFTCERT_FLOAT64: return visitor(double{});
    default: return visitor(float{});
  }
}

// ---- The constants of exponential and logarithm ---------------------------------------------------------------------

// exp(z) = 2^n 2^f, n the integer nearest z log2(e). Adding `magic` rounds to it and leaves n in the low bits.
// Below `lowest` exp(z) counts as exp(lowest): 2^n then is still a normal number, and 1e-38 (1e-304) of the maximum. Times
// a difference of up to `far` that is nothing.
constexpr double kLog2e = 0x1.71547652b82fep+0;

template <class Real> struct Exponential;
template <> struct Exponential<float> {
  // Minimax for |2^f - p(f)| / 2^f on [-1/2, 1/2] under p(0) = 1: 1.09e-7 with these rounded coefficients.
  static constexpr int kDegree = 5;
  static constexpr float kCoefficients[] = {0x1.5bba16p-10f, 0x1.3cea88p-7f, 0x1.c6b752p-5f, 0x1.ebf9bcp-3f, 0x1.62e42ap-1f, 1.0f};
  static constexpr float kMagic = 0x1.8p23f, kLowest = -87.0f, kUnit = 0x1p-24f;
  static constexpr double kFar = 1e20;
  static constexpr int kMantissaBits = 23;
  using Bits = int32_t;
  // Of the logarithm: the bits of sqrt(1/2), and the last term of its series, the next one being below 2e-9 of it.
  static constexpr Bits kSqrtHalf = 0x3f3504f3;
  static constexpr int kLastOdd = 9;
};
template <> struct Exponential<double> {
  // Taylor: ln(2)^k / k!; the rest is below 4e-18.
  static constexpr int kDegree = 13;
  static constexpr double kCoefficients[] = {
      0x1.816193166d0f7p-40, 0x1.c3bd650fc2983p-36, 0x1.e8cac7351bb22p-32, 0x1.e4cf5158b8ec7p-28, 0x1.b5253d395e7c1p-24,
      0x1.62c0223a5c822p-20, 0x1.ffcbfc588b0c5p-17, 0x1.430912f86c786p-13, 0x1.5d87fe78a6730p-10, 0x1.3b2ab6fba4e77p-7,
      0x1.c6b08d704a0bfp-5,  0x1.ebfbdff82c58ep-3,  0x1.62e42fefa39efp-1,  1.0};
  static constexpr double kMagic = 0x1.8p52, kLowest = -700.0, kUnit = 0x1p-53, kFar = 1e280;
  static constexpr int kMantissaBits = 52;
  using Bits = int64_t;
  static constexpr Bits kSqrtHalf = 0x3fe6a09e667f3bcd;
  static constexpr int kLastOdd = 23;
};

// Unit roundoff of all that follows the sums; kUnit of the type is that of the exponentials themselves.
constexpr double kUnit = Exponential<double>::kUnit;

// 2^(n / 32 + f / 32) = 2^k 2^(i / 32) p(f), n = 32 k + i: what one instruction of AVX-512 looks up.
struct PowersOfTwo {
  static constexpr int kLogSteps = 5, kSteps = 1 << kLogSteps;
  // Minimax for |2^(f/32) - p(f)| / 2^(f/32) on [-1/2, 1/2] under p(0) = 1: 5.4e-8 with these rounded coefficients.
  static constexpr float kCoefficients[] = {0x1.ebfbdep-13f, 0x1.62e584p-6f};

  // The bits of 2^(i / 32) less i in the place that n is shifted to, so that adding n there adds k to the exponent.
  int32_t scaled[kSteps];

  PowersOfTwo() {
    for (int i = 0; i < kSteps; ++i)
      scaled[i] = bit_cast<int32_t>(float(std::exp2(double(i) / kSteps))) - (i << (Exponential<float>::kMantissaBits - kLogSteps));
  }
};
const PowersOfTwo kPowersOfTwo;

// 1 / k!, in a table: left to the loops that use it, the compiler multiplies and divides in each of them.
constexpr int kFactorials = 16;
struct ReciprocalFactorials {
  double of[kFactorials] = {1};
  constexpr ReciprocalFactorials() {
    double factorial = 1;  // exact
    for (int k = 1; k < kFactorials; ++k) of[k] = 1 / (factorial *= k);
  }
};
constexpr ReciprocalFactorials kReciprocalFactorial;

// ---- The top k ------------------------------------------------------------------------------------------------------

// (value, id) packed so that the order of integers is the order wanted: larger values first, then lower ids. The
// smallest integer of all is no logit's key: as a value it reads NaN.
inline int64_t pack(float value, uint32_t id) {
  int32_t bits = bit_cast<int32_t>(value + 0.0f);  // -0 becomes +0
  return int64_t(uint64_t(bits ^ (bits >> 31 & 0x7fffffff)) << 32 | uint32_t(~id));
}
inline __int128 pack(double value, uint32_t id) {
  int64_t bits = bit_cast<int64_t>(value + 0.0);
  return __int128((unsigned __int128)(bits ^ (bits >> 63 & 0x7fffffffffffffff)) << 64 | uint32_t(~id));
}
inline float value_of(int64_t key) {
  int32_t bits = int32_t(key >> 32);
  return bit_cast<float>(bits ^ (bits >> 31 & 0x7fffffff));
}
inline double value_of(__int128 key) {
  int64_t bits = int64_t(key >> 64);
  return bit_cast<double>(bits ^ (bits >> 63 & 0x7fffffffffffffff));
}
template <class Key>
int64_t id_of(Key key) { return uint32_t(~key); }

struct Entry { double value; int64_t id; };

// ---- What the loops take and give -----------------------------------------------------------------------------------

struct Row { const char* data; int64_t stride; int dtype; };

// The logits [begin, end) of a row; gaps are taken over the temperature.
struct Segment { Row target, draft; int64_t begin, end, k; double temperature; };

struct Partial {
  double reference, mass, moment;             // sum e, sum e z, with z = x - reference and e = exp(z / temperature)
  double draft_reference, draft_mass, cross;  // sum exp(y / temperature), sum e (z - y), y = the drafter's w - draft_reference
  int64_t rebases;                            // how often these sums were brought to a larger reference
  std::vector<Entry> top;
};

// With e and f the weights of target and draft relative to their maxima, f times e^-shift, d = z - y + shift and
// t = d - 1 + e^-d: sum e, sum f - e, sum e t, and with A = 16 + |z| + |y| sum e t A, sum |f - e| A, sum e A^2.
struct Refined {
  double mass, difference, terms, weighted_terms, weighted_differences, squares;
  bool equal;  // whether all logits are the same
};

struct Kernels {
  void (*scan[4])(const Segment&, Partial&);  // by draftcert_dtype
  void (*scan_pair[4])(const Segment&, Partial&);
  void (*at_least[4])(const Row&, int64_t vocab, double lowest, int64_t following, std::vector<double>&, std::vector<Entry>&);
  double (*floored_sum[4])(const Row&, int64_t vocab, double temperature, double maximum, double scale);
  void (*refine)(const Row& target, const Row& draft, int64_t vocab, double temperature, double maximum,
                 double draft_maximum, double shift, Refined&);
};

constexpr double kFarBelow = 1e4;  // exp(-kFarBelow) is 0

#define LANES 4
namespace portable {
#include "row_kernel.h"
}
#undef LANES

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define DRAFTCERT_X86

#define LANES 8
#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c")
namespace avx2 {
#include "row_kernel.h"
}
#pragma GCC pop_options
#undef LANES

#define LANES 16
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq,avx2,fma,f16c")
namespace avx512 {
#include "row_kernel.h"
}
#pragma GCC pop_options
#undef LANES
#endif

// The widest instruction set there is; -1 where `level` is not.
int supported(int level) {
#ifdef DRAFTCERT_X86
  bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
  bool has_avx512 = has_avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                    __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
  int widest = has_avx512 ? 2 : has_avx2 ? 1 : 0;
#else
  int widest = 0;
#endif
  return level < 0 ? widest : level <= widest ? level : -1;
}

std::atomic<int> instruction_set{supported(-1)};

const Kernels& kernels() {
#ifdef DRAFTCERT_X86
  if (instruction_set == 2) return avx512::kKernels;
  if (instruction_set == 1) return avx2::kKernels;
#endif
  return portable::kKernels;
}

// ---- From partial sums to statistics --------------------------------------------------------------------------------

bool before(const Entry& a, const Entry& b) { return a.value > b.value || (a.value == b.value && a.id < b.id); }

// Brings the sums of two segments of a row to their common maxima and adds them.
void merge(Partial& a, Partial& b, int64_t k, double temperature) {
  double reference = std::max(a.reference, b.reference), draft_reference = std::max(a.draft_reference, b.draft_reference);
  auto rebase = [&](Partial& p) {
    double step = std::max(p.reference - reference, -kFarBelow * temperature), scale = std::exp(step / temperature);
    double draft_step = p.draft_reference - draft_reference;
    p.moment = (p.moment + step * p.mass) * scale;
    p.cross = (p.cross + (step - draft_step) * p.mass) * scale;
    p.mass *= scale;
    p.draft_mass *= std::exp(draft_step / temperature);
  };
  rebase(a);
  rebase(b);
  std::vector<Entry> top;
  std::merge(a.top.begin(), a.top.end(), b.top.begin(), b.top.end(), std::back_inserter(top), before);
  top.resize(std::min<size_t>(top.size(), k));
  a = {reference, a.mass + b.mass, a.moment + b.moment, draft_reference, a.draft_mass + b.draft_mass, a.cross + b.cross,
       a.rebases + b.rebases + 1, top};
}

struct Statistics { double log_mass, log_mass_error, logsumexp, logsumexp_error, entropy, entropy_error; };

// `Real` is the type that the exponentials were taken in.
template <class Real>
Statistics statistics(const Partial& p, int64_t vocab, double temperature) {
  const double u = Exponential<Real>::kUnit, slope = budgets::cpu_slope(temperature);
  const double sums = budgets::cpu_sums(u, kUnit, vocab, p.rebases);
  const double gap = -p.moment / p.mass / temperature;
  Statistics result;
  result.log_mass = std::log(p.mass);
  result.log_mass_error = budgets::log_mass(sums, slope, u, gap);
  result.logsumexp = p.reference / temperature + result.log_mass;
  result.logsumexp_error = budgets::logsumexp(sums, slope, u, kUnit, gap, result.logsumexp);
  result.entropy = result.log_mass + gap;
  result.entropy_error = budgets::entropy(sums, slope, u, std::log(vocab), gap);
  return result;
}

// A row once more, with exponentials in double.
Statistics statistics_in_double(const Row& row, int64_t vocab, double temperature, const Kernels& kernels) {
  Partial sums;
  kernels.scan[DRAFTCERT_FLOAT64]({row, Row{}, 0, vocab, 1, temperature}, sums);
  return statistics<double>(sums, vocab, temperature);
}

struct Divergence { double value, error; };

template <class Real>
Divergence divergence(const Partial& p, int64_t vocab, double temperature) {
  const double u = Exponential<Real>::kUnit, slope = budgets::cpu_slope(temperature);
  const double sums = budgets::cpu_pair_sums(u, kUnit, vocab, p.rebases);
  const double gap = -p.moment / p.mass / temperature;
  const double difference = p.cross / p.mass / temperature, draft_gap = std::max(difference + gap, 0.0);
  return {std::max(difference + std::log(p.draft_mass / p.mass), 0.0),
          budgets::kl(sums, slope, u, std::log(vocab), -Exponential<Real>::kLowest, gap, draft_gap, difference)};
}

#include "certificate.h"

int status_of(const Row& row, int64_t vocab) {
  bool nan = false, positive_infinity = false, all_negative_infinity = true;
  visit(row.dtype, [&](auto tag) {
    auto data = reinterpret_cast<const decltype(tag)*>(row.data);
    for (int64_t i = 0; i < vocab; ++i) {
      auto x = to_real(data[i * row.stride]);
      nan |= std::isnan(x);
      positive_infinity |= std::isinf(x) && x > 0;
      all_negative_infinity &= std::isinf(x) && x < 0;
    }
  });
  return nan                     ? DRAFTCERT_NAN
         : positive_infinity     ? DRAFTCERT_POSITIVE_INFINITY
         : all_negative_infinity ? DRAFTCERT_ALL_NEGATIVE_INFINITY
                                 : DRAFTCERT_ORDINARY;
}

Row row_of(const draftcert_logits& logits, int64_t row) {
  int64_t size = visit(logits.dtype, [](auto tag) { return int64_t(sizeof tag); });
  return {static_cast<const char*>(logits.data) + row * logits.row_stride * size, logits.column_stride, logits.dtype};
}

bool valid(const draftcert_logits* logits, int64_t rows, int64_t vocab) {
  return logits && rows >= 0 && vocab >= 1 && vocab < int64_t(1) << 32 && logits->dtype >= 0 && logits->dtype < 4;
}

// Calls work(i) for i in [0, count); alone where the work is not worth waking a thread.
template <class Work>
void in_parallel(int64_t count, int64_t logits, int threads, Work&& work) {
  constexpr int64_t kWorthAThread = 1 << 14;
  threads = int(std::clamp<int64_t>(std::min(count, logits / kWorthAThread), 1, std::max(threads, 1)));
#pragma omp parallel for schedule(dynamic) num_threads(threads) if (threads > 1)
  for (int64_t i = 0; i < count; ++i) work(i);
}

template <class T, class From>
void put(T* array, int64_t i, From value) {
  if (array) array[i] = value;
}

// A batch of rows: what to compute, and where the results go.
struct Batch {
  const draftcert_logits *target, *draft;
  const draftcert_rule* rule;
  int64_t vocab, k;
  double temperature;
  int dtype;  // of the exponentials, and of the values that are compared
  const Kernels& kernels;
  const draftcert_out& out;

  Row target_row(int64_t row) const { return row_of(*target, row); }
  Row draft_row(int64_t row) const { return draft ? row_of(*draft, row) : Row{}; }

  void scan(int64_t row, int64_t begin, int64_t end, Partial& to) const {
    auto scan = draft ? kernels.scan_pair[dtype] : kernels.scan[dtype];
    scan({target_row(row), draft_row(row), begin, end, k, temperature}, to);
  }

  // Everything that follows from the sums over a row; returns whether the row is ordinary.
  bool finish(int64_t row, Partial& sums) const {
    const bool in_double = dtype == DRAFTCERT_FLOAT64;
    Statistics s = in_double ? statistics<double>(sums, vocab, temperature) : statistics<float>(sums, vocab, temperature);
    Divergence kl{NAN, NAN};
    int status = DRAFTCERT_ORDINARY;
    if (!std::isfinite(sums.moment) || sums.top[0].value == -INFINITY) status = status_of(target_row(row), vocab);
    if (status == DRAFTCERT_NAN) sums.top.assign(k, {NAN, -1});
    Certificate certificate{NAN, NAN, NAN, 0, false, 0};
    if (status != DRAFTCERT_ORDINARY) {
      s = {NAN, NAN, sums.top[0].value, 0, NAN, NAN};
    } else {
      const Row target = target_row(row);
      if (rule) certificate = certificate_of(target, vocab, dtype, temperature, sums.top, s, *rule, kernels);
      if (draft) kl = in_double ? divergence<double>(sums, vocab, temperature) : divergence<float>(sums, vocab, temperature);
      auto undecided = [&] {
        const double largest = certificate.value * std::exp(2 * s.log_mass_error);  // that the certificate may be
        return rule && kl.value - kl.error < largest && certificate.value <= kl.value + kl.error;
      };
      // Infinities met, or the difference of two distributions drowns in rounding, or C lies within it.
      if (draft && (!std::isfinite(sums.cross) || !(kl.error <= kl.value / 128) || undecided())) {
        status = refined_divergence(row, sums, kl);
        if (!in_double && undecided())
          certificate = certificate_of(target, vocab, DRAFTCERT_FLOAT64, temperature, sums.top,
                                       statistics_in_double(target, vocab, temperature, kernels), *rule, kernels);
      }
      if (rule && rule->sound) kl.value += kl.error, kl.error = 0;
    }
    put(out.max, row, sums.top[0].value);
    put(out.argmax, row, sums.top[0].id);
    put(out.logsumexp, row, s.logsumexp);
    put(out.logsumexp_error, row, s.logsumexp_error);
    put(out.entropy, row, s.entropy);
    put(out.entropy_error, row, s.entropy_error);
    put(out.kl, row, kl.value);
    put(out.kl_error, row, kl.error);
    for (int64_t i = 0; i < k; ++i) {
      put(out.top_values, row * k + i, sums.top[i].value);
      put(out.top_ids, row * k + i, sums.top[i].id);
    }
    put(out.value, row, certificate.value);
    put(out.level, row, certificate.level);
    put(out.threshold, row, certificate.threshold);
    put(out.accepted, row, certificate.accepted);
    put(out.exact, row, certificate.exact);
    put(out.passes, row, certificate.passes);
    put(out.certified, row, kl.value < certificate.value);
    put(out.status, row, status);
    return status == DRAFTCERT_ORDINARY;
  }

  // The row again, term by term in double; returns its status.
  int refined_divergence(int64_t row, const Partial& sums, Divergence& kl) const {
    if (!std::isfinite(sums.cross) && status_of(draft_row(row), vocab) != DRAFTCERT_ORDINARY) {
      kl = {NAN, NAN};
      return DRAFTCERT_DRAFT_NOT_ORDINARY;
    }
    Refined r;
    kernels.refine(target_row(row), draft_row(row), vocab, temperature, sums.reference, sums.draft_reference,
                   std::log(sums.draft_mass / sums.mass), r);
    const double terms = r.terms / r.mass, change = r.difference / r.mass;
    kl = {std::max(terms - (change - std::log1p(change)), 0.0),
          budgets::cpu_refined_kl(kUnit, vocab, std::log(vocab), terms, r.weighted_terms / r.mass,
                                  r.weighted_differences / r.mass, r.squares / r.mass, change)};
    if (!std::isfinite(kl.value)) kl = {INFINITY, 0};
    if (r.equal) kl = {0, 0};
    return DRAFTCERT_ORDINARY;
  }
};

}  // namespace

extern "C" {

int64_t draftcert_evaluate(const draftcert_logits* target, const draftcert_logits* draft, const draftcert_rule* rule,
                           int64_t rows, int64_t vocab, int64_t k, double temperature, int threads,
                           const draftcert_out* out) {
  if (!valid(target, rows, vocab) || (draft && !valid(draft, rows, vocab)) || (rule && !valid(*rule, vocab, k)) || k < 1 ||
      k > vocab || !(temperature >= 1e-150 && temperature <= 1e150) || !out)
    return -1;

  // Logits of two types are compared in float32, or float64 where either is.
  int dtype = target->dtype;
  if (draft && draft->dtype != dtype)
    dtype = dtype == DRAFTCERT_FLOAT64 || draft->dtype == DRAFTCERT_FLOAT64 ? DRAFTCERT_FLOAT64 : DRAFTCERT_FLOAT32;
  if (!(temperature >= 0x1p-60 && temperature <= 0x1p60)) dtype = DRAFTCERT_FLOAT64;
  const Batch batch{target, draft, rule, vocab, k, temperature, dtype, kernels(), *out};

  // Few rows are cut into as many segments as there are threads.
  constexpr int64_t kShortest = 1 << 13;
  const int64_t pieces = rows >= 4 * threads ? 1 : std::clamp<int64_t>(threads, 1, vocab / kShortest + 1);
  std::atomic<int64_t> refused{0};
  if (pieces == 1) {
    in_parallel(rows, rows * vocab, threads, [&](int64_t row) {
      Partial sums;
      batch.scan(row, 0, vocab, sums);
      refused += !batch.finish(row, sums);
    });
    return refused;
  }
  const int64_t length = (vocab + pieces - 1) / pieces;
  std::vector<Partial> partials(rows * pieces);
  in_parallel(rows * pieces, rows * vocab, threads, [&](int64_t i) {
    const int64_t begin = i % pieces * length;
    batch.scan(i / pieces, begin, std::min(begin + length, vocab), partials[i]);
  });
  for (int64_t row = 0; row < rows; ++row) {
    Partial& sums = partials[row * pieces];
    for (int64_t i = 1; i < pieces; ++i) merge(sums, partials[row * pieces + i], k, temperature);
    refused += !batch.finish(row, sums);
  }
  return refused;
}

int draftcert_use_instruction_set(int level) {
  int chosen = supported(level);
  if (chosen >= 0) instruction_set = chosen;
  return chosen;
}

}  // extern "C"
