// The loops over logits. rows.cpp includes this file once per instruction set, each time inside a namespace of its
// own and with LANES the number of floats in a register; hence no include guard.
//
// One traversal of a row yields everything. A group of logits goes into sum e and sum e z, with z = x - reference, the
// running maximum, and e = exp(z / temperature). Groups with a logit above the k-th largest so far are noted, without a
// branch, which would often be mispredicted; those of a block are offered to the top k when its sums are done.

#define INLINE inline __attribute__((always_inline))
#define INLINED __attribute__((always_inline))

template <class Real>
using Vec [[gnu::vector_size(sizeof(Real) * LANES)]] = Real;

constexpr int kVectors = 8;               // registers in a group
constexpr int kGroup = kVectors * LANES;  // logits that share one branch
constexpr int kTogether = 4;              // registers whose exponentials are taken side by side
constexpr int kBlock = 8 * kGroup;        // logits whose sums are taken in Real before they go to double
constexpr int64_t kFirst = 8192;          // logits that are looked at before the others

template <class Real>
INLINE Vec<Real> broadcast(Real x) {
  return x - Vec<Real>{};
}

template <class V, class T>
INLINE V load(const T* from) {
  V v;
  __builtin_memcpy(&v, from, sizeof v);
  return v;
}

#if LANES > 4
// LANES doubles are two registers; the compiler takes comparisons of such pairs apart into single numbers.
#if LANES == 16
using Doubles = __m512d;
#else
using Doubles = __m256d;
#endif
struct Pair { Doubles low, high; };
#endif

// f of each half of LANES doubles: with comparisons in it, since the compiler takes those of register pairs apart.
template <class F, class... Vectors>
INLINE Vec<double> by_halves(F f, const Vectors&... v) {
  using Half [[gnu::vector_size(sizeof(double) * LANES / 2)]] = double;
  struct Halves { Half low, high; };
  return bit_cast<Vec<double>>(Halves{f(bit_cast<Halves>(v).low...), f(bit_cast<Halves>(v).high...)});
}

INLINE Vec<double> absolute(Vec<double> x) { return (Vec<double>)((Vec<uint64_t>)x & ~(uint64_t(1) << 63)); }

// b where either is NaN.
template <class Real>
INLINE Vec<Real> larger(Vec<Real> a, Vec<Real> b) {
#if LANES > 4
  if constexpr (sizeof(Real) == 8) {
    auto x = bit_cast<Pair>(a), y = bit_cast<Pair>(b);
#if LANES == 16
    return bit_cast<Vec<Real>>(Pair{_mm512_max_pd(x.low, y.low), _mm512_max_pd(x.high, y.high)});
#else
    return bit_cast<Vec<Real>>(Pair{_mm256_max_pd(x.low, y.low), _mm256_max_pd(x.high, y.high)});
#endif
  }
#endif
#if LANES == 16
  if constexpr (sizeof(Real) == 4) return (Vec<Real>)_mm512_max_ps((__m512)a, (__m512)b);
#elif LANES == 8
  if constexpr (sizeof(Real) == 4) return (Vec<Real>)_mm256_max_ps((__m256)a, (__m256)b);
#endif
  return a > b ? a : b;
}

// Bit i is set unless x[i] <= bound[i]; so also where either is NaN.
template <class Real>
INLINE unsigned above(Vec<Real> x, Vec<Real> bound) {
#if LANES == 16
  if constexpr (sizeof(Real) == 4) return _mm512_cmp_ps_mask((__m512)x, (__m512)bound, _CMP_NLE_UQ);
  if constexpr (sizeof(Real) == 8) {
    auto a = bit_cast<Pair>(x), b = bit_cast<Pair>(bound);
    return _mm512_cmp_pd_mask(a.low, b.low, _CMP_NLE_UQ) | _mm512_cmp_pd_mask(a.high, b.high, _CMP_NLE_UQ) << 8;
  }
#elif LANES == 8
  if constexpr (sizeof(Real) == 4) return _mm256_movemask_ps(_mm256_cmp_ps((__m256)x, (__m256)bound, _CMP_NLE_UQ));
  if constexpr (sizeof(Real) == 8) {
    auto a = bit_cast<Pair>(x), b = bit_cast<Pair>(bound);
    return _mm256_movemask_pd(_mm256_cmp_pd(a.low, b.low, _CMP_NLE_UQ)) |
           _mm256_movemask_pd(_mm256_cmp_pd(a.high, b.high, _CMP_NLE_UQ)) << 4;
  }
#endif
  unsigned bits = 0;
  for (int i = 0; i < LANES; ++i) bits |= unsigned(!(x[i] <= bound[i])) << i;
  return bits;
}

