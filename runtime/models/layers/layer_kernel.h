// The work within a layer. layers.cpp includes this file once per instruction set, each time inside a namespace of its
// own and with LANES the number of floats in a register; hence no include guard.

#include "registers.h"

#include "formats/bfloat16.h"
#include "formats/float16.h"
#include "formats/blocks.h"
#include "formats/five_bits.h"
#include "formats/four_bits.h"
#include "formats/q4_0.h"
#include "formats/q4_1.h"
#include "formats/q5_0.h"
#include "formats/q5_1.h"
#include "formats/q8_0.h"
#include "formats/six_bit_scales.h"
#include "formats/q4_k.h"
#include "formats/q5_k.h"
#include "formats/q6_k.h"

constexpr int kRows = LANES == 16 ? 6 : 3;  // what the registers hold beside four rows of the weight
constexpr int64_t kOutputs = 8;  // rows of the weight that are worked on at once
// Numbers of a row that are worked on at once: with kRows and kOutputs rows 28 KiB, so that all stay in the nearest cache.
// A whole number of any format's blocks.
constexpr int64_t kNumbers = 512;
constexpr int64_t kFarAhead = 8192;  // how many bytes before it is expanded a weight is asked of memory
constexpr int64_t kPlacesAhead = 2 * LANES;  // for how many places later keys and values are asked of memory

// act(n) where n, a number known to the compiler, is `rows` <= kRows.
template <int N = 1, class Act>
INLINE void with_rows(int64_t rows, Act&& act) {
  if constexpr (N < kRows) {
    if (rows > N) return with_rows<N + 1>(rows, act);
  }
  act(std::integral_constant<int, N>{});
}

// A row that is little longer is not divided.
constexpr int64_t numbers_at_once(int64_t in) { return 2 * in <= 3 * kNumbers ? in : kNumbers; }

// By gguf's numbers.
constexpr Format kFormats[] = {
    {0, 1, 4, nullptr},    {1, 1, 2, float16},    {2, 32, 18, q4_0},     {3, 32, 20, q4_1},
    {6, 32, 22, q5_0},     {7, 32, 24, q5_1},     {8, 32, 34, q8_0},     {12, 256, 144, q4_k},
    {13, 256, 176, q5_k},  {14, 256, 210, q6_k},  {30, 1, 2, bfloat16},  {-1, 0, 0, nullptr},
};

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

// tanh(x), within 4 units in the last place: Cephes' polynomial below 5/8, where 1 - 2 / (exp(2 x) + 1) would cancel. Beyond,
// the sum's rounding costs at most 2 units of the result, the quotient's 1, and what exp is off by 1 more.
INLINE V hyperbolic_tangent(V x) {
  V square = x * x;
  V p = square * -5.70498872745e-3f + 2.06390887954e-2f;
  p = p * square - 5.37397155531e-2f;
  p = p * square + 1.33314422036e-1f;
  p = p * square - 3.33332819422e-1f;
  return square < 0.390625f ? p * square * x + x : 1.0f - 2.0f / (exponential(x + x) + 1.0f);
}

// The bytes of the weight that are needed next: fetched in steps while others are multiplied, so that memory and
// arithmetic work at once. Where one group of rows takes the weight from memory as it is, it fetches the same numbers of
// the weight's next rows instead; where one or two rows leave the arithmetic idle, what is expanded is fetched before it is
// (`expand`).
struct Ahead {
  const uint8_t* at;
  int64_t step;

  INLINE void fetch() {
    __builtin_prefetch(at, 0, 2);
    __builtin_prefetch(at + 64, 0, 2);
    at += step;
  }
};

// What a block of a product works on: numbers [from, to) of `in`; the rows of the weight are `step` numbers apart;
// `direct`: one group of rows takes them from memory as they are.
struct Part { int64_t from, to, in, step; bool direct; };

