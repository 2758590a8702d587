#pragma once
#include <cstdint>

// Layers of a decoder over few rows: attention and a gated MLP, each between norms. All arrays are row-major and dense, of float32 if nothing else is said.
// `level`: instruction set 0 (portable), 1 (AVX2) or 2 (AVX-512), -1 for the widest there is; -1 is returned where the
// machine lacks it, else 0.

// A weight [out, in], row after row as a checkpoint stores it. `format`: gguf's number for that, one of those whose
// `draftcert_row_bytes` is not -1.
struct draftcert_matrix {
  const void* data;
  int64_t format;
};

// Of every `size` numbers x: x weight / sqrt(mean of x^2 + epsilon). No norm where `weight` is null.
struct draftcert_norm {
  const float* weight;
  int64_t size;
  float epsilon;
};

// hidden += residual attended_norm(attention(attention_norm(hidden))), then with the MLP in place of attention:
// down(a(gate(x)) up(x)), where a(g) = g / (1 + exp(-g (linear + cubic g^2))). That is SiLU for 1 and 0, and GELU in its
// form with tanh, as (1 + tanh u) / 2 = 1 / (1 + exp(-2 u)).
struct draftcert_layer {
  int64_t heads, key_heads, dimension, intermediate;
  int64_t rotary;  // the first so many numbers of a head are rotated, their first half against their second
  float scale, softcap;  // a score s is softcap tanh(scale s / softcap), or scale s where softcap is 0
  float linear, cubic, residual;
  draftcert_norm attention_norm, attended_norm, mlp_norm, transformed_norm;
  draftcert_norm query_norm, key_norm;  // of each head, or of all heads together, before they are rotated
  draftcert_matrix query, key, value, output, gate, up, down;
  const float *query_bias, *key_bias, *value_bias, *output_bias, *gate_bias, *up_bias, *down_bias;  // may be null
  const float *cosine, *sine;  // [batch, nodes, rotary], the rotation of each node's position
  int64_t capacity;
  float *keys, *values;  // the cache: [batch, key_heads, capacity, dimension]
  // Node n of all nodes of the batch sees places[starts[n]] to places[starts[n + 1] - 1] of its sequence's cache. They
  // ascend, in the order of their positions, and there is one at least.
  const int64_t* starts;
  const int32_t* places;
};

struct draftcert_shape {
  int64_t layers, batch, nodes, hidden, span;
  const int64_t* lengths;  // of each sequence: where its nodes' keys and values go
};

// The level that -1 stands for.
extern "C" int draftcert_widest();

// Takes the embedded nodes `hidden` [batch, nodes, hidden] through all layers, in place, and writes their keys and values
// into the cache. What a node becomes depends on itself and on the keys and values it sees, in their order, alone: to the
// last bit, whatever else is there.
extern "C" int draftcert_layers(const draftcert_shape* shape, const draftcert_layer* layers, float* hidden, int threads,
                                int level);

// Each row of `rows` through the norm.
extern "C" int draftcert_normed(const float* input, const draftcert_norm* norm, float* output, int64_t rows, int level);

// numbers[i] = cap tanh(numbers[i] / cap).
extern "C" int draftcert_softcap(float* numbers, int64_t size, float cap, int threads, int level);

// output[r, o] = sum_i input[r, i] weight[o, i] + bias[o]; `bias` may be null. A row of the output depends on its row of
// the input alone, to the last bit, whatever rows come with it and however many threads there are; and on what the weight
// is, not on how it is stored.
extern "C" int draftcert_linear(const float* input, const draftcert_matrix* weight, const float* bias, float* output,
                                int64_t rows, int64_t in, int64_t out, int threads, int level);

// Bytes of a row of `in` weights, or -1: no such format, or such rows are no whole number of its blocks.
extern "C" int64_t draftcert_row_bytes(int64_t format, int64_t in);

// output[o, i] = weight[o, i].
extern "C" int draftcert_expand(const draftcert_matrix* weight, int64_t out, int64_t in, float* output, int threads,
                                int level);

// 1 if the weight is `numbers` [out, in] to the last bit, else 0.
extern "C" int draftcert_same(const draftcert_matrix* weight, int64_t out, int64_t in, const float* numbers, int threads,
                              int level);