// A group of logits. Two neighbouring bfloat16 are one 32-bit word, and splitting words into their halves is cheaper than
// widening halves in order; so lane `lane` of v[i] holds the logit at `place<T>(i, lane)`.
template <class T>
INLINE void load_group(const T* from, Vec<RealOf<T>> (&v)[kVectors]) {
#pragma GCC unroll 8
  for (int i = 0; i < kVectors; ++i) {
    if constexpr (std::is_same_v<T, BFloat16>) {
      auto words = load<Vec<uint32_t>>(from + (i & ~1) * LANES);
      v[i] = (Vec<float>)(i & 1 ? words & 0xffff0000u : words << 16);
    } else if constexpr (std::is_same_v<T, Float16>) {
#if LANES == 16
      v[i] = (Vec<float>)_mm512_cvtph_ps(load<__m256i>(from + i * LANES));
#elif LANES == 8
      v[i] = (Vec<float>)_mm256_cvtph_ps(load<__m128i>(from + i * LANES));
#else
      for (int lane = 0; lane < LANES; ++lane) v[i][lane] = to_real(from[i * LANES + lane]);
#endif
    } else {
      v[i] = load<Vec<T>>(from + i * LANES);
    }
  }
}
template <class T>
INLINE int place(int i, int lane) {
  return std::is_same_v<T, BFloat16> ? i / 2 * (2 * LANES) + 2 * lane + i % 2 : i * LANES + lane;
}

template <class Real>
INLINE Vec<Real> largest(const Vec<Real> (&v)[kVectors]) {
  return larger<Real>(larger<Real>(larger<Real>(v[0], v[1]), larger<Real>(v[2], v[3])),
                      larger<Real>(larger<Real>(v[4], v[5]), larger<Real>(v[6], v[7])));
}

// The largest finite number of v's and `sofar`, which is finite.
template <class Real>
INLINE Real greatest(Vec<Real> v, Real sofar) {
  for (int lane = 0; lane < LANES; ++lane) sofar = std::max(sofar, std::min(v[lane], std::numeric_limits<Real>::max()));
  return sofar;
}

// exp(z / temperature) for Exponential<Real>::kLowest <= z / temperature <= 0: 2^n p(f), n the integer nearest the binary
// logarithm and f the rest.
template <class Real>
class Exp {
 public:
  explicit Exp(double temperature) : c_(broadcast(Real(kLog2e / temperature))) {}

  INLINE Vec<Real> operator()(Vec<Real> z) const {
    using E = Exponential<Real>;
    using Bits = Vec<std::make_unsigned_t<typename E::Bits>>;
    Vec<Real> shifted = z * c_ + E::kMagic;
    Vec<Real> rest = z * c_ - (shifted - E::kMagic);
    Vec<Real> power = rest * E::kCoefficients[0] + E::kCoefficients[1];
#pragma GCC unroll 16
    for (int i = 2; i <= E::kDegree; ++i) power = power * rest + E::kCoefficients[i];
    return (Vec<Real>)((Bits)power + ((Bits)shifted << E::kMantissaBits));
  }
  template <int kCount>
  INLINE void operator()(const Vec<Real> (&z)[kCount], Vec<Real> (&e)[kCount]) const {
#pragma GCC unroll 8
    for (int i = 0; i < kCount; ++i) e[i] = (*this)(z[i]);
  }

 private:
  Vec<Real> c_;
};

#if LANES == 16
// A register pair holds 32 powers of two: 2^(n / 32) p(f), with p of degree 2 instead of 5. Fewer products, and it is
// the units for products that the polynomial keeps waiting.
template <>
class Exp<float> {
 public:
  explicit Exp(double temperature)
      : c_(broadcast(float(PowersOfTwo::kSteps * kLog2e / temperature))), low_(load<__m512>(kPowersOfTwo.scaled)),
        high_(load<__m512>(kPowersOfTwo.scaled + LANES)) {}