// R rows of the input times O rows of the weight. The R O sums stay in registers, so that a loaded register of the weight
// serves R rows and one of the input O; `kept` has those of the numbers before. Every sum is taken in LANES partial sums,
// over i modulo LANES, which are added in one fixed order in the end: neither R, O nor the part enter, so a row's bits do
// not depend on the rows beside it.
template <int R, int O>
void block(const float* x, const float* w, const Part& part, V* kept, const float* bias, float* y, const Product& p,
           Ahead& ahead) {
  V sums[R][O];
#pragma GCC unroll 6
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
    for (int o = 0; o < O; ++o) sums[r][o] = part.from ? kept[r * O + o] : V{};
  Ahead next = ahead;
  pieces(part.to - part.from, [&](int64_t i, auto load, auto) INLINE_LAMBDA {
    V weights[O];
#pragma GCC unroll 4
    for (int o = 0; o < O; ++o) weights[o] = load(w + o * part.step + i);
    if (part.direct) {
#pragma GCC unroll 4
      for (int o = 0; o < O; ++o) __builtin_prefetch(w + (O + o) * part.step + i);
    } else if (R > 2) {
      next.fetch();
    }
#pragma GCC unroll 6
    for (int r = 0; r < R; ++r) {
      V values = load(x + r * part.in + i);
#pragma GCC unroll 4
      for (int o = 0; o < O; ++o) sums[r][o] += weights[o] * values;
    }
  });
  ahead = next;
  if (part.to < part.in) {
#pragma GCC unroll 6
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
      for (int o = 0; o < O; ++o) kept[r * O + o] = sums[r][o];
    return;
  }
#pragma GCC unroll 6
  for (int r = 0; r < R; ++r) {
    float* at = y + r * p.stride;
    if constexpr (O == 4) {
      Four total = sums_of(sums[r]);
      if (bias) total += load_four(bias);
      if (p.add) total = total * p.times + load_four(at);
      __builtin_memcpy(at, &total, sizeof total);
    } else {
      float total = sum(sums[r][0]);
      if (bias) total += *bias;
      if (p.add) total = total * p.times + *at;
      *at = total;
    }
  }
}

// R rows of the input times `outputs` rows of the weight.
template <int R>
void tile(const float* x, const float* w, int64_t outputs, const Part& part, V* kept, const float* bias, float* y,
          const Product& p, Ahead& ahead) {
  int64_t o = 0;
  for (; o + 4 <= outputs; o += 4)
    block<R, 4>(x, w + o * part.step, part, kept + R * o, bias ? bias + o : nullptr, y + o, p, ahead);
  for (; o < outputs; ++o)
    block<R, 1>(x, w + o * part.step, part, kept + R * o, bias ? bias + o : nullptr, y + o, p, ahead);
}

// The part of `outputs` rows of the weight, one after the other; `far_ahead`: memory is asked for what comes later.
void expand(const Product& p, const uint8_t* stored, int64_t outputs, const Part& part, float* to, bool far_ahead) {
  const int64_t begin = part.from * p.row_bytes / part.in, end = part.to * p.row_bytes / part.in;
  for (int64_t o = 0; o < outputs; ++o, stored += p.row_bytes, to += part.step) {
    for (int64_t line = begin; far_ahead && line < end; line += 64) __builtin_prefetch(stored + line + kFarAhead, 0, 2);
    p.expand(stored + begin, to, part.step);
  }
}

// Outputs [first, last) of all rows, in groups of at most kRows rows, as even as they get. `room`: as `room_of` says.
void product(const float* x, const Product& p, int64_t first, int64_t last, int64_t rows, int64_t in, float* room) {
  const int64_t groups = (rows + kRows - 1) / kRows;
  const int64_t outputs = groups == 1 ? 4 : kOutputs;  // many rows use the weight again and again, few want it near
  const int64_t step = 4 * LANES * p.row_bytes / (groups * in);  // a tile's bytes, shared out over the steps on one
  float* expanded = room + groups * kRows * outputs * LANES;
  for (int64_t next; first < last; first = next) {
    next = std::min(first + outputs, last);
    const uint8_t* stored = p.weight + first * p.row_bytes;
    Ahead ahead{stored + outputs * p.row_bytes, step};
    for (int64_t from = 0, to; from < in; from = to) {
      to = std::min(from + numbers_at_once(in), in);
      Part part{from, to, in, in, groups == 1 && !p.expand};
      const float* w = (const float*)stored + from;
      if (p.expand) {
        part.step = to - from;
        w = expanded;
        expand(p, stored, next - first, part, expanded, rows <= 2);
      }
      const float* bias = p.bias ? p.bias + first : nullptr;
      const float* input = x + from;
      float* y = p.output + first;
      auto kept = (V*)room;
      for (int64_t group = 0, count; group < groups; ++group) {
        count = (rows + group) / groups;  // these add up to `rows`
        with_rows(count, [&](auto rows) {
          tile<decltype(rows)::value>(input, w, next - first, part, kept, bias, y, p, ahead);
        });
        input += count * in, y += count * p.stride, kept += count * outputs;
      }
    }
  }
}

// Numbers that `product` needs room for: the sums of its rows, and the part of the weight that is expanded.
int64_t room_of(int64_t rows, int64_t in) {
  return (rows + kRows) * kOutputs * LANES + kOutputs * numbers_at_once(in);
}

