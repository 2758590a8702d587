// The work within a layer. layers.cpp includes this file once per instruction set, each time inside a namespace of its
// own and with LANES the number of floats in a register; hence no include guard.

using V [[gnu::vector_size(4 * LANES)]] = float;
using Bits [[gnu::vector_size(4 * LANES)]] = uint32_t;

constexpr int kRows = LANES == 16 ? 6 : 3;  // what the registers hold beside four rows of the weight

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

// The lanes folded into four.
INLINE Four fold(V v) {
#if LANES == 4
  return v;
#else
  Four part[LANES / 4];
  __builtin_memcpy(part, &v, sizeof v);
#if LANES == 8
  return part[0] + part[1];
#else
  return (part[0] + part[2]) + (part[1] + part[3]);
#endif
#endif
}

INLINE float sum(V v) {
  Four four = fold(v);
  return (four[0] + four[1]) + (four[2] + four[3]);
}

// exp(x), within 2 units in the last place; 0 below -87. Cephes' polynomial for exp(r), r = x - n ln 2, then times 2^n.
INLINE V exponential(V x) {
  x = x > 88.0f ? 88.0f - V{} : x;
  V shifted = x * 0x1.715476p+0f + 0x1.8p23f;  // the nearest integer n to x / ln 2 is in the low bits
  V n = shifted - 0x1.8p23f;
  V r = x - n * 0x1.62e4p-1f - n * 0x1.7f7d1cp-20f;
  V p = r * 1.9875691500e-4f + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  V y = (p * (r * r) + r) + 1.0f;
  y = (V)((Bits)y + ((Bits)shifted << 23));
  return x < -87.0f ? V{} : y;
}

// R rows of the input times O rows of the weight. The R O sums stay in registers, so that a loaded register of the weight
// serves R rows and one of the input O. Every sum is taken in LANES partial sums, over i modulo LANES, which are then
// added in one fixed order: R and O do not enter, so a row's bits do not depend on the rows beside it.
template <int R, int O>
void block(const float* x, const float* w, const float* bias, float* y, int64_t in, int64_t stride, bool add) {
  V sums[R][O] = {};
  pieces(in, [&](int64_t i, auto load, auto) INLINE_LAMBDA {
    V weights[O];
#pragma GCC unroll 4
    for (int o = 0; o < O; ++o) {
      weights[o] = load(w + o * in + i);
      __builtin_prefetch(w + (o + O) * in + i);
    }
#pragma GCC unroll 6
    for (int r = 0; r < R; ++r) {
      V values = load(x + r * in + i);
#pragma GCC unroll 4
      for (int o = 0; o < O; ++o) sums[r][o] += weights[o] * values;
    }
  });
#pragma GCC unroll 6
  for (int r = 0; r < R; ++r) {
    float* to = y + r * stride;
    if constexpr (O == 4) {
      Four total = sum_lanes({fold(sums[r][0]), fold(sums[r][1]), fold(sums[r][2]), fold(sums[r][3])});
      if (bias) total += load_four(bias);
      if (add) total += load_four(to);
      __builtin_memcpy(to, &total, sizeof total);
    } else {
      float total = sum(sums[r][0]);
      if (bias) total += *bias;
      if (add) total += *to;
      *to = total;
    }
  }
}

// O outputs of all rows: groups of at most kRows rows, as even as they get.
template <int O>
void outputs(const float* x, const float* w, const float* bias, float* y, int64_t rows, int64_t in, int64_t stride, bool add) {
  for (int64_t groups = (rows + kRows - 1) / kRows; groups > 0; --groups) {
    int64_t count = (rows + groups - 1) / groups;
    switch (count) {
      case 1: block<1, O>(x, w, bias, y, in, stride, add); break;
      case 2: block<2, O>(x, w, bias, y, in, stride, add); break;
      case 3: block<3, O>(x, w, bias, y, in, stride, add); break;
#if LANES == 16
      case 4: block<4, O>(x, w, bias, y, in, stride, add); break;
      case 5: block<5, O>(x, w, bias, y, in, stride, add); break;
      case 6: block<6, O>(x, w, bias, y, in, stride, add); break;
#endif
    }
    rows -= count, x += count * in, y += count * stride;
  }
}

