// What a machine can do at most: numbers read from memory, and multiply-adds in registers. For benchmarks/limits.py.
#include <cstdint>

#if defined(__AVX512F__)
#define LANES 16
#elif defined(__AVX2__)
#define LANES 8
#else
#define LANES 4
#endif

using V [[gnu::vector_size(4 * LANES)]] = float;

// Reads `count` numbers once; returns their sum, so that no read can be left out.
extern "C" float limits_read(const float* numbers, int64_t count, int threads) {
  float total = 0;
#pragma omp parallel for num_threads(threads) schedule(static) reduction(+ : total)
  for (int64_t part = 0; part < count / 4096; ++part) {
    const V* at = (const V*)(numbers + 4096 * part);
    V sums[8] = {};
    for (int i = 0; i < 4096 / LANES; i += 8)
#pragma GCC unroll 8
      for (int j = 0; j < 8; ++j) sums[j] += at[i + j];
    V sum = ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
    for (int i = 0; i < LANES; ++i) total += sum[i];
  }
  return total;
}

// `steps` multiply-adds in each of 12 registers of every thread: enough that none waits for the one before it. Returns how
// many multiplications and additions these were.
extern "C" double limits_multiply_add(int64_t steps, int threads) {
#pragma omp parallel num_threads(threads)
  {
    V sums[12], factor, term;
    for (int i = 0; i < LANES; ++i) factor[i] = 1.0f, term[i] = 1e-9f;
    for (int j = 0; j < 12; ++j) sums[j] = term * (float)j;
    for (int64_t step = 0; step < steps; ++step) {
#pragma GCC unroll 12
      for (int j = 0; j < 12; ++j) sums[j] = sums[j] * factor + term;
    }
    for (int j = 0; j < 12; ++j) __asm__ volatile("" : : "m"(sums[j]));  // or nothing would be computed
  }
  return 2.0 * 12 * LANES * steps * threads;
}
