#pragma once
#include <cstdint>

// output[r, o] = sum_i input[r, i] weight[o, i] + bias[o], all row-major float32 and dense; `bias` may be null. A row of
// the output depends on its row of the input alone, to the last bit, whatever rows come with it and however many threads
// there are. `level`: instruction set 0 (portable), 1 (AVX2) or 2 (AVX-512), -1 for the widest there is. Returns 0, or
// -1 where the machine lacks that instruction set.
extern "C" int draftcert_linear(const float* input, const float* weight, const float* bias, float* output, int64_t rows,
                                int64_t in, int64_t out, int threads, int level);