// `size` numbers, in parts of the norm's size.
void norm(const float* x, const draftcert_norm& norm, float* y, int64_t size) {
  for (const float* end = x + size; x < end; x += norm.size, y += norm.size) {
    V squares{};
    pieces(norm.size, [&](int64_t i, auto load, auto) { V v = load(x + i); squares += v * v; });
    float scale = 1.0f / std::sqrt(sum(squares) / norm.size + norm.epsilon);
    pieces(norm.size, [&](int64_t i, auto load, auto store) { store(y + i, load(x + i) * scale * load(norm.weight + i)); });
  }
}

// The halves of the head's first `rotary` numbers turn by the angle of each place.
void rotate(const float* x, const float* cosine, const float* sine, float* y, int64_t rotary, int64_t dimension) {
  int64_t half = rotary / 2;
  pieces(half, [&](int64_t i, auto load, auto store) {
    V a = load(x + i), b = load(x + half + i);
    store(y + i, a * load(cosine + i) - b * load(sine + i));
    store(y + half + i, b * load(cosine + half + i) + a * load(sine + half + i));
  });
  std::copy(x + rotary, x + dimension, y + rotary);
}

// gate <- a(gate) up, a as in layers.h.
void gated(float* gate, const float* up, int64_t size, float linear, float cubic) {
  pieces(size, [&](int64_t i, auto load, auto store) {
    V x = load(gate + i), slope = linear - V{};
    if (cubic) slope += cubic * (x * x);
    store(gate + i, x / (1.0f + exponential(-x * slope)) * load(up + i));
  });
}

void softcap(float* x, int64_t size, float cap) {
  pieces(size, [&](int64_t i, auto load, auto store) { store(x + i, hyperbolic_tangent(load(x + i) / cap) * cap); });
}

void add(float* to, const float* x, int64_t size, float times) {
  pieces(size, [&](int64_t i, auto load, auto store) { store(to + i, load(x + i) * times + load(to + i)); });
}

// R queries times the keys of the places [begin, end): `scores` + place, and room for a register behind them. The sums are
// taken as those of `block`; only that those of as many keys as a register has lanes come out together.
template <int R>
void score(const Attention& a, const float* queries, const float* keys, int64_t begin, int64_t end, float* scores) {
  constexpr int kFours = LANES / 4;
  for (int64_t first = begin; first < end; first += LANES) {
    V fours[R][4];
#pragma GCC unroll 4
    for (int lane = 0; lane < 4; ++lane) {
      const float* key[kFours];
#pragma GCC unroll 4
      for (int o = 0; o < kFours; ++o) key[o] = keys + std::min(first + 4 * o + lane, end - 1) * a.dimension;
      V sums[R][kFours] = {};
      pieces(a.dimension, [&](int64_t i, auto load, auto) INLINE_LAMBDA {
        V numbers[kFours];
#pragma GCC unroll 4
        for (int o = 0; o < kFours; ++o) numbers[o] = load(key[o] + i);
#pragma GCC unroll 4
        for (int o = 0; o < kFours; ++o) __builtin_prefetch(key[o] + kPlacesAhead * a.dimension + i);
#pragma GCC unroll 6
        for (int r = 0; r < R; ++r) {
          V query = load(queries + r * a.dimension + i);
#pragma GCC unroll 4
          for (int o = 0; o < kFours; ++o) sums[r][o] += numbers[o] * query;
        }
      });
#pragma GCC unroll 6
      for (int r = 0; r < R; ++r) fours[r][lane] = in_fours(sums[r]);
    }
#pragma GCC unroll 6
    for (int r = 0; r < R; ++r) store(scores + r * a.stride + first, sums_of_fours(fours[r]));
  }
}

// One row: of its scores at all places those at the places seen, one after the other, scaled, through the softmax. Returns
// what they are still to be multiplied by.
float weigh(const Attention& a, const Seen& seen, float* row) {
  const auto [places, count] = seen;
  int64_t s = 0;
  for (; s + LANES <= count; s += LANES) {
    if (places[s + LANES - 1] == places[s] + LANES - 1) {
      store(row + s, load(row + places[s]) * a.scale);
    } else {
      for (int64_t i = s; i < s + LANES; ++i) row[i] = row[places[i]] * a.scale;
    }
  }
  for (; s < count; ++s) row[s] = row[places[s]] * a.scale;
  if (a.softcap) softcap(row, count, a.softcap);
  V best = row[0] - V{};
  for (s = 0; s + LANES <= count; s += LANES) best = load(row + s) > best ? load(row + s) : best;
  float largest = *std::max_element(row + s - (s == count), row + count);
  for (int i = 0; i < LANES; ++i) largest = std::max(largest, best[i]);
  V mass{};
  pieces(count, [&](int64_t s, auto load, auto store) {
    V e = exponential(load(row + s) - largest);
    store(row + s, e);
    mass += load(row + s);  // without the lanes beyond the end
  });
  return 1 / sum(mass);
}

