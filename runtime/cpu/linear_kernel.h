// The products of a linear layer. linear.cpp includes this file once per instruction set, each time inside a namespace of
// its own and with LANES the number of floats in a register; hence no include guard.
//
// A block is R rows of the input times O rows of the weight. Its R O sums stay in registers, so that a loaded register of
// the weight serves R rows and one of the input O. Every sum is taken in LANES partial sums, over i modulo LANES, which
// are then added in one fixed order: R and O do not enter, so a row's bits do not depend on the rows beside it.

using V [[gnu::vector_size(4 * LANES)]] = float;

constexpr int kRows = LANES == 16 ? 6 : 3;  // what the registers hold beside four rows of the weight

INLINE V load(const float* from) {
  V v;
  __builtin_memcpy(&v, from, sizeof v);
  return v;
}

// The last `count` < LANES numbers, and zeros.
INLINE V load_some(const float* from, int64_t count) {
  V v{};
  __builtin_memcpy(&v, from, count * sizeof(float));
  return v;
}

// The sum of the lanes folded into four.
INLINE Four fold(V v) {
  float lanes[LANES];
  __builtin_memcpy(lanes, &v, sizeof v);
#if LANES == 4
  return v;
#else
  auto part = [&](int i) { Four q; __builtin_memcpy(&q, lanes + 4 * i, sizeof q); return q; };
#if LANES == 8
  return part(0) + part(1);
#else
  return (part(0) + part(2)) + (part(1) + part(3));
#endif
#endif
}

template <int R, int O>
void block(const float* x, const float* w, const float* bias, float* y, int64_t in, int64_t out) {
  V sums[R][O] = {};
  auto add = [&](V (&weights)[O], auto&& input) INLINE_LAMBDA {
#pragma GCC unroll 6
    for (int r = 0; r < R; ++r) {
      V values = input(r);
#pragma GCC unroll 4
      for (int o = 0; o < O; ++o) sums[r][o] += weights[o] * values;
    }
  };
  int64_t i = 0;
  V weights[O];
  for (; i + LANES <= in; i += LANES) {
#pragma GCC unroll 4
    for (int o = 0; o < O; ++o) {
      weights[o] = load(w + o * in + i);
      __builtin_prefetch(w + (o + O) * in + i);
    }
    add(weights, [&](int r) INLINE_LAMBDA { return load(x + r * in + i); });
  }
  if (i < in) {
    for (int o = 0; o < O; ++o) weights[o] = load_some(w + o * in + i, in - i);
    add(weights, [&](int r) INLINE_LAMBDA { return load_some(x + r * in + i, in - i); });
  }
#pragma GCC unroll 6
  for (int r = 0; r < R; ++r) {
    Four folded[O];
    for (int o = 0; o < O; ++o) folded[o] = fold(sums[r][o]);
    if constexpr (O == 4) {
      Four total = sum_lanes(folded);
      if (bias) total += load_four(bias);
      __builtin_memcpy(y + r * out, &total, sizeof total);
    } else {
      float total = (folded[0][0] + folded[0][1]) + (folded[0][2] + folded[0][3]);
      y[r * out] = bias ? total + *bias : total;
    }
  }
}

// O outputs of all rows: groups of at most kRows rows, as even as they get.
template <int O>
void outputs(const float* x, const float* w, const float* bias, float* y, int64_t rows, int64_t in, int64_t out) {
  for (int64_t groups = (rows + kRows - 1) / kRows; groups > 0; --groups) {
    int64_t count = (rows + groups - 1) / groups;
    switch (count) {
      case 1: block<1, O>(x, w, bias, y, in, out); break;
      case 2: block<2, O>(x, w, bias, y, in, out); break;
      case 3: block<3, O>(x, w, bias, y, in, out); break;
#if LANES == 16
      case 4: block<4, O>(x, w, bias, y, in, out); break;
      case 5: block<5, O>(x, w, bias, y, in, out); break;
      case 6: block<6, O>(x, w, bias, y, in, out); break;
#endif
    }
    rows -= count, x += count * in, y += count * out;
  }
}
