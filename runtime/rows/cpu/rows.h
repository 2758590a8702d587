// Statistics and certificates of rows of logits: the plain C interface.
//
// Logarithms are natural. Ties are broken by the lowest id; +0 and -0 are equal; -inf is an ordinary logit of
// probability zero.
#ifndef DRAFTCERT_ROWS_H
#define DRAFTCERT_ROWS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum draftcert_dtype { DRAFTCERT_FLOAT32, DRAFTCERT_BFLOAT16, DRAFTCERT_FLOAT16, DRAFTCERT_FLOAT64 };

// What a row is. Of anything but an ordinary row only `status` says something about probabilities: logsumexp is then
// +inf, -inf or NaN as the mathematics has it and all else is NaN. The top of a row with infinities is still exact; of
// a row with a NaN it is ids of -1 and values of NaN.
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

// The instructions of a rule, for a machine with a stack of enclosures [low, high] and one of cuts of the order.
// `draftcert.runtime.rows.program` writes them.
enum draftcert_op {
  // push an enclosure
  DRAFTCERT_CONSTANT,     // [low, high]
  DRAFTCERT_LOG_TOP,      // ln of the largest probability
  DRAFTCERT_ENTROPY,      // -sum p ln(p + low)
  DRAFTCERT_LOGIT_RATIO,  // second largest stored logit over the largest
  // combine the enclosures on top
  DRAFTCERT_ADD,
  DRAFTCERT_MULTIPLY,
  DRAFTCERT_MINIMUM,
  DRAFTCERT_MAXIMUM,
  DRAFTCERT_EXP,
  DRAFTCERT_LOG,
  DRAFTCERT_LOG1P,
  DRAFTCERT_RECIPROCAL,
  // push a cut
  DRAFTCERT_RANK,       // the `low` most likely tokens
  DRAFTCERT_ROW,        // all tokens where the enclosure popped is at least 0 (strict: above), none elsewhere
  DRAFTCERT_THRESHOLD,  // the tokens whose gap, max - x over the temperature, is at most (strict: below) the one popped
  // combine the cuts on top
  DRAFTCERT_AND,
  DRAFTCERT_OR,
};

typedef struct {
  int32_t op;
  int32_t strict;
  double low, high;
} draftcert_instruction;

typedef struct {
  const draftcert_instruction* program;  // leaves one cut
  int64_t length;
  int64_t candidates;  // how many of the drafter's most likely tokens are tried, 1 <= candidates < vocab
  int32_t sound;       // round everything against the claim
} draftcert_rule;

// Arrays of `rows` entries, the top ones of rows x k in row-major order. Any pointer may be null.
//
// |value - exact| <= the error beside it, where exact is of the stored logits over the temperature; docs/soundness.md
// derives the errors. For float32, bfloat16 and float16 logits of a language model those of logsumexp, entropy and KL are
// near 3e-6, 5e-5 and 2e-4 nats, and errors met are 20 to 300 times smaller. Where the KL's is not below 1/128 of it, or
// does not tell on which side of the certificate the KL lies, that row is evaluated again in float64, term by term: there
// the error vanishes with the KL.
typedef struct {
  double* max;  // the first of the top k
  int64_t* argmax;
  double* logsumexp;
  double* logsumexp_error;
  double* entropy;
  double* entropy_error;
  double* top_values;  // the stored logits
  int64_t* top_ids;
  int32_t* status;
  double* kl;  // KL(target||draft); +inf where the drafter gives no mass to a token the target gives mass to
  double* kl_error;  // added to the KL, and 0, for a rule that is sound
  // The fields of draftcert.runtime.Certificate.
  double* value;
  double* level;
  double* threshold;
  int64_t* accepted;
  uint8_t* exact;
  uint8_t* passes;
  uint8_t* certified;
} draftcert_out;

// One traversal of the first `vocab` logits of each row, 1 <= k <= vocab < 2^32, temperature in [1e-150, 1e150]; the
// float64 kernel takes temperatures outside [2^-60, 2^60]. Rows whose certificate their k largest logits do not settle
// are traversed again. Without `draft` there is no KL, without `rule` no certificate, and their arrays must be null.
// With a rule k must be at least `candidates` + the largest rank of the rule.
//
// Returns how many rows are not ordinary, or -1 where an argument is out of range.
int64_t draftcert_evaluate(const draftcert_logits* target, const draftcert_logits* draft, const draftcert_rule* rule,
                           int64_t rows, int64_t vocab, int64_t k, double temperature, int threads,
                           const draftcert_out* out);

// Instruction sets compiled in, from 0 (portable) up; the widest that this machine runs is in use from the start.
// `draftcert_use_instruction_set(-1)` returns to it. Returns the one now in use, or -1 where the machine lacks it.
int draftcert_use_instruction_set(int level);

#ifdef __cplusplus
}
#endif
#endif