// Outputs [first, last) of all rows.
void product(const float* x, const Product& p, int64_t first, int64_t last, int64_t rows, int64_t in) {
  auto from = [&](int64_t o) { return p.bias ? p.bias + o : nullptr; };
  for (; first + 4 <= last; first += 4)
    outputs<4>(x, p.weight + first * in, from(first), p.output + first, rows, in, p.stride, p.add);
  for (; first < last; ++first)
    outputs<1>(x, p.weight + first * in, from(first), p.output + first, rows, in, p.stride, p.add);
}

void norm(const float* x, const float* weight, float* y, int64_t size, float epsilon) {
  V squares{};
  pieces(size, [&](int64_t i, auto load, auto) { V v = load(x + i); squares += v * v; });
  float scale = 1.0f / std::sqrt(sum(squares) / size + epsilon);
  pieces(size, [&](int64_t i, auto load, auto store) { store(y + i, load(x + i) * scale * load(weight + i)); });
}

// The halves of the head turn by the angle of each place.
void rotate(const float* x, const float* cosine, const float* sine, float* y, int64_t dimension) {
  int64_t half = dimension / 2;
  pieces(half, [&](int64_t i, auto load, auto store) {
    V a = load(x + i), b = load(x + half + i);
    store(y + i, a * load(cosine + i) - b * load(sine + i));
    store(y + half + i, b * load(cosine + half + i) + a * load(sine + half + i));
  });
}

// gate <- silu(gate) up.
void gated(float* gate, const float* up, int64_t size) {
  pieces(size, [&](int64_t i, auto load, auto store) {
    V x = load(gate + i);
    store(gate + i, x / (1.0f + exponential(-x)) * load(up + i));
  });
}

// R <= kRows queries that share keys: scores, softmax, the mean of the values. `scores`: room for R rows of `span`.
void attend(const Attention& a, const float* queries, const float* keys, const float* values, const float* const* masks,
            float* const* outputs_of, int64_t rows, float* scores) {
  Product all{keys, nullptr, scores, a.span, a.span, false};
  product(queries, all, 0, a.span, rows, a.dimension);
  for (int64_t r = 0; r < rows; ++r) {
    float* row = scores + r * a.span;
    const float* mask = masks[r];
    V best = -std::numeric_limits<float>::max() - V{};
    int64_t s = 0;
    for (; s + LANES <= a.span; s += LANES) {
      V score = load(row + s) * a.scale + load(mask + s);
      store(row + s, score);
      best = score > best ? score : best;
    }
    float largest = -std::numeric_limits<float>::max();
    for (int i = 0; i < LANES; ++i) largest = std::max(largest, best[i]);
    for (; s < a.span; ++s) largest = std::max(largest, row[s] = row[s] * a.scale + mask[s]);
    V mass{};
    pieces(a.span, [&](int64_t s, auto load, auto store) {
      V e = exponential(load(row + s) - largest);
      store(row + s, e);
      mass += load(row + s);  // without the lanes beyond the end
    });
    float total = sum(mass);
    float share = total == 0 ? 0 : 1 / total;  // padding may attend to nothing
    constexpr int kPieces = 4;
    for (int64_t first = 0; first < a.dimension; first += kPieces * LANES) {
      V sums[kPieces] = {};
      int64_t size = std::min<int64_t>(a.dimension - first, kPieces * LANES);
      for (int64_t s = 0; s < a.span; ++s) {
        const float* from = values + s * a.dimension + first;
        float weight = row[s];
        if (size == kPieces * LANES) {
#pragma GCC unroll 4
          for (int i = 0; i < kPieces; ++i) sums[i] += weight * load(from + i * LANES);
        } else {
          pieces(size, [&](int64_t i, auto load, auto) { sums[i / LANES] += weight * load(from + i); });
        }
      }
      pieces(size, [&](int64_t i, auto, auto store) { store(outputs_of[r] + first + i, sums[i / LANES] * share); });
    }
  }
}

constexpr Kernels kKernels{product, norm, rotate, gated, attend, kRows};
