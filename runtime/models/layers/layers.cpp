#include "layers.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define DRAFTCERT_X86
#include <immintrin.h>
#endif

#ifdef _OPENMP
#include <omp.h>
#endif

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

// For few rows the cost of a layer is reading its weights; here they are read once, and nothing else is waited for. A
// matrix library packs its operands first, which pays for many rows only.

#define INLINE inline __attribute__((always_inline))
#define INLINE_LAMBDA __attribute__((always_inline))

namespace {

using Four [[gnu::vector_size(16)]] = float;

INLINE Four load_four(const float* from) {
  Four v;
  __builtin_memcpy(&v, from, sizeof v);
  return v;
}

using Expand = void (*)(const uint8_t* from, float* to, int64_t size);

// How weights are stored: gguf's number for it, and how many weights are how many bytes. `expand`: the float32 numbers that
// they are, exactly as gguf's reference implementation dequantises them; null where they are stored as such.
struct Format { int64_t number, weights, bytes; Expand expand; };

// A linear layer of `out` outputs, a row of them every `stride` numbers; `add`: to what is there.
struct Product { const uint8_t* weight; int64_t row_bytes; Expand expand; const float* bias; float* output; int64_t out, stride; bool add; };

constexpr int64_t kTile = 16;  // outputs of a product that are worked on at once

struct Attention { int64_t span, dimension; float scale; };

// The places of the cache that a node sees, ascending; itself at least.
struct Seen { const int32_t* places; int64_t count; };

struct Kernels {
  const Format* formats;  // the last with number -1
  void (*product)(const float* x, const Product&, int64_t first, int64_t last, int64_t rows, int64_t in, float* expanded);
  void (*norm)(const float* x, const float* weight, float* y, int64_t size, float epsilon);
  void (*rotate)(const float* x, const float* cosine, const float* sine, float* y, int64_t dimension);
  void (*gated)(float* gate, const float* up, int64_t size);
  void (*attend)(const Attention&, const float* queries, const float* keys, const float* values, const Seen*,
                 float* const* outputs, int64_t rows, float* scores);
  int rows;
};

#define LANES 4
namespace portable {
#include "layer_kernel.h"
}
#undef LANES

#ifdef DRAFTCERT_X86
#define LANES 8
#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c")
namespace avx2 {
#include "layer_kernel.h"
}
#pragma GCC pop_options
#undef LANES

#define LANES 16
#pragma GCC push_options
#pragma GCC target("avx512f,avx512vl,avx512dq,avx2,fma,f16c,prefer-vector-width=512")
namespace avx512 {
#include "layer_kernel.h"
}
#pragma GCC pop_options
#undef LANES
#endif

constexpr const Kernels* kLevels[] = {
    &portable::kKernels,
#ifdef DRAFTCERT_X86
    &avx2::kKernels,
    &avx512::kKernels,
#endif
};

// The kernels of a level, -1 for the widest; null where the machine lacks it.
const Kernels* kernels(int level) {
#ifdef DRAFTCERT_X86
  static const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                               __builtin_cpu_supports("f16c");
  static const bool has_avx512 = has_avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                                 __builtin_cpu_supports("avx512dq");
  int widest = has_avx512 ? 2 : has_avx2 ? 1 : 0;
#else
  int widest = 0;
#endif
  return level > widest ? nullptr : kLevels[level < 0 ? widest : level];
}

constexpr int64_t kWorthThreads = 4096;  // numbers from which another thread pays

struct alignas(64) Line { float numbers[16]; };

// Memory that begins with a line of the cache: a register that lies across two takes twice as long to load.
struct Memory {
  std::vector<Line> lines;
  float* of(int64_t size) {
    if (lines.size() < size_t(size + 15) / 16) lines.resize((size + 15) / 16);
    return lines.data()->numbers;
  }
};

struct Room { Memory numbers, expanded; };  // of the rows; and of each thread, a tile of weights

int this_thread() {
#ifdef _OPENMP
  return omp_get_thread_num();
#else
  return 0;
#endif
}

const Format* format_of(const Kernels& run, const draftcert_matrix& matrix) {
  const Format* format = run.formats;
  while (format->number != matrix.format && format->number >= 0) ++format;
  return format;
}

Product linear(const Kernels& run, const draftcert_matrix& weight, int64_t in, const float* bias, float* output, int64_t out, bool add = false) {
  const Format* format = format_of(run, weight);
  return {(const uint8_t*)weight.data, in / format->weights * format->bytes, format->expand, bias, output, out, out, add};
}

// Several products of the same rows.
template <size_t N>
void products(const Kernels& run, const float* x, const Product (&all)[N], int64_t rows, int64_t in, Room& room, int threads) {
  int64_t tiles = 0;
  for (const Product& p : all) tiles += (p.out + kTile - 1) / kTile;
  float* expanded = room.expanded.of(threads * kTile * in);
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t index = 0; index < tiles; ++index) {
    int64_t tile = index;
    const Product* p = all;
    for (int64_t count; tile >= (count = (p->out + kTile - 1) / kTile); ++p) tile -= count;
    run.product(x, *p, tile * kTile, std::min((tile + 1) * kTile, p->out), rows, in, expanded + this_thread() * kTile * in);
  }
}