  template <int kCount>
  INLINE void operator()(const Vec<float> (&z)[kCount], Vec<float> (&e)[kCount]) const {
    using P = PowersOfTwo;
    using E = Exponential<float>;
    Vec<float> shifted[kCount], rest[kCount], p[kCount];
    Vec<uint32_t> power[kCount];
#define EACH _Pragma("GCC unroll 8") for (int i = 0; i < kCount; ++i)
    EACH shifted[i] = z[i] * c_ + E::kMagic;
    EACH rest[i] = z[i] * c_ - (shifted[i] - E::kMagic);
    EACH power[i] = (Vec<uint32_t>)_mm512_permutex2var_ps(low_, (__m512i)shifted[i], high_);
    EACH p[i] = rest[i] * P::kCoefficients[0] + P::kCoefficients[1];
    EACH power[i] += (Vec<uint32_t>)shifted[i] << (E::kMantissaBits - P::kLogSteps);
    EACH p[i] = p[i] * rest[i] + 1.0f;
    EACH e[i] = (Vec<float>)power[i] * p[i];
#undef EACH
  }

 private:
  Vec<float> c_;
  __m512 low_, high_;
};
#endif

// z = x - reference, no lower than exp can tell, and e = exp(z / temperature).
template <class Real>
INLINE void weigh(const Vec<Real>* x, Vec<Real> reference, Vec<Real> lowest, const Exp<Real>& exponential,
                  Vec<Real> (&z)[kTogether], Vec<Real> (&e)[kTogether]) {
#pragma GCC unroll 8
  for (int i = 0; i < kTogether; ++i) z[i] = larger<Real>(lowest, x[i] - reference);
  exponential(z, e);
}

// A sum in double, one per lane.
struct Sum {
  double lanes[LANES] = {};

  template <class V>
  INLINE void add(V v) {
    std::remove_reference_t<decltype(v[0])> terms[LANES];
    __builtin_memcpy(terms, &v, sizeof terms);
    for (int i = 0; i < LANES; ++i) lanes[i] += terms[i];
  }
  // Adds `shift` times the other sum, then scales.
  void rebase(double shift, const Sum& other, double scale) {
    for (int i = 0; i < LANES; ++i) lanes[i] = (lanes[i] + shift * other.lanes[i]) * scale;
  }
  double total() const { return std::accumulate(lanes, lanes + LANES, 0.0); }
};

// The k largest keys, in descending order; places not yet taken hold the key below all others, whose value is NaN.
template <class Real>
class Top {
 public:
  using Key = decltype(pack(Real{}, 0));

  explicit Top(int64_t k) : keys_(k + 1, kEmpty) { keys_[0] = kAlways; }

  Real value(int64_t i) const { return value_of(keys_[i + 1]); }
  Real bound() const { return value_of(keys_.back()); }
  bool full() const { return keys_.back() != kEmpty; }

  INLINE void offer(Real value, int64_t id) {
    Key key = pack(value, uint32_t(id));
    if (key <= keys_.back()) return;
    Key* to = &keys_.back();
    for (; to[-1] < key; --to) *to = to[-1];
    *to = key;
  }

  void copy_to(std::vector<Entry>& out) const {
    for (int64_t i = 1; i < int64_t(keys_.size()) && keys_[i] != kEmpty; ++i) out.push_back({value_of(keys_[i]), id_of(keys_[i])});
  }

 private:
  static constexpr Key kEmpty = Key(1) << (8 * sizeof(Key) - 1), kAlways = ~kEmpty;
  std::vector<Key> keys_;  // behind a sentinel that is above all keys
};

// A row's logits [begin, end) in blocks: in place where they are contiguous and of type T, else copied; a last block
// that is not full is filled up with -inf.
template <class T>
class Blocks {
 public:
  Blocks(const Row& row, int64_t end) : row_(row), end_(end), in_place_(row.stride == 1 && row.dtype == kDtype<T>) {}

  INLINE const T* at(int64_t begin) {
    if (in_place_ && end_ - begin >= kBlock) return reinterpret_cast<const T*>(row_.data) + begin;
    return copy(begin);
  }

