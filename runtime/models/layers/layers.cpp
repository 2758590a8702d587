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
#include <type_traits>
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

// A linear layer of `out` outputs, a row of them every `stride` numbers; `add`: `times` the outputs, to what is there.
struct Product {
  const uint8_t* weight;
  int64_t row_bytes;
  Expand expand;
  const float* bias;
  float* output;
  int64_t out, stride;
  bool add = false;
  float times = 1;
};

constexpr int64_t kTile = 16;  // outputs of a product that a thread takes at once

// `stride`: from the scores of one row to those of the next.
struct Attention { int64_t stride, dimension; float scale, softcap; };

// The places of the cache that a node sees, ascending; itself at least.
struct Seen { const int32_t* places; int64_t count; };

struct Kernels {
  const Format* formats;  // the last with number -1
  void (*product)(const float* x, const Product&, int64_t first, int64_t last, int64_t rows, int64_t in, float* room);
  int64_t (*room_of)(int64_t rows, int64_t in);
  void (*norm)(const float* x, const draftcert_norm&, float* y, int64_t size);
  void (*rotate)(const float* x, const float* cosine, const float* sine, float* y, int64_t rotary, int64_t dimension);
  void (*gated)(float* gate, const float* up, int64_t size, float linear, float cubic);
  void (*softcap)(float* x, int64_t size, float cap);
  void (*add)(float* to, const float* x, int64_t size, float times);
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

int widest() {
#ifdef DRAFTCERT_X86
  static const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                               __builtin_cpu_supports("f16c");
  static const bool has_avx512 = has_avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                                 __builtin_cpu_supports("avx512dq");
  return has_avx512 ? 2 : has_avx2 ? 1 : 0;
#else
  return 0;
#endif
}

// The kernels of a level, -1 for the widest; null where the machine lacks it.
const Kernels* kernels(int level) { return level > widest() ? nullptr : kLevels[level < 0 ? widest() : level]; }

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

struct Room { Memory numbers, products; };  // of the rows; and of each thread

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

Product linear(const Kernels& run, const draftcert_matrix& weight, int64_t in, const float* bias, float* output, int64_t out) {
  const Format* format = format_of(run, weight);
  return {(const uint8_t*)weight.data, in / format->weights * format->bytes, format->expand, bias, output, out, out};
}

// Several products of the same rows.
template <size_t N>
void products(const Kernels& run, const float* x, const Product (&all)[N], int64_t rows, int64_t in, Room& room, int threads) {
  int64_t tiles = 0;
  for (const Product& p : all) tiles += (p.out + kTile - 1) / kTile;
  const int64_t own = (run.room_of(rows, in) + 15) / 16 * 16;
  float* rooms = room.products.of(threads * own);
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t index = 0; index < tiles; ++index) {
    int64_t tile = index;
    const Product* p = all;
    for (int64_t count; tile >= (count = (p->out + kTile - 1) / kTile); ++p) tile -= count;
    run.product(x, *p, tile * kTile, std::min((tile + 1) * kTile, p->out), rows, in, rooms + this_thread() * own);
  }
}