void layer_pass(const Kernels& run, const draftcert_shape& s, const draftcert_layer& layer, float* hidden,
                const float* cosine, const float* sine, Room& room, int threads) {
  const int64_t rows = s.batch * s.nodes, d = s.dimension, group = s.heads / s.key_heads;
  const int64_t q_size = s.heads * d, k_size = s.key_heads * d;
  const int64_t tasks_a_key = (group * s.nodes + run.rows - 1) / run.rows, score_size = run.rows * s.span;
  float* normed = room.numbers.of(rows * (s.hidden + 3 * q_size + 2 * k_size + 2 * s.intermediate) + threads * score_size);
  float* q = normed + rows * s.hidden;
  float* k = q + rows * q_size;
  float* v = k + rows * k_size;
  float* grouped = v + rows * k_size;  // [batch, key_heads, nodes, group, dimension]
  float* attended = grouped + rows * q_size;
  float* gate = attended + rows * q_size;
  float* up = gate + rows * s.intermediate;
  float* scores = up + rows * s.intermediate;
  auto norm_all = [&](const float* weight) {
#pragma omp parallel for num_threads(threads) schedule(static) if (rows * s.hidden > kWorthThreads)
    for (int64_t r = 0; r < rows; ++r) run.norm(hidden + r * s.hidden, weight, normed + r * s.hidden, s.hidden, s.epsilon);
  };

  norm_all(layer.attention_norm);
  products(run, normed,
           {linear(run, layer.query, s.hidden, layer.query_bias, q, q_size),
            linear(run, layer.key, s.hidden, layer.key_bias, k, k_size),
            linear(run, layer.value, s.hidden, layer.value_bias, v, k_size)},
           rows, s.hidden, room, threads);

#pragma omp parallel for num_threads(threads) schedule(static) if (rows * q_size > kWorthThreads)
  for (int64_t r = 0; r < rows; ++r) {
    int64_t sequence = r / s.nodes, node = r % s.nodes;
    const float *c = cosine + r * d, *t = sine + r * d;
    for (int64_t head = 0; head < s.heads; ++head) {
      float* from = q + r * q_size + head * d;
      if (layer.query_norm) run.norm(from, layer.query_norm, from, d, s.epsilon);
      int64_t shared = sequence * s.key_heads + head / group;
      run.rotate(from, c, t, grouped + ((shared * s.nodes + node) * group + head % group) * d, d);
    }
    for (int64_t head = 0; head < s.key_heads; ++head) {
      float* from = k + r * k_size + head * d;
      int64_t place = ((sequence * s.key_heads + head) * s.capacity + s.lengths[sequence] + node) * d;
      if (layer.key_norm) run.norm(from, layer.key_norm, from, d, s.epsilon);
      run.rotate(from, c, t, layer.keys + place, d);
      std::copy_n(v + r * k_size + head * d, d, layer.values + place);
    }
  }

  // Query heads that share keys are rows of one product with them.
  const Attention attention{s.span, d, s.scale};
#pragma omp parallel num_threads(threads)
  {
    float* own = scores + this_thread() * score_size;
#pragma omp for schedule(static)
    for (int64_t task = 0; task < s.batch * s.key_heads * tasks_a_key; ++task) {
      int64_t shared = task / tasks_a_key, first = task % tasks_a_key * run.rows;
      int64_t sequence = shared / s.key_heads, head = shared % s.key_heads;
      int64_t count = std::min<int64_t>(run.rows, group * s.nodes - first);
      Seen seen[8];
      float* outputs[8];
      for (int64_t i = 0; i < count; ++i) {
        int64_t row = sequence * s.nodes + (first + i) / group;
        seen[i] = {layer.places + layer.starts[row], layer.starts[row + 1] - layer.starts[row]};
        outputs[i] = attended + row * q_size + (head * group + (first + i) % group) * d;
      }
      int64_t place = shared * s.capacity * d;
      run.attend(attention, grouped + (shared * s.nodes * group + first) * d, layer.keys + place, layer.values + place,
                 seen, outputs, count, own);
    }
  }
  products(run, attended, {linear(run, layer.output, q_size, layer.output_bias, hidden, s.hidden, true)}, rows, q_size, room,
           threads);

  norm_all(layer.mlp_norm);
  products(run, normed,
           {linear(run, layer.gate, s.hidden, layer.gate_bias, gate, s.intermediate),
            linear(run, layer.up, s.hidden, layer.up_bias, up, s.intermediate)},
           rows, s.hidden, room, threads);
#pragma omp parallel for num_threads(threads) schedule(static) if (rows * s.intermediate > kWorthThreads)
  for (int64_t r = 0; r < rows; ++r) run.gated(gate + r * s.intermediate, up + r * s.intermediate, s.intermediate);
  products(run, gate, {linear(run, layer.down, s.intermediate, layer.down_bias, hidden, s.hidden, true)}, rows,
           s.intermediate, room, threads);
}

}  // namespace

