#include "linear.h"

#include <algorithm>

// Products of few rows with a weight: reading the weight is the cost, and it is read once. A matrix library packs its
// operands first, which pays for many rows only, and for one row waits for memory it could have asked for earlier.

#define INLINE inline __attribute__((always_inline))
#define INLINE_LAMBDA __attribute__((always_inline))

namespace {

using Four [[gnu::vector_size(16)]] = float;

INLINE Four load_four(const float* from) {
  Four v;
  __builtin_memcpy(&v, from, sizeof v);
  return v;
}

// (v[0] + v[1]) + (v[2] + v[3]) of each of four.
INLINE Four sum_lanes(const Four (&v)[4]) {
  Four low = __builtin_shufflevector(v[0], v[1], 0, 4, 2, 6) + __builtin_shufflevector(v[0], v[1], 1, 5, 3, 7);
  Four high = __builtin_shufflevector(v[2], v[3], 0, 4, 2, 6) + __builtin_shufflevector(v[2], v[3], 1, 5, 3, 7);
  return __builtin_shufflevector(low, high, 0, 1, 4, 5) + __builtin_shufflevector(low, high, 2, 3, 6, 7);
}

#define LANES 4
namespace portable {
#include "linear_kernel.h"
}
#undef LANES

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define DRAFTCERT_X86

#define LANES 8
#pragma GCC push_options
#pragma GCC target("avx2,fma")
namespace avx2 {
#include "linear_kernel.h"
}
#pragma GCC pop_options
#undef LANES

#define LANES 16
#pragma GCC push_options
#pragma GCC target("avx512f,avx512vl,avx512dq,avx2,fma,prefer-vector-width=512")
namespace avx512 {
#include "linear_kernel.h"
}
#pragma GCC pop_options
#undef LANES
#endif

using Outputs = void (*)(const float*, const float*, const float*, float*, int64_t, int64_t, int64_t);
struct Kernels { Outputs four, one; };

constexpr Kernels kKernels[] = {
    {portable::outputs<4>, portable::outputs<1>},
#ifdef DRAFTCERT_X86
    {avx2::outputs<4>, avx2::outputs<1>},
    {avx512::outputs<4>, avx512::outputs<1>},
#endif
};

int widest() {
#ifdef DRAFTCERT_X86
  bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  bool has_avx512 = has_avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                    __builtin_cpu_supports("avx512dq");
  return has_avx512 ? 2 : has_avx2 ? 1 : 0;
#else
  return 0;
#endif
}

}  // namespace

extern "C" int draftcert_linear(const float* input, const float* weight, const float* bias, float* output, int64_t rows,
                                int64_t in, int64_t out, int threads, int level) {
  static const int kWidest = widest();
  if (level > kWidest) return -1;
  const Kernels& run = kKernels[level < 0 ? kWidest : level];
  int64_t blocks = (out + 3) / 4;
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t block = 0; block < blocks; ++block)
    for (int64_t first = 4 * block, last = std::min(first + 4, out); first < last;) {
      bool whole = last - first == 4;
      (whole ? run.four : run.one)(input, weight + first * in, bias ? bias + first : nullptr, output + first, rows, in, out);
      first += whole ? 4 : 1;
    }
  return 0;
}
