#include "layers.h"

#ifdef _OPENMP
#include <omp.h>
#endif

#include <algorithm>
#include <cmath>
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

// (v[0] + v[1]) + (v[2] + v[3]) of each of four.
INLINE Four sum_lanes(const Four (&v)[4]) {
  Four low = Four{v[0][0], v[1][0], v[0][2], v[1][2]} + Four{v[0][1], v[1][1], v[0][3], v[1][3]};
  Four high = Four{v[2][0], v[3][0], v[2][2], v[3][2]} + Four{v[2][1], v[3][1], v[2][3], v[3][3]};
  return Four{low[0], low[1], high[0], high[1]} + Four{low[2], low[3], high[2], high[3]};
}

// A linear layer of `out` outputs, a row of them every `stride` numbers; `add`: to what is there.
struct Product { const float *weight, *bias; float* output; int64_t out, stride; bool add; };

struct Attention { int64_t span, dimension; float scale; };

struct Kernels {
  void (*product)(const float* x, const Product&, int64_t first, int64_t last, int64_t rows, int64_t in);
  void (*norm)(const float* x, const float* weight, float* y, int64_t size, float epsilon);
  void (*rotate)(const float* x, const float* cosine, const float* sine, float* y, int64_t dimension);
  void (*gated)(float* gate, const float* up, int64_t size);
  void (*attend)(const Attention&, const float* queries, const float* keys, const float* values,
                 const float* const* masks, float* const* outputs, int64_t rows, float* scores);
  int rows;
};

#define LANES 4
namespace portable {
#include "layer_kernel.h"
}
#undef LANES

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define DRAFTCERT_X86

#define LANES 8
#pragma GCC push_options
#pragma GCC target("avx2,fma")
namespace avx2 {
#include "layer_kernel.h"
}
#pragma GCC pop_options
#undef LANES

#define LANES 16
#pragma GCC push_options
#pragma GCC target("avx512f,avx512vl,avx512dq,avx2,fma,prefer-vector-width=512")
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
  static const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  static const bool has_avx512 = has_avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                                 __builtin_cpu_supports("avx512dq");
  int widest = has_avx512 ? 2 : has_avx2 ? 1 : 0;
#else
  int widest = 0;
#endif
  return level > widest ? nullptr : kLevels[level < 0 ? widest : level];
}

constexpr int64_t kBlock = 4;           // outputs handed to a thread at once
constexpr int64_t kWorthThreads = 4096;  // numbers from which another thread pays

// Several products of the same rows.
template <size_t N>
void products(const Kernels& run, const float* x, const Product (&all)[N], int64_t rows, int64_t in, int threads) {
  int64_t blocks = 0;
  for (const Product& p : all) blocks += (p.out + kBlock - 1) / kBlock;
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t index = 0; index < blocks; ++index) {
    int64_t block = index;
    const Product* p = all;
    for (int64_t count; block >= (count = (p->out + kBlock - 1) / kBlock); ++p) block -= count;
    run.product(x, *p, block * kBlock, std::min((block + 1) * kBlock, p->out), rows, in);
  }
}

void layer_pass(const Kernels& run, const draftcert_shape& s, const draftcert_layer& layer, float* hidden,
                const float* cosine, const float* sine, std::vector<float>& room, int threads) {
  const int64_t rows = s.batch * s.nodes, d = s.dimension, group = s.heads / s.key_heads;
  const int64_t q_size = s.heads * d, k_size = s.key_heads * d;
  const int64_t tasks_a_key = (group * s.nodes + run.rows - 1) / run.rows, score_size = run.rows * s.span;
  room.resize(rows * (s.hidden + 2 * q_size + 2 * k_size + q_size + 2 * s.intermediate) + threads * score_size);
  float* normed = room.data();
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
           {{layer.query, layer.query_bias, q, q_size, q_size, false},
            {layer.key, layer.key_bias, k, k_size, k_size, false},
            {layer.value, layer.value_bias, v, k_size, k_size, false}},
           rows, s.hidden, threads);

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
#ifdef _OPENMP
    float* own = scores + omp_get_thread_num() * score_size;
#else
    float* own = scores;
#endif
#pragma omp for schedule(static)
    for (int64_t task = 0; task < s.batch * s.key_heads * tasks_a_key; ++task) {
      int64_t shared = task / tasks_a_key, first = task % tasks_a_key * run.rows;
      int64_t sequence = shared / s.key_heads, head = shared % s.key_heads;
      int64_t count = std::min<int64_t>(run.rows, group * s.nodes - first);
      const float* masks[8];
      float* outputs[8];
      for (int64_t i = 0; i < count; ++i) {
        int64_t row = sequence * s.nodes + (first + i) / group;
        masks[i] = layer.mask + row * s.span;
        outputs[i] = attended + row * q_size + (head * group + (first + i) % group) * d;
      }
      int64_t place = shared * s.capacity * d;
      run.attend(attention, grouped + (shared * s.nodes * group + first) * d, layer.keys + place, layer.values + place,
                 masks, outputs, count, own);
    }
  }
  products(run, attended, {{layer.output, layer.output_bias, hidden, s.hidden, s.hidden, true}}, rows, q_size, threads);

  norm_all(layer.mlp_norm);
  products(run, normed,
           {{layer.gate, layer.gate_bias, gate, s.intermediate, s.intermediate, false},
            {layer.up, layer.up_bias, up, s.intermediate, s.intermediate, false}},
           rows, s.hidden, threads);
#pragma omp parallel for num_threads(threads) schedule(static) if (rows * s.intermediate > kWorthThreads)
  for (int64_t r = 0; r < rows; ++r) run.gated(gate + r * s.intermediate, up + r * s.intermediate, s.intermediate);
  products(run, gate, {{layer.down, layer.down_bias, hidden, s.hidden, s.hidden, true}}, rows, s.intermediate, threads);
}

}  // namespace

extern "C" int draftcert_layers(const draftcert_shape* shape, const draftcert_layer* layers, float* hidden,
                                const float* cosine, const float* sine, int threads, int level) {
  const Kernels* run = kernels(level);
  if (!run) return -1;
  std::vector<float> room;
  for (int64_t i = 0; i < shape->layers; ++i)
    layer_pass(*run, *shape, layers[i], hidden, cosine, sine, room, threads);
  return 0;
}

extern "C" int draftcert_linear(const float* input, const float* weight, const float* bias, float* output, int64_t rows,
                                int64_t in, int64_t out, int threads, int level) {
  const Kernels* run = kernels(level);
  if (!run) return -1;
  products(*run, input, {{weight, bias, output, out, out, false}}, rows, in, threads);
  return 0;
}