 private:
  __attribute__((noinline)) const T* copy(int64_t begin) {
    int64_t count = std::min<int64_t>(kBlock, end_ - begin);
    visit(row_.dtype, [&](auto tag) {
      using From = decltype(tag);
      auto from = reinterpret_cast<const From*>(row_.data) + begin * row_.stride;
      auto convert = [&](int64_t stride) __attribute__((always_inline)) {
        for (int64_t i = 0; i < count; ++i) {
          if constexpr (std::is_same_v<From, T>)
            buffer_[i] = from[i * stride];
          else if constexpr (std::is_floating_point_v<T>)
            buffer_[i] = T(to_real(from[i * stride]));
        }
      };
      if (row_.stride == 1)
        convert(1);  // in registers
      else
        convert(row_.stride);
    });
    std::fill(buffer_ + count, buffer_ + kBlock, negative_infinity<T>());
    return buffer_;
  }

  Row row_;
  int64_t end_;
  bool in_place_;
  T buffer_[kBlock];
};

// Asks for the logits a few microseconds ahead: the hardware stops at each page, and so does a loop that waits for it.
template <class T>
INLINE void prefetch_group(const T* group) {
  auto ahead = reinterpret_cast<const char*>(group) + 4096;
  for (size_t line = 0; line < kGroup * sizeof(T); line += 64) __builtin_prefetch(ahead + line);
}

// Offers those logits of a group that are above `bound`; all of them where it is NaN.
template <class T>
__attribute__((noinline)) void offer(Top<RealOf<T>>& top, const T* group, int64_t first_id, int64_t end, RealOf<T> bound) {
  Vec<RealOf<T>> v[kVectors];
  load_group(group, v);
  for (int i = 0; i < kVectors; ++i)
    for (unsigned lanes = above<RealOf<T>>(v[i], broadcast(bound)); lanes; lanes &= lanes - 1) {
      int at = place<T>(i, __builtin_ctz(lanes));
      if (first_id + at < end) top.offer(to_real(group[at]), first_id + at);
    }
}

// What a row's first logits tell of it before they are summed: their maximum, and a number that k of them are above; NaN if
// there is none. Without it many logits would go into the top k only to leave it soon.
template <class Real>
struct First { Real maximum, below; };

template <class T>
First<RealOf<T>> look_ahead(Blocks<T>& row, int64_t begin, int64_t end, int64_t k) {
  using Real = RealOf<T>;
  constexpr Real kInfinity = std::numeric_limits<Real>::infinity();
  constexpr int kHalvings = 12;
  First<Real> unknown{-kInfinity, std::numeric_limits<Real>::quiet_NaN()};
  const int64_t whole = std::min(end - begin, kFirst) / kBlock * kBlock;
  Vec<Real> v[kVectors], most[kVectors];  // the maxima of as many parts as a group has places
  std::fill(most, most + kVectors, broadcast(-kInfinity));
  for (int64_t i = begin; i < begin + whole; i += kBlock) {
    const T* x = row.at(i);
    for (int j = 0; j < kBlock; j += kGroup) {
      prefetch_group(x + j);
      load_group(x + j, v);
      for (int n = 0; n < kVectors; ++n) most[n] = larger<Real>(most[n], v[n]);
    }
  }
  auto more_than = [&](Real bound) INLINED {
    int64_t count = 0;
    for (const auto& each : most) count += __builtin_popcount(above<Real>(each, broadcast(bound)));
    return count;
  };
  if (more_than(kInfinity)) return unknown;  // NaN
  Real low = kInfinity, high = -kInfinity;
  for (const auto& each : most)
    for (int lane = 0; lane < LANES; ++lane) low = std::min(low, each[lane]), high = std::max(high, each[lane]);
  First<Real> found{high, unknown.below};
  if (!(low > -kInfinity && high < kInfinity && more_than(low) >= k)) return found;
  for (int step = 0; step < kHalvings; ++step) {
    const Real middle = low / 2 + high / 2;
    (more_than(middle) >= k ? low : high) = middle;
  }
  found.below = low;
  return found;
}

