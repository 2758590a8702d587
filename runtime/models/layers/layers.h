#pragma once
#include <cstdint>

// Layers of a Llama-like decoder over few rows. All arrays are row-major and dense, of float32 if nothing else is said.
// `level`: instruction set 0 (portable), 1 (AVX2) or 2 (AVX-512), -1 for the widest there is; -1 is returned where the
// machine lacks it, else 0.

// A weight [out, in], row after row as a checkpoint stores it. `format`: gguf's number for that, one of those whose
// `draftcert_row_bytes` is not -1.
struct draftcert_matrix {
  const void* data;
  int64_t format;
};

struct draftcert_layer {
  const float *attention_norm, *mlp_norm;
  draftcert_matrix query, key, value, output, gate, up, down;
  // May be null.
  const float *query_bias, *key_bias, *value_bias, *output_bias, *gate_bias, *up_bias, *down_bias;
  const float *query_norm, *key_norm;
  float *keys, *values;  // the cache: [batch, key_heads, capacity, dimension]
  // Node n of all nodes of the batch sees places[starts[n]] to places[starts[n + 1] - 1] of its sequence's cache. They
  // ascend, in the order of their positions, and there is one at least.
  const int64_t* starts;
  const int32_t* places;
};

struct draftcert_shape {
  int64_t layers, batch, nodes, hidden, heads, key_heads, dimension, intermediate, capacity, span;
  const int64_t* lengths;  // of each sequence: where its nodes' keys and values go
  float epsilon, scale;    // of the norms, and of the scores
};

// Takes the embedded nodes `hidden` [batch, nodes, hidden] through all layers, in place, and writes their keys and values
// into the cache. `cosine`, `sine`: [batch, nodes, dimension], the rotation of each node's position. What a node becomes
// depends on itself and on the keys and values it sees, in their order, alone: to the last bit, whatever else is there.
extern "C" int draftcert_layers(const draftcert_shape* shape, const draftcert_layer* layers, float* hidden,
                                const float* cosine, const float* sine, int threads, int level);

// output[r, i] = input[r, i] weight[i] / sqrt(mean of input[r]^2 + epsilon).
extern "C" int draftcert_norm(const float* input, const float* weight, float* output, int64_t rows, int64_t size,
                              float epsilon, int level);

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