// The places of a row that follow one another from its first on: as they ascend, all up to one that is as far as it is.
INLINE int64_t run_of(const Seen& seen) {
  int64_t run = 1, end = seen.count + 1;
  while (end - run > 1) {
    int64_t middle = (run + end) / 2;
    (seen.places[middle - 1] - seen.places[0] == middle - 1 ? run : end) = middle;
  }
  return run;
}

// The means of the values that R queries see, by weights times `shares`. Each sum is taken in the order of the places; the
// values of those that all see in their first run are loaded once for all.
template <int R>
void mean(const Attention& a, const float* weights, const float* shares, const float* values, const Seen* seen,
          float* const* outputs) {
  int64_t begin = 0, end = std::numeric_limits<int64_t>::max();
  for (int r = 0; r < R; ++r) {
    begin = std::max<int64_t>(begin, seen[r].places[0]);
    end = std::min(end, seen[r].places[0] + run_of(seen[r]));
  }
  end = std::max(begin, end);
  constexpr int kPieces = 4;
  for (int64_t first = 0; first < a.dimension; first += kPieces * LANES) {
    const int64_t size = std::min<int64_t>(a.dimension - first, kPieces * LANES);
    V sums[R][kPieces] = {};
    auto all = [&](auto piece) INLINE_LAMBDA {
      auto alone = [&](int r, int64_t from, int64_t to) INLINE_LAMBDA {
        for (int64_t s = from; s < to; ++s) {
          const float* value = values + seen[r].places[s] * a.dimension + first;
#pragma GCC unroll 4
          for (int i = 0; i < kPieces; ++i) sums[r][i] += weights[r * a.stride + s] * piece(value, i);
        }
      };
      int64_t weight_of_place_0[R];  // from there on, those of the first run's places follow
#pragma GCC unroll 6
      for (int r = 0; r < R; ++r) {
        weight_of_place_0[r] = r * a.stride - seen[r].places[0];
        alone(r, 0, std::min(begin - seen[r].places[0], seen[r].count));
      }
      for (int64_t place = begin; place < end; ++place) {
        const float* value = values + place * a.dimension + first;
        V numbers[kPieces];
#pragma GCC unroll 4
        for (int i = 0; i < kPieces; ++i) numbers[i] = piece(value, i);
#pragma GCC unroll 4
        for (int i = 0; i < kPieces; ++i) __builtin_prefetch(value + kPlacesAhead * a.dimension + i * LANES);
#pragma GCC unroll 6
        for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
          for (int i = 0; i < kPieces; ++i) sums[r][i] += weights[weight_of_place_0[r] + place] * numbers[i];
      }
#pragma GCC unroll 6
      for (int r = 0; r < R; ++r) alone(r, std::min(end - seen[r].places[0], seen[r].count), seen[r].count);
    };
    if (size == kPieces * LANES)
      all([](const float* value, int i) INLINE_LAMBDA { return load(value + i * LANES); });
    else
      all([size](const float* value, int i) INLINE_LAMBDA {
        int64_t left = size - i * LANES;
        return left >= LANES ? load(value + i * LANES) : load_some(value + i * LANES, std::max<int64_t>(left, 0));
      });
#pragma GCC unroll 6
    for (int r = 0; r < R; ++r)
      pieces(size, [&](int64_t i, auto, auto store) { store(outputs[r] + first + i, sums[r][i / LANES] * shares[r]); });
  }
}

// At most kRows queries that share keys: scores, softmax, the mean of the values. Only the places that a query sees enter,
// in their order, so that its bits depend neither on where in the cache they lie nor on what else is there. `scores`: room
// for kRows rows of `stride`.
void attend(const Attention& a, const float* queries, const float* keys, const float* values, const Seen* seen,
            float* const* outputs, int64_t rows, float* scores) {
  int64_t begin = seen[0].places[0], end = 0;
  for (int64_t r = 0; r < rows; ++r) {
    begin = std::min<int64_t>(begin, seen[r].places[0]);
    end = std::max<int64_t>(end, seen[r].places[seen[r].count - 1] + 1);
  }
  with_rows(rows, [&](auto count) {
    constexpr int R = decltype(count)::value;
    score<R>(a, queries, keys, begin, end, scores);
    float shares[R];
    for (int r = 0; r < R; ++r) shares[r] = weigh(a, seen[r], scores + r * a.stride);
    mean<R>(a, scores, shares, values, seen, outputs);
  });
}

constexpr Kernels kKernels{kFormats, product, room_of, norm, rotate, gated, softcap, add, attend, kRows};
