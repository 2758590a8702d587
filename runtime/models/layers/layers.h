#pragma once
#include <cstdint>

// Layers of a Llama-like decoder over few rows. All arrays are row-major float32 and dense. `level`: instruction set
// 0 (portable), 1 (AVX2) or 2 (AVX-512), -1 for the widest there is; -1 is returned where the machine lacks it, else 0.

struct draftcert_layer {
  const float *attention_norm, *query, *key, *value, *output, *mlp_norm, *gate, *up, *down;
  // May be null.
  const float *query_bias, *key_bias, *value_bias, *output_bias, *gate_bias, *up_bias, *down_bias;
  const float *query_norm, *key_norm;
  float *keys, *values;  // the cache: [batch, key_heads, capacity, dimension]
  const float* mask;     // [batch, nodes, span]: 0 where a node attends to a place of the cache, else -inf
};

struct draftcert_shape {
  int64_t layers, batch, nodes, hidden, heads, key_heads, dimension, intermediate, capacity, span;
  const int64_t* lengths;  // of each sequence: where its nodes' keys and values go
  float epsilon, scale;    // of the norms, and of the scores
};

// Takes the embedded nodes `hidden` [batch, nodes, hidden] through all layers, in place, and writes their keys and values
// into the cache. `cosine`, `sine`: [batch, nodes, dimension], the rotation of each node's position.
extern "C" int draftcert_layers(const draftcert_shape* shape, const draftcert_layer* layers, float* hidden,
                                const float* cosine, const float* sine, int threads, int level);

// output[r, o] = sum_i input[r, i] weight[o, i] + bias[o]; `bias` may be null. A row of the output depends on its row of
// the input alone, to the last bit, whatever rows come with it and however many threads there are.
extern "C" int draftcert_linear(const float* input, const float* weight, const float* bias, float* output, int64_t rows,
                                int64_t in, int64_t out, int threads, int level);