template <class T, bool kPair>
void scan(const Segment& segment, Partial& out) {
  using Real = RealOf<T>;
  using V = Vec<Real>;
  constexpr Real kLargest = std::numeric_limits<Real>::max();
  const double temperature = segment.temperature;
  const V lowest = broadcast(Real(Exponential<Real>::kLowest * temperature));
  const V far = broadcast(Real(std::min(Exponential<Real>::kFar * temperature, double(kLargest))));
  const Exp<Real> exponential(temperature);

  Blocks<T> target(segment.target, segment.end), draft(segment.draft, segment.end);
  Top<Real> top(segment.k);
  const First<Real> first = look_ahead(target, segment.begin, segment.end, segment.k);
  V bound = broadcast(first.below);
  V reference = broadcast(-kLargest), draft_reference = reference;
  if (first.maximum > -kLargest) reference = broadcast(std::min(first.maximum, kLargest));
  Sum mass, moment, cross, draft_mass;
  int64_t rebases = 0;

  for (int64_t i = segment.begin; i < segment.end; i += kBlock) {
    const T* x = target.at(i);
    const T* w = kPair ? draft.at(i) : nullptr;
    V block_mass{}, block_moment[2] = {}, block_cross{}, block_draft_mass{};
    auto flush = [&]() __attribute__((always_inline)) {
      mass.add(block_mass);
      moment.add(block_moment[0] + block_moment[1]);
      block_mass = block_moment[0] = block_moment[1] = V{};
      if constexpr (kPair) {
        cross.add(block_cross);
        draft_mass.add(block_draft_mass);
        block_cross = block_draft_mass = V{};
      }
    };
    int candidates[kBlock / kGroup], count = 0;
    for (int j = 0; j < kBlock; j += kGroup) {
      V v[kVectors], u[kVectors];
      prefetch_group(x + j);
      load_group(x + j, v);
      const V most = largest<Real>(v);
      if (__builtin_expect(above<Real>(most, reference), 0)) {
        const Real now = greatest<Real>(most, reference[0]);
        if (now > reference[0]) {
          flush();
          double step = std::max(double(reference[0]) - double(now), -kFarBelow * temperature);
          double scale = std::exp(step / temperature);
          moment.rebase(step, mass, scale);
          if constexpr (kPair) cross.rebase(step, mass, scale);
          mass.rebase(0, mass, scale);
          reference = broadcast(now);
          ++rebases;
        }
      }
      candidates[count] = j;
      count += above<Real>(most, bound) != 0;
      if constexpr (kPair) {
        prefetch_group(w + j);
        load_group(w + j, u);
        const V most = largest<Real>(u);
        if (__builtin_expect(above<Real>(most, draft_reference), 0)) {
          const Real now = greatest<Real>(most, draft_reference[0]);
          if (now > draft_reference[0]) {
            flush();
            double step = double(draft_reference[0]) - double(now);
            cross.rebase(-step, mass, 1);
            draft_mass.rebase(0, draft_mass, std::exp(step / temperature));
            draft_reference = broadcast(now);
            ++rebases;
          }
        }
      }
#pragma GCC unroll 8
      for (int n = 0; n < kVectors; n += kTogether) {
        V z[kTogether], e[kTogether];
        weigh<Real>(v + n, reference, lowest, exponential, z, e);
#pragma GCC unroll 8
        for (int i = 0; i < kTogether; i += 2) {
          block_mass += e[i] + e[i + 1];
          block_moment[0] += e[i] * z[i];
          block_moment[1] += e[i + 1] * z[i + 1];
        }
        if constexpr (kPair) {
          V b[kTogether], f[kTogether], d[kTogether];
#pragma GCC unroll 8
          for (int i = 0; i < kTogether; ++i) {
            const V y = u[n + i] - draft_reference;
            b[i] = larger<Real>(lowest, y);
            d[i] = larger<Real>(-far, v[n + i] - reference - y);
          }
          exponential(b, f);
#pragma GCC unroll 8
          for (int i = 0; i < kTogether; ++i) {
            block_draft_mass += f[i];
            // A token without target mass adds nothing, unless the drafter's logit is NaN. Where the drafter's is so far
            // below that a weight cut at exp(kLowest) would count, the sum is made infinite, which asks for another pass.
            if (__builtin_expect(above<Real>(d[i], far), 0)) {
              d[i] = d[i] > far ? broadcast(std::numeric_limits<Real>::infinity()) : d[i];
              d[i] = v[n + i] == negative_infinity<Real>() ? b[i] - b[i] : d[i];
            }
            block_cross += e[i] * d[i];
          }
        }
      }
    }
    flush();
    if (count == 0) continue;
    for (int n = 0; n < count; ++n) offer(top, x + candidates[n], i + candidates[n], segment.end, bound[0]);
    if (top.full()) bound = broadcast(top.bound());
  }
  out.reference = reference[0];
  out.mass = mass.total();
  out.moment = moment.total();
  out.draft_reference = draft_reference[0];
  out.draft_mass = draft_mass.total();
  out.cross = cross.total();
  out.rebases = rebases;
  top.copy_to(out.top);
}

