// Registers of LANES numbers. layers.cpp includes this file once per instruction set, each time inside a namespace of its
// own; hence no include guard.

using V [[gnu::vector_size(4 * LANES)]] = float;
using Bits [[gnu::vector_size(4 * LANES)]] = uint32_t;
using Integers [[gnu::vector_size(4 * LANES)]] = int32_t;

INLINE V load(const float* from) {
  V v;
  __builtin_memcpy(&v, from, sizeof v);
  return v;
}

INLINE void store(float* to, V v) { __builtin_memcpy(to, &v, sizeof v); }

// The first `count` numbers, then zeros.
INLINE V load_some(const float* from, int64_t count) {
  V v{};
  __builtin_memcpy(&v, from, count * sizeof(float));
  return v;
}

INLINE void store_some(float* to, V v, int64_t count) { __builtin_memcpy(to, &v, count * sizeof(float)); }

// Calls step(i, count, load, store) for the pieces of `size` numbers: whole registers, then what is left.
template <class Step>
INLINE void pieces(int64_t size, Step&& step) {
  int64_t i = 0;
  for (; i + LANES <= size; i += LANES) step(i, [](const float* p) { return load(p); }, [](float* p, V v) { store(p, v); });
  if (int64_t rest = size - i)
    step(i, [rest](const float* p) { return load_some(p, rest); }, [rest](float* p, V v) { store_some(p, v, rest); });
}

// LANES small numbers as integers. The compiler's own conversion takes them out of the register one by one.
#if LANES == 16
INLINE Integers unsigned_bytes(const uint8_t* p) { return (Integers)_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i*)p)); }
INLINE Integers signed_bytes(const uint8_t* p) { return (Integers)_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i*)p)); }
INLINE Integers words(const uint8_t* p) { return (Integers)_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i*)p)); }
INLINE V halves(const uint8_t* p) { return (V)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i*)p)); }
#elif LANES == 8
INLINE Integers unsigned_bytes(const uint8_t* p) { return (Integers)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i*)p)); }
INLINE Integers signed_bytes(const uint8_t* p) { return (Integers)_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i*)p)); }
INLINE Integers words(const uint8_t* p) { return (Integers)_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i*)p)); }
INLINE V halves(const uint8_t* p) { return (V)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i*)p)); }
#else
INLINE Integers unsigned_bytes(const uint8_t* p) { return Integers{p[0], p[1], p[2], p[3]}; }
INLINE Integers signed_bytes(const uint8_t* p) { return Integers{(int8_t)p[0], (int8_t)p[1], (int8_t)p[2], (int8_t)p[3]}; }
INLINE Integers words(const uint8_t* p) {
  uint16_t w[4];
  __builtin_memcpy(w, p, sizeof w);
  return Integers{w[0], w[1], w[2], w[3]};
}
// Sign, and the other bits where float32 has them: that number is 2^112 times too small. The product is exact, subnormal
// numbers included; infinity and NaN, which come out as 2^16 and more, get float32's exponent for them.
INLINE V halves(const uint8_t* p) {
  Bits bits = (Bits)words(p), magnitude = (bits & 0x7fffu) << 13;
  V v = (V)magnitude * 0x1p112f;
  Bits special = (Bits)(v >= 0x1p16f) & 0x7f800000u;
  return (V)((Bits)v | special | (bits & 0x8000u) << 16);
}
#endif

INLINE V floats(Integers i) { return __builtin_convertvector(i, V); }

// The float16 number at `p`, in all lanes.
INLINE V half(const uint8_t* p) {
  uint16_t bits;
  __builtin_memcpy(&bits, p, sizeof bits);
#if LANES == 16
  return (V)_mm512_cvtph_ps(_mm256_set1_epi16(bits));
#elif LANES == 8
  return (V)_mm256_cvtph_ps(_mm_set1_epi16(bits));
#else
  uint16_t all[4] = {bits, bits, bits, bits};
  return halves((const uint8_t*)all);
#endif
}

struct Two { V first, second; };

// The float16 numbers at `p` and `p + 2`, each in all lanes.
INLINE Two two_halves(const uint8_t* p) {
#if LANES == 16
  int bits;
  __builtin_memcpy(&bits, p, sizeof bits);
  __m512 both = _mm512_cvtph_ps(_mm256_set1_epi32(bits));
  return {(V)_mm512_moveldup_ps(both), (V)_mm512_movehdup_ps(both)};
#else
  return {half(p), half(p + 2)};
#endif
}

// (v[0] + v[1]) + (v[2] + v[3]) of each of four.
INLINE Four sum_lanes(const Four (&v)[4]) {
  Four low = Four{v[0][0], v[1][0], v[0][2], v[1][2]} + Four{v[0][1], v[1][1], v[0][3], v[1][3]};
  Four high = Four{v[2][0], v[3][0], v[2][2], v[3][2]} + Four{v[2][1], v[3][1], v[2][3], v[3][3]};
  return Four{low[0], low[1], high[0], high[1]} + Four{low[2], low[3], high[2], high[3]};
}

// Halves of registers are added until four lanes of each are left: those of LANES / 4 registers, side by side.
INLINE V in_fours(const V* v) {
#if LANES == 16
  using Order [[gnu::vector_size(64)]] = int32_t;
  constexpr Order low{0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23};
  constexpr Order even{0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27};
  V first = __builtin_shuffle(v[0], v[1], low) + __builtin_shuffle(v[0], v[1], low + 8);
  V second = __builtin_shuffle(v[2], v[3], low) + __builtin_shuffle(v[2], v[3], low + 8);
  return __builtin_shuffle(first, second, even) + __builtin_shuffle(first, second, even + 4);
#elif LANES == 8
  using Order [[gnu::vector_size(32)]] = int32_t;
  constexpr Order low{0, 1, 2, 3, 8, 9, 10, 11};
  return __builtin_shuffle(v[0], v[1], low) + __builtin_shuffle(v[0], v[1], low + 4);
#else
  return v[0];
#endif
}

// Of every four lanes of four registers the sum, in pairs as `sum_lanes` takes it: lane 4 n + i is that of lanes 4 n to
// 4 n + 3 of the i-th.
INLINE V sums_of_fours(const V (&v)[4]) {
#if LANES == 4
  return sum_lanes(v);
#else
#if LANES == 16
  using Order [[gnu::vector_size(64)]] = int32_t;
  constexpr Order even{0, 2, 16, 18, 4, 6, 20, 22, 8, 10, 24, 26, 12, 14, 28, 30};
#else
  using Order [[gnu::vector_size(32)]] = int32_t;
  constexpr Order even{0, 2, 8, 10, 4, 6, 12, 14};
#endif
  V low = __builtin_shuffle(v[0], v[1], even) + __builtin_shuffle(v[0], v[1], even + 1);
  V high = __builtin_shuffle(v[2], v[3], even) + __builtin_shuffle(v[2], v[3], even + 1);
  return __builtin_shuffle(low, high, even) + __builtin_shuffle(low, high, even + 1);
#endif
}

// The sum of the lanes of each of four registers: halves are added until four lanes are left, then those in pairs. One
// order for all sums; as many registers at once only take fewer steps.
INLINE Four sums_of(const V (&v)[4]) {
  Four parts[4];
  for (int i = 0; i < 4; i += LANES / 4) {
    V fours = in_fours(v + i);
    __builtin_memcpy(parts + i, &fours, sizeof fours);
  }
  return sum_lanes(parts);
}

INLINE float sum(V v) { return sums_of({v, v, v, v})[0]; }
