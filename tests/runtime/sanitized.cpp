// Drives the C++ kernels over adversarial numbers, to be run under the address and undefined-behaviour sanitizers
// (`make sanitize`): every array has exactly the numbers that the interface says, so that a step beyond one is caught.
// What the results are is for the other tests; here a call must return and leave every byte but its own alone.
#include "../../runtime/models/layers/layers.h"
#include "../../runtime/rows/cpu/rows.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <vector>

namespace {

std::mt19937_64 source(20240229);

int64_t below(int64_t n) { return int64_t(source() % uint64_t(n)); }

template <class T>
T any_of(std::initializer_list<T> all) { return all.begin()[below(int64_t(all.size()))]; }

void expect(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "sanitized.cpp: %s\n", what);
  std::exit(1);
}

constexpr size_t kBytes[] = {4, 2, 2, 8};  // by draftcert_dtype

// The bits of a logit: of a bell curve, or, where the row is wild, anything: ties, zeros, infinities, subnormals, NaN.
uint64_t logit(int dtype, bool wild) {
  if (wild && below(3) == 0) return source();
  const double values[] = {0.0, -0.0, 1.0, -1e4, 3.0, -INFINITY};
  const double value = wild && below(2) ? values[below(6)] : std::normal_distribution<double>(0, 6)(source);
  const float narrow = float(value);
  uint32_t bits;
  uint64_t wide;
  std::memcpy(&bits, &narrow, sizeof bits);
  std::memcpy(&wide, &value, sizeof wide);
  switch (dtype) {
    case DRAFTCERT_FLOAT32: return bits;
    case DRAFTCERT_BFLOAT16: return bits >> 16;
    case DRAFTCERT_FLOAT64: return wide;
    default: return uint64_t(below(1 << 16));  // float16: any bits at all, NaN among them where the row is wild
  }
}

// A matrix, contiguous, strided, reversed or of one logit, in memory that ends where its last logit does.
struct Matrix {
  std::unique_ptr<char[]> memory;
  draftcert_logits view;

  Matrix(int dtype, int64_t rows, int64_t vocab, bool wild) {
    const int64_t column = any_of<int64_t>({1, 1, 1, 2, 3, -1, -2, 0}), span = std::abs(column) * (vocab - 1) + 1;
    const int64_t row = any_of<int64_t>({span, span, span + 3, -span, 0});
    const int64_t count = (rows ? std::abs(row) * (rows - 1) : 0) + span;
    const size_t size = kBytes[dtype];
    memory.reset(new char[size_t(count) * size]);
    for (int64_t i = 0; i < count; ++i) {
      uint64_t bits = logit(dtype, wild);
      if (dtype == DRAFTCERT_FLOAT16 && !wild) bits &= 0xbfff;  // below 2: no infinity, no NaN
      std::memcpy(&memory[size_t(i) * size], &bits, size);
    }
    const int64_t first = (column < 0 ? span - 1 : 0) + (row < 0 && rows ? -row * (rows - 1) : 0);
    view = {memory.get() + first * int64_t(size), row, column, dtype};
  }
};

// A program of random instructions, most of them such that it leaves one cut.
std::vector<draftcert_instruction> program() {
  std::vector<draftcert_instruction> steps;
  auto step = [&](int op) {
    const double low = any_of<double>({0, 1e-5, 0.3, 1, 2, 3, 7, -1, 1e300, INFINITY, NAN});
    steps.push_back({op, int32_t(below(2)), low, any_of<double>({low, low + 1, INFINITY})});
  };
  if (below(8) == 0) {
    for (int64_t i = below(70); i >= 0; --i) step(int(below(DRAFTCERT_OR + 3)) - 1);
    return steps;
  }
  auto cut = [&] {
    if (below(4) == 0) return step(DRAFTCERT_RANK);
    step(int(below(DRAFTCERT_LOGIT_RATIO + 1)));
    for (int64_t i = below(3); i > 0; --i) {
      if (below(2)) {
        step(int(below(DRAFTCERT_LOGIT_RATIO + 1)));
        step(DRAFTCERT_ADD + int(below(DRAFTCERT_MAXIMUM - DRAFTCERT_ADD + 1)));
      } else {
        step(DRAFTCERT_EXP + int(below(DRAFTCERT_RECIPROCAL - DRAFTCERT_EXP + 1)));
      }
    }
    step(any_of({DRAFTCERT_ROW, DRAFTCERT_THRESHOLD, DRAFTCERT_THRESHOLD, DRAFTCERT_THRESHOLD}));
  };
  cut();
  for (int64_t i = below(3); i > 0; --i) {
    cut();
    step(any_of({DRAFTCERT_AND, DRAFTCERT_OR}));
  }
  return steps;
}