// ---- Second passes --------------------------------------------------------------------------------------------------

// The sums of `Refined`, in double. Unlike sum e (z - y) every term is a divergence, never negative, and 0 where
// target and draft have the same ratio to their maxima but for e^shift.
inline void refine(const Row& target, const Row& draft, int64_t vocab, double temperature, double maximum,
                   double draft_maximum, double shift, Refined& out) {
  using E = Exponential<double>;
  using V = Vec<double>;
  constexpr double kNothing = -1500;  // exp of less, times any quotient of two doubles, is 0
  // t = d - 1 + e^-d = d^2 / 2 - d^3 / 6 + ...; the first term left out is below 2^-56 of it for |d| <= kSeries.
  constexpr double kSeries = 0.5;
  constexpr int kLast = kFactorials - 1;
  const V lowest = broadcast(E::kLowest * temperature), nothing = broadcast(std::max(kNothing * temperature, -DBL_MAX));
  const V one = broadcast(1.0), factor = broadcast(std::exp(-shift));
  const auto unless_below = [](auto x, auto bound, auto value) INLINED { return x < bound ? decltype(x){} : value; };
  const Exp<double> exponential(temperature);
  Blocks<double> blocks(target, vocab), draft_blocks(draft, vocab);
  Sum mass, difference, terms, weighted_terms, weighted_differences, squares;
  V unequal{};
  for (int64_t i = 0; i < vocab; i += kBlock) {
    const double *x = blocks.at(i), *w = draft_blocks.at(i);
    V block[6] = {};
    for (int j = 0; j < kBlock; j += kTogether * LANES) {
      V v[kTogether], u[kTogether], a[kTogether], b[kTogether], z[kTogether], y[kTogether], e[kTogether], f[kTogether];
      for (int n = 0; n < kTogether; ++n) {
        v[n] = load<V>(x + j + n * LANES);
        u[n] = load<V>(w + j + n * LANES);
      }
      weigh<double>(v, broadcast(maximum), lowest, exponential, z, e);
      weigh<double>(u, broadcast(draft_maximum), lowest, exponential, y, f);
#pragma GCC unroll 8
      for (int n = 0; n < kTogether; ++n) {
        unequal = by_halves([](auto x, auto y, auto sofar, auto one) INLINED { return x == y ? sofar : one; }, v[n], u[n],
                            unequal, one);
        a[n] = v[n] - maximum;
        b[n] = u[n] - draft_maximum;
        e[n] = by_halves(unless_below, a[n], nothing, e[n]);
        f[n] = by_halves(unless_below, b[n], nothing, f[n] * factor);
        // Without target mass the term is the drafter's mass alone.
        V d = by_halves([](auto x, auto one, auto d) INLINED { return x == negative_infinity<double>() ? one : d; }, v[n], one,
                        (a[n] - b[n]) / temperature + shift);
        V series = broadcast(kReciprocalFactorial.of[kLast]);
#pragma GCC unroll 16
        for (int k = kLast - 1; k >= 2; --k) series = kReciprocalFactorial.of[k] - series * d;
        V near = e[n] * (d * d * series), direct = e[n] * (d - 1.0) + f[n];
        V term = by_halves([](auto size, auto near, auto direct) INLINED { return size < kSeries ? near : direct; },
                           absolute(d), near, direct);
        V change = f[n] - e[n], size = 16.0 - (z[n] + y[n]) / temperature;
        block[0] += e[n];
        block[1] += change;
        block[2] += term;
        block[3] += term * size;
        block[4] += absolute(change) * size;
        block[5] += e[n] * size * size;
      }
    }
    mass.add(block[0]);
    difference.add(block[1]);
    terms.add(block[2]);
    weighted_terms.add(block[3]);
    weighted_differences.add(block[4]);
    squares.add(block[5]);
  }
  Sum any;
  any.add(unequal);
  out = {mass.total(), difference.total(), terms.total(), weighted_terms.total(), weighted_differences.total(),
         squares.total(), any.total() == 0};
}

