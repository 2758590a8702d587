// The operators of torch on CPU tensors, around rows.h. `draftcert.runtime.rows.operators` defines them, says what else they
// run on, and has those they hand over to: what these loops do not serve, and rows that are no rows of logits.
#include "rows.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <vector>

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

namespace {

using at::Tensor;
using Columns = std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor>;

// The loops insert into a sorted list: beyond this many kept logits torch's selection is faster.
constexpr int64_t kMostKept = 512;

struct Program {
  std::vector<draftcert_instruction> steps;
  int64_t largest_rank = 0;

  // As `rows.program.encoded` writes it; numbers that are none give an empty program, which draftcert_evaluate refuses.
  explicit Program(c10::ArrayRef<double> numbers) {
    if (numbers.size() % 4) return;
    for (size_t i = 0; i < numbers.size(); i += 4) {
      if (!(numbers[i] >= DRAFTCERT_CONSTANT && numbers[i] <= DRAFTCERT_OR)) {
        steps.clear();
        return;
      }
      steps.push_back({int32_t(numbers[i]), numbers[i + 1] != 0, numbers[i + 2], numbers[i + 3]});
      if (steps.back().op == DRAFTCERT_RANK && steps.back().low >= 1)
        largest_rank = std::max(largest_rank, int64_t(std::min(steps.back().low, 0x1p62)));
    }
  }
};

std::optional<draftcert_logits> view(const Tensor& rows) {
  int32_t dtype;
  switch (rows.scalar_type()) {
    case at::kFloat: dtype = DRAFTCERT_FLOAT32; break;
    case at::kBFloat16: dtype = DRAFTCERT_BFLOAT16; break;
    case at::kHalf: dtype = DRAFTCERT_FLOAT16; break;
    case at::kDouble: dtype = DRAFTCERT_FLOAT64; break;
    default: return std::nullopt;
  }
  return draftcert_logits{rows.const_data_ptr(), rows.stride(0), rows.stride(1), dtype};
}

Tensor matrix(const Tensor& logits) {
  TORCH_CHECK(logits.dim() > 0 && logits.size(-1) > 0, "draftcert: logits of shape ", logits.sizes(), " have no tokens");
  return logits.dim() == 2 ? logits : logits.reshape({-1, logits.size(-1)});
}

// A column of results: an entry, or `width` of them, for each row.
class Shape {
 public:
  explicit Shape(const Tensor& logits) : sizes_(logits.sizes().begin(), logits.sizes().end() - 1) {}

  Tensor column(at::ScalarType type) const { return at::empty(sizes_, type); }
  Tensor columns(at::ScalarType type, int64_t width) const {
    auto sizes = sizes_;
    sizes.push_back(width);
    return at::empty(sizes, type);
  }

 private:
  c10::SmallVector<int64_t, 5> sizes_;
};

Columns row_stats(const Tensor& logits, int64_t k) {
  const Tensor rows = matrix(logits);
  const auto target = view(rows);
  if (target && k <= kMostKept) {
    const Shape shape(logits);
    Tensor max = shape.column(at::kDouble), argmax = shape.column(at::kLong);
    Tensor logsumexp = shape.column(at::kDouble), entropy = shape.column(at::kDouble);
    Tensor top_values = shape.columns(at::kDouble, k), top_ids = shape.columns(at::kLong, k);
    Tensor logsumexp_error = shape.column(at::kDouble), entropy_error = shape.column(at::kDouble);
    draftcert_out out{};
    out.max = max.mutable_data_ptr<double>();
    out.argmax = argmax.mutable_data_ptr<int64_t>();
    out.logsumexp = logsumexp.mutable_data_ptr<double>();
    out.entropy = entropy.mutable_data_ptr<double>();
    out.top_values = top_values.mutable_data_ptr<double>();
    out.top_ids = top_ids.mutable_data_ptr<int64_t>();
    out.logsumexp_error = logsumexp_error.mutable_data_ptr<double>();
    out.entropy_error = entropy_error.mutable_data_ptr<double>();
    if (draftcert_evaluate(&*target, nullptr, nullptr, rows.size(0), rows.size(1), k, 1, at::get_num_threads(), &out) == 0)
      return {max, argmax, logsumexp, entropy, top_values, top_ids, logsumexp_error, entropy_error};
  }
  static const auto by_tensors = c10::Dispatcher::singleton()
                                     .findSchemaOrThrow("draftcert::row_stats_by_tensors", "")
                                     .typed<Columns(const Tensor&, int64_t)>();
  return by_tensors.call(logits, k);
}

Columns certify(const Tensor& target, const std::optional<Tensor>& draft, c10::ArrayRef<double> program, int64_t candidates,
                double temperature, bool sound, int64_t k) {
  TORCH_CHECK(!draft || draft->sizes() == target.sizes(), "draftcert: logits of different shapes");
  const Tensor rows = matrix(target), draft_rows = draft ? matrix(*draft) : Tensor();
  const auto target_view = view(rows), draft_view = draft ? view(draft_rows) : target_view;
  const Program rule(program);
  const int64_t window = std::min(rows.size(1), std::max(k, rule.largest_rank) + candidates);
  if (target_view && draft_view && window <= kMostKept) {
    const Shape shape(target);
    Tensor value = shape.column(at::kDouble), level = shape.column(at::kDouble), threshold = shape.column(at::kDouble);
    Tensor accepted = shape.column(at::kLong), exact = shape.column(at::kBool), passes = shape.column(at::kByte);
    Tensor kl = draft ? shape.column(at::kDouble) : at::empty({0}, at::kDouble);
    Tensor certified = draft ? shape.column(at::kBool) : at::empty({0}, at::kBool);
    draftcert_out out{};
    out.value = value.mutable_data_ptr<double>();
    out.level = level.mutable_data_ptr<double>();
    out.threshold = threshold.mutable_data_ptr<double>();
    out.accepted = accepted.mutable_data_ptr<int64_t>();
    out.exact = static_cast<uint8_t*>(exact.mutable_data_ptr());
    out.passes = passes.mutable_data_ptr<uint8_t>();
    if (draft) {
      out.kl = kl.mutable_data_ptr<double>();
      out.certified = static_cast<uint8_t*>(certified.mutable_data_ptr());
    }
    const draftcert_rule compiled{rule.steps.data(), int64_t(rule.steps.size()), candidates, sound};
    if (draftcert_evaluate(&*target_view, draft ? &*draft_view : nullptr, &compiled, rows.size(0), rows.size(1), window,
                           temperature, at::get_num_threads(), &out) == 0)
      return {value, level, threshold, accepted, exact, passes, kl, certified};
  }
  static const auto by_tensors =
      c10::Dispatcher::singleton()
          .findSchemaOrThrow("draftcert::certify_by_tensors", "")
          .typed<Columns(const Tensor&, const std::optional<Tensor>&, c10::ArrayRef<double>, int64_t, double, bool, int64_t)>();
  return by_tensors.call(target, draft, program, candidates, temperature, sound, k);
}

TORCH_LIBRARY_IMPL(draftcert, CPU, library) {
  library.impl("row_stats", row_stats);
  library.impl("certify", certify);
}

}  // namespace