// Arrays of exactly as many entries as there are results, some left out.
struct Results {
  std::vector<std::unique_ptr<char[]>> arrays;

  template <class T>
  T* some(int64_t count) {
    if (below(8) == 0) return nullptr;
    arrays.emplace_back(new char[size_t(count) * sizeof(T)]);
    return reinterpret_cast<T*>(arrays.back().get());
  }
};

void rows_once(int64_t vocab) {
  const int dtype = int(below(4)), draft_dtype = below(3) ? dtype : int(below(4));
  const int64_t rows = below(4), k = 1 + below(std::min<int64_t>(vocab, any_of<int64_t>({1, 8, 40, 2000})));
  const bool wild = below(2), paired = below(2), judged = below(3);
  const double temperature = any_of<double>({1, 1, 0.3, 7, 1e-30, 1e30, 1e-150, 1e150});
  const Matrix target(dtype, rows, vocab, wild), draft(draft_dtype, rows, vocab, wild);
  const auto steps = program();
  const draftcert_rule rule{steps.data(), int64_t(steps.size()), 1 + below(3), int32_t(below(2))};
  Results r;
  draftcert_out out{};
  out.max = r.some<double>(rows), out.argmax = r.some<int64_t>(rows), out.status = r.some<int32_t>(rows);
  out.logsumexp = r.some<double>(rows), out.logsumexp_error = r.some<double>(rows);
  out.entropy = r.some<double>(rows), out.entropy_error = r.some<double>(rows);
  out.top_values = r.some<double>(rows * k), out.top_ids = r.some<int64_t>(rows * k);
  if (paired) out.kl = r.some<double>(rows), out.kl_error = r.some<double>(rows);
  if (judged) {
    out.value = r.some<double>(rows), out.level = r.some<double>(rows), out.threshold = r.some<double>(rows);
    out.accepted = r.some<int64_t>(rows), out.exact = r.some<uint8_t>(rows), out.passes = r.some<uint8_t>(rows);
    if (paired) out.certified = r.some<uint8_t>(rows);
  }
  const int64_t refused = draftcert_evaluate(&target.view, paired ? &draft.view : nullptr, judged ? &rule : nullptr, rows,
                                             vocab, k, temperature, 1 + int(below(4)), &out);
  expect(refused >= -1 && refused <= rows, "draftcert_evaluate counted more rows than there are");
  expect(judged || refused >= 0, "draftcert_evaluate refused arguments that are in range");
}

std::unique_ptr<float[]> numbers(int64_t count) {
  std::unique_ptr<float[]> made(new float[size_t(count)]);
  for (int64_t i = 0; i < count; ++i) made[size_t(i)] = below(50) ? std::normal_distribution<float>(0, 3)(source) : any_of<float>({0, 1e30f, -100, 100});
  return made;
}

// A weight in any format that can have rows of that size, of any bits at all.
struct Weight {
  std::unique_ptr<char[]> bytes;
  draftcert_matrix matrix;

  Weight(int64_t out, int64_t in) {
    int64_t format, width;
    do format = below(31), width = draftcert_row_bytes(format, in);
    while (width < 0);
    bytes.reset(new char[size_t(out * width)]);
    for (int64_t i = 0; i < out * width; ++i) bytes[size_t(i)] = char(source());
    matrix = {bytes.get(), format};
  }
};

void linear_once(int level) {
  const int64_t rows = 1 + below(14), in = below(2) ? 1 + below(70) : 256 * (1 + below(8)), out = 1 + below(40);
  const Weight w(out, in);
  const auto x = numbers(rows * in), bias = numbers(out), y = numbers(rows * out), expanded = numbers(out * in);
  expect(!draftcert_linear(x.get(), &w.matrix, below(2) ? bias.get() : nullptr, y.get(), rows, in, out, 2, level), "no linear");
  expect(!draftcert_expand(&w.matrix, out, in, expanded.get(), 2, level), "no expansion");
  expect(draftcert_same(&w.matrix, out, in, expanded.get(), 2, level) == 1, "a weight is not what it expands to");
  const draftcert_norm norm{x.get(), std::min(in, out), 1e-6f};
  expect(!draftcert_normed(x.get(), &norm, y.get(), rows, level), "no norm");
  expect(!draftcert_softcap(y.get(), rows * out, 30, 2, level), "no cap");
}