void layer_pass(const Kernels& run, const draftcert_shape& s, const draftcert_layer& layer, float* hidden, Room& room,
                int threads) {
  const int64_t rows = s.batch * s.nodes, d = layer.dimension, group = layer.heads / layer.key_heads;
  const int64_t q_size = layer.heads * d, k_size = layer.key_heads * d, inner = layer.intermediate;
  const int64_t tasks_a_key = (group * s.nodes + run.rows - 1) / run.rows;
  const int64_t stride = (s.span + 31) / 16 * 16, score_size = run.rows * stride;  // a register fits behind each row
  float* normed = room.numbers.of(rows * (s.hidden + 3 * q_size + 2 * k_size + 2 * inner) + threads * score_size);
  float* q = normed + rows * s.hidden;
  float* k = q + rows * q_size;
  float* v = k + rows * k_size;
  float* grouped = v + rows * k_size;  // [batch, key_heads, nodes, group, dimension]
  float* attended = grouped + rows * q_size;
  float* gate = attended + rows * q_size;
  float* up = gate + rows * inner;
  float* scores = up + rows * inner;
  auto input = [&](const draftcert_norm& norm) -> const float* {
    if (!norm.weight) return hidden;
#pragma omp parallel for num_threads(threads) schedule(static) if (rows * s.hidden > kWorthThreads)
    for (int64_t r = 0; r < rows; ++r) run.norm(hidden + r * s.hidden, norm, normed + r * s.hidden, s.hidden);
    return normed;
  };
  auto add_output = [&](const draftcert_matrix& weight, const float* bias, const float* x, int64_t in, const draftcert_norm& norm) {
    Product product = linear(run, weight, in, bias, norm.weight ? normed : hidden, s.hidden);
    product.add = !norm.weight;
    product.times = layer.residual;
    products(run, x, {product}, rows, in, room, threads);
    for (int64_t r = 0; norm.weight && r < rows; ++r) {
      run.norm(normed + r * s.hidden, norm, normed + r * s.hidden, s.hidden);
      run.add(hidden + r * s.hidden, normed + r * s.hidden, s.hidden, layer.residual);
    }
  };

  products(run, input(layer.attention_norm),
           {linear(run, layer.query, s.hidden, layer.query_bias, q, q_size),
            linear(run, layer.key, s.hidden, layer.key_bias, k, k_size),
            linear(run, layer.value, s.hidden, layer.value_bias, v, k_size)},
           rows, s.hidden, room, threads);

#pragma omp parallel for num_threads(threads) schedule(static) if (rows * q_size > kWorthThreads)
  for (int64_t r = 0; r < rows; ++r) {
    int64_t sequence = r / s.nodes, node = r % s.nodes;
    const float *c = layer.cosine + r * layer.rotary, *t = layer.sine + r * layer.rotary;
    float *queries = q + r * q_size, *keys = k + r * k_size;
    if (layer.query_norm.weight) run.norm(queries, layer.query_norm, queries, q_size);
    if (layer.key_norm.weight) run.norm(keys, layer.key_norm, keys, k_size);
    for (int64_t head = 0; head < layer.heads; ++head) {
      int64_t shared = sequence * layer.key_heads + head / group;
      run.rotate(queries + head * d, c, t, grouped + ((shared * s.nodes + node) * group + head % group) * d, layer.rotary, d);
    }
    for (int64_t head = 0; head < layer.key_heads; ++head) {
      int64_t place = ((sequence * layer.key_heads + head) * layer.capacity + s.lengths[sequence] + node) * d;
      run.rotate(keys + head * d, c, t, layer.keys + place, layer.rotary, d);
      std::copy_n(v + r * k_size + head * d, d, layer.values + place);
    }
  }

  // Query heads that share keys are rows of one product with them.
  const Attention attention{stride, d, layer.scale, layer.softcap};
#pragma omp parallel num_threads(threads)
  {
    float* own = scores + this_thread() * score_size;
#pragma omp for schedule(static)
    for (int64_t task = 0; task < s.batch * layer.key_heads * tasks_a_key; ++task) {
      int64_t shared = task / tasks_a_key, first = task % tasks_a_key * run.rows;
      int64_t sequence = shared / layer.key_heads, head = shared % layer.key_heads;
      int64_t count = std::min<int64_t>(run.rows, group * s.nodes - first);
      Seen seen[8];
      float* outputs[8];
      for (int64_t i = 0; i < count; ++i) {
        int64_t row = sequence * s.nodes + (first + i) / group;
        seen[i] = {layer.places + layer.starts[row], layer.starts[row + 1] - layer.starts[row]};
        outputs[i] = attended + row * q_size + (head * group + (first + i) % group) * d;
      }
      int64_t place = shared * layer.capacity * d;
      run.attend(attention, grouped + (shared * s.nodes * group + first) * d, layer.keys + place, layer.values + place,
                 seen, outputs, count, own);
    }
  }
  add_output(layer.output, layer.output_bias, attended, q_size, layer.attended_norm);

  products(run, input(layer.mlp_norm),
           {linear(run, layer.gate, s.hidden, layer.gate_bias, gate, inner),
            linear(run, layer.up, s.hidden, layer.up_bias, up, inner)},
           rows, s.hidden, room, threads);
#pragma omp parallel for num_threads(threads) schedule(static) if (rows * inner > kWorthThreads)
  for (int64_t r = 0; r < rows; ++r) run.gated(gate + r * inner, up + r * inner, inner, layer.linear, layer.cubic);
  add_output(layer.down, layer.down_bias, gate, inner, layer.transformed_norm);
}

}  // namespace

extern "C" int draftcert_widest() { return widest(); }

extern "C" int draftcert_layers(const draftcert_shape* shape, const draftcert_layer* layers, float* hidden, int threads,
                                int level) {
  const Kernels* run = kernels(level);
  if (!run) return -1;
  Room room;
  for (int64_t i = 0; i < shape->layers; ++i) layer_pass(*run, *shape, layers[i], hidden, room, threads);
  return 0;
}

extern "C" int draftcert_normed(const float* input, const draftcert_norm* norm, float* output, int64_t rows, int level) {
  const Kernels* run = kernels(level);
  if (!run) return -1;
  run->norm(input, *norm, output, rows * norm->size);
  return 0;
}

extern "C" int draftcert_softcap(float* numbers, int64_t size, float cap, int threads, int level) {
  const Kernels* run = kernels(level);
  if (!run) return -1;
#pragma omp parallel for num_threads(threads) schedule(static) if (size > kWorthThreads)
  for (int64_t i = 0; i < size; i += kWorthThreads) run->softcap(numbers + i, std::min(kWorthThreads, size - i), cap);
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