extern "C" int draftcert_layers(const draftcert_shape* shape, const draftcert_layer* layers, float* hidden,
                                const float* cosine, const float* sine, int threads, int level) {
  const Kernels* run = kernels(level);
  if (!run) return -1;
  Room room;
  for (int64_t i = 0; i < shape->layers; ++i)
    layer_pass(*run, *shape, layers[i], hidden, cosine, sine, room, threads);
  return 0;
}

extern "C" int draftcert_norm(const float* input, const float* weight, float* output, int64_t rows, int64_t size,
                              float epsilon, int level) {
  const Kernels* run = kernels(level);
  if (!run) return -1;
  for (int64_t r = 0; r < rows; ++r) run->norm(input + r * size, weight, output + r * size, size, epsilon);
  return 0;
}

extern "C" int draftcert_linear(const float* input, const draftcert_matrix* weight, const float* bias, float* output,
                                int64_t rows, int64_t in, int64_t out, int threads, int level) {
  const Kernels* run = kernels(level);
  if (!run) return -1;
  Room room;
  products(*run, input, {linear(*run, *weight, in, bias, output, out)}, rows, in, room, threads);
  return 0;
}

extern "C" int64_t draftcert_row_bytes(int64_t format, int64_t in) {
  const Format* found = format_of(portable::kKernels, {nullptr, format});
  return found->weights == 0 || in % found->weights ? -1 : in / found->weights * found->bytes;
}

extern "C" int draftcert_expand(const draftcert_matrix* weight, int64_t rows, int64_t in, float* output, int threads,
                                int level) {
  const Kernels* run = kernels(level);
  if (!run) return -1;
  const Product p = linear(*run, *weight, in, nullptr, nullptr, rows);
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t r = 0; r < rows; ++r) {
    if (p.expand)
      p.expand(p.weight + r * p.row_bytes, output + r * in, in);
    else
      std::memcpy(output + r * in, p.weight + r * p.row_bytes, p.row_bytes);
  }
  return 0;
}

extern "C" int draftcert_same(const draftcert_matrix* weight, int64_t rows, int64_t in, const float* numbers, int threads,
                              int level) {
  const Kernels* run = kernels(level);
  if (!run) return -1;
  const Product p = linear(*run, *weight, in, nullptr, nullptr, rows);
  bool same = true;
#pragma omp parallel num_threads(threads) reduction(&& : same)
  {
    std::vector<float> row(in);
#pragma omp for schedule(static)
    for (int64_t r = 0; r < rows; ++r) {
      const void* expanded = p.weight + r * p.row_bytes;
      if (p.expand) p.expand(p.weight + r * p.row_bytes, row.data(), in), expanded = row.data();
      same = same && !std::memcmp(expanded, numbers + r * in, in * sizeof(float));
    }
  }
  return same;
}