void layers_once(int level) {
  draftcert_shape s{};
  draftcert_layer layer{};
  s.layers = 1, s.batch = 1 + below(2), s.nodes = 1 + below(5), s.hidden = 1 + below(40);
  layer.key_heads = 1 + below(2), layer.heads = layer.key_heads * (1 + below(4));
  layer.dimension = 2 * (1 + below(40)), layer.intermediate = 1 + below(50);
  layer.rotary = 2 * below(layer.dimension / 2 + 1), layer.scale = 0.3f, layer.softcap = below(2) ? 50 : 0;
  layer.linear = 1, layer.cubic = below(2) ? 0.07f : 0, layer.residual = below(2) ? 0.5f : 1;
  const int64_t old = below(20), rows = s.batch * s.nodes, q = layer.heads * layer.dimension;
  const int64_t k = layer.key_heads * layer.dimension;
  s.span = old + s.nodes, layer.capacity = s.span + below(3);
  const std::vector<int64_t> lengths(size_t(s.batch), old);
  s.lengths = lengths.data();
  std::vector<std::unique_ptr<float[]>> held;
  auto array = [&](int64_t count) {
    held.push_back(numbers(count));
    return held.back().get();
  };
  auto maybe = [&](int64_t count) { return below(2) ? array(count) : nullptr; };
  std::vector<Weight> weights;
  auto weight = [&](int64_t out, int64_t in) {
    weights.emplace_back(out, in);
    return weights.back().matrix;
  };
  auto norm = [&](int64_t size) { return draftcert_norm{maybe(size), size, 1e-6f}; };
  layer.attention_norm = norm(s.hidden), layer.attended_norm = norm(s.hidden);
  layer.mlp_norm = norm(s.hidden), layer.transformed_norm = norm(s.hidden);
  layer.query = weight(q, s.hidden), layer.key = weight(k, s.hidden), layer.value = weight(k, s.hidden);
  layer.output = weight(s.hidden, q), layer.gate = weight(layer.intermediate, s.hidden);
  layer.up = weight(layer.intermediate, s.hidden), layer.down = weight(s.hidden, layer.intermediate);
  layer.query_bias = maybe(q), layer.key_bias = maybe(k), layer.value_bias = maybe(k), layer.output_bias = maybe(s.hidden);
  layer.gate_bias = maybe(layer.intermediate), layer.up_bias = maybe(layer.intermediate), layer.down_bias = maybe(s.hidden);
  const bool together = below(2);  // all heads, or each
  layer.query_norm = norm(together ? q : layer.dimension), layer.key_norm = norm(together ? k : layer.dimension);
  layer.cosine = array(rows * layer.rotary), layer.sine = array(rows * layer.rotary);
  layer.keys = array(s.batch * k * layer.capacity), layer.values = array(s.batch * k * layer.capacity);
  std::vector<int64_t> starts{0};
  std::vector<int32_t> places;
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t place = 0; place < s.span; ++place)
      if (below(3) || place == old + row % s.nodes) places.push_back(int32_t(place));
    starts.push_back(int64_t(places.size()));
  }
  layer.starts = starts.data(), layer.places = places.data();
  expect(!draftcert_layers(&s, &layer, array(rows * s.hidden), 2, level), "no layers");
}

}  // namespace

int main() {
  // Around what registers, groups and blocks of every instruction set hold, and enough for several threads.
  std::vector<int64_t> sizes{2, 3, 9000, 20000};
  for (int64_t size = 4; size <= 1024; size *= 2) sizes.insert(sizes.end(), {size - 1, size, size + 1});
  int levels = 0;
  for (; draftcert_use_instruction_set(levels) == levels; ++levels) {
    for (int i = 0; i < 800; ++i) rows_once(i % 100 < 98 ? sizes[size_t(4 + below(int64_t(sizes.size()) - 4))] : sizes[size_t(below(4))]);
    for (int i = 0; i < 200; ++i) linear_once(levels), layers_once(levels);
  }
  expect(levels > 0, "there is no instruction set");
  std::printf("%d instruction sets, 800 batches of rows, 200 products and 200 layers each\n", levels);
}
