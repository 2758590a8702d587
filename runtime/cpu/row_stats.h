// One pass over rows of logits: the plain C interface.
//
// Every function takes a whole batch, writes into arrays the caller allocated, and returns 0, or -1 where an argument
// is out of range. Logarithms are natural. Ties are broken by the lowest id; +0 and -0 are equal; -inf is an ordinary
// logit of probability zero.
#ifndef DRAFTCERT_ROW_STATS_H
#define DRAFTCERT_ROW_STATS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum draftcert_dtype { DRAFTCERT_FLOAT32, DRAFTCERT_BFLOAT16, DRAFTCERT_FLOAT16, DRAFTCERT_FLOAT64 };

// What a row is. Of anything but an ordinary row only `status` says something about probabilities: logsumexp is then
// +inf, -inf or NaN as the mathematics has it and entropy and KL are NaN. The top of a row with infinities is still
// exact; of a row with a NaN it is ids of -1 and values of NaN.
enum draftcert_status {
  DRAFTCERT_ORDINARY = 0,
  DRAFTCERT_NAN = 1,
  DRAFTCERT_POSITIVE_INFINITY = 2,
  DRAFTCERT_ALL_NEGATIVE_INFINITY = 3,
  DRAFTCERT_DRAFT_NOT_ORDINARY = 4,  // the target's row is ordinary, the drafter's is one of the above
};

// A matrix of logits; strides count elements, and may be negative or zero.
typedef struct {
  const void* data;
  int64_t row_stride;
  int64_t column_stride;
  int32_t dtype;
} draftcert_logits;

// Arrays of `rows` entries, the top ones of rows x k in row-major order. The maximum and its id are the first of the
// top k. Any pointer may be null but the status.
//
// |value - exact| <= the error beside it, where exact is of the stored logits. With u the unit roundoff of the type the
// exponentials are taken in (2^-24 for float32, bfloat16 and float16, 2^-53 for float64), V the vocabulary and
// G = sum p (max - x), the mean gap, the errors are derived in row_stats.cpp to be about
//   logsumexp   u (38 + 3 G)
//   entropy     u (38 + 3 G) (1 + G) + u (6 + (45 + 5 ln V) G)
//   KL          u 240 (G + D) + u (76 + 3 G + 3 ln V), D the mean gap of the drafter's logits under the target
// which for logits of a language model is near 3e-6, 5e-5 and 2e-4 nats; errors met are 20 to 300 times smaller. Where
// the KL's is not below 1/128 of it, that row is evaluated again in float64 (error near 2e-12).
typedef struct {
  double* logsumexp;
  double* logsumexp_error;
  double* entropy;
  double* entropy_error;
  double* kl;  // KL(target||draft); +inf where the drafter gives no mass to a token the target gives mass to
  double* kl_error;
  double* top_values;
  int64_t* top_ids;
  int32_t* status;
} draftcert_row_stats_out;

// Statistics of the first `vocab` logits of each row, 1 <= k <= vocab < 2^32. Without `draft` (null) there is no KL,
// and its arrays must be null.
int draftcert_row_stats(const draftcert_logits* target, const draftcert_logits* draft, int64_t rows, int64_t vocab,
                        int64_t k, int threads, const draftcert_row_stats_out* out);

// Sums over the tokens whose logit is at least (`strict`: above) the row's threshold, compared exactly:
// how many, sum exp(x - reference), and sum exp(x - reference) (x - reference) over those of positive mass. With
// reference = logsumexp the sums are the tokens' probability S and the sum of p ln p a certificate's pool needs.
// `reference`, `mass` and `moment` may be null together.
int draftcert_at_least(const draftcert_logits* target, int64_t rows, int64_t vocab, const double* threshold, int strict,
                       const double* reference, int threads, int64_t* count, double* mass, double* moment);

// The k entries that follow the key (value, id) in the order (value descending, id ascending); exhausted rows end in
// ids of -1 and values of -inf. From id = -1 this starts with the largest logit <= value, from id = INT64_MAX with the
// largest logit < value: the most likely rejected token of a threshold.
int draftcert_top_after(const draftcert_logits* target, int64_t rows, int64_t vocab, const double* value,
                        const int64_t* id, int64_t k, int threads, double* top_values, int64_t* top_ids);

// -sum p ln(p + floor), given each row's logsumexp: what deployed typical acceptance uses in the place of entropy.
int draftcert_floored_entropy(const draftcert_logits* target, int64_t rows, int64_t vocab, const double* logsumexp,
                              double floor, int threads, double* out);

// Instruction sets compiled in, from 0 (portable) up; the widest that this machine runs is in use from the start.
// `draftcert_use_instruction_set(-1)` returns to it. Returns the one now in use, or -1 where the machine lacks it.
int draftcert_use_instruction_set(int level);

#ifdef __cplusplus
}
#endif
#endif