// The logits that are at least `lowest`, in no order, and the `following` largest of the others.
template <class T>
void at_least(const Row& row, int64_t vocab, double lowest, int64_t following, std::vector<double>& values,
              std::vector<Entry>& rest) {
  using Real = RealOf<T>;
  Blocks<T> blocks(row, vocab);
  Top<Real> top(following);
  Real bound = top.bound();  // below `lowest`, as all in `top` is; NaN, and nothing is left out, until it is full
  for (int64_t i = 0; i < vocab; i += kBlock) {
    const T* x = blocks.at(i);
    for (int j = 0; j < kBlock; j += kGroup) {
      Vec<Real> v[kVectors];
      prefetch_group(x + j);
      load_group(x + j, v);
      if (!above<Real>(largest<Real>(v), broadcast(bound))) continue;
      for (int n = 0; n < kVectors; ++n)
        for (unsigned lanes = above<Real>(v[n], broadcast(bound)); lanes; lanes &= lanes - 1) {
          const int64_t id = i + j + place<T>(n, __builtin_ctz(lanes));
          const Real value = to_real(x[id - i]);
          if (id >= vocab) continue;
          if (double(value) >= lowest)
            values.push_back(value);
          else
            top.offer(value, id);
        }
      bound = top.bound();
    }
  }
  top.copy_to(rest);
}

// ln(x) for finite x >= 1: x = 2^n m with m near 1, and ln m = 2 atanh(s) with s = (m - 1) / (m + 1), |s| < 0.172.
template <class Real>
INLINE Vec<Real> logarithm(Vec<Real> x) {
  using E = Exponential<Real>;
  using Bits = Vec<typename E::Bits>;
  constexpr typename E::Bits kMantissa = (typename E::Bits(1) << E::kMantissaBits) - 1;
  constexpr Real kLn2 = 0x1.62e42fefa39efp-1;
  Bits shifted = (Bits)x - E::kSqrtHalf;
  Vec<Real> n = __builtin_convertvector(shifted >> E::kMantissaBits, Vec<Real>);
  Vec<Real> m = (Vec<Real>)((Bits)x - (shifted & ~kMantissa));
  Vec<Real> s = (m - Real(1)) / (m + Real(1)), t = s * s, series = broadcast(Real(2.0 / E::kLastOdd));
#pragma GCC unroll 16
  for (int odd = E::kLastOdd - 2; odd >= 1; odd -= 2) series = series * t + Real(2.0 / odd);
  return n * kLn2 + s * series;
}

// sum e ln(1 + scale e) with e = exp((x - maximum) / temperature).
template <class T>
double floored_sum(const Row& row, int64_t vocab, double temperature, double maximum, double scale) {
  using Real = RealOf<T>;
  using V = Vec<Real>;
  const V lowest = broadcast(Real(Exponential<Real>::kLowest * temperature)), reference = broadcast(Real(maximum));
  const V factor = broadcast(Real(scale));
  const Exp<Real> exponential(temperature);
  Blocks<T> blocks(row, vocab);
  Sum sum;
  for (int64_t i = 0; i < vocab; i += kBlock) {
    const T* x = blocks.at(i);
    V block[2] = {};
    for (int j = 0; j < kBlock; j += kGroup) {
      V v[kVectors];
      prefetch_group(x + j);
      load_group(x + j, v);
#pragma GCC unroll 8
      for (int n = 0; n < kVectors; n += kTogether) {
        V z[kTogether], e[kTogether];
        weigh<Real>(v + n, reference, lowest, exponential, z, e);
#pragma GCC unroll 8
        for (int k = 0; k < kTogether; ++k) block[k % 2] += e[k] * logarithm<Real>(Real(1) + e[k] * factor);
      }
    }
    sum.add(block[0] + block[1]);
  }
  return sum.total();
}

inline const Kernels kKernels = {
    {scan<float, false>, scan<BFloat16, false>, scan<Float16, false>, scan<double, false>},
    {scan<float, true>, scan<BFloat16, true>, scan<Float16, true>, scan<double, true>},
    {at_least<float>, at_least<BFloat16>, at_least<Float16>, at_least<double>},
    {floored_sum<float>, floored_sum<BFloat16>, floored_sum<Float16>, floored_sum<double>},
    refine,
};
