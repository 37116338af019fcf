#include "compose/profile/trace_plan.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "network/chakra/collectives.h"

namespace foretoken {
namespace {

constexpr double unsure = 1.2;  // where it is not clear which size is divided; assumed, not fitted

int64_t most_frequent(const std::map<int64_t, int64_t>& counts) {
  const auto found =
      std::max_element(counts.begin(), counts.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return found == counts.end() ? 0 : found->first;
}

bool is_optimizer(const ProfiledKernel& kernel) {
  const std::string name = lower_case(kernel.name);
  return name.find("adam") != std::string::npos || name.find("multi_tensor_apply") != std::string::npos;
}

int64_t size_along(const ParallelPlan& plan, ParallelAxis axis) {
  switch (axis) {
    case ParallelAxis::tensor:
      return plan.tensor;
    case ParallelAxis::pipeline:
      return plan.pipeline;
    case ParallelAxis::data:
      return plan.data;
    case ParallelAxis::expert:
      return plan.expert;
    case ParallelAxis::context:
      return plan.context;
  }
  return 1;
}

double ratio(int64_t before, int64_t after) {
  return static_cast<double>(before) / static_cast<double>(after);
}

int64_t divided_size(int64_t size, double share) {
  return std::max<int64_t>(1, std::llround(static_cast<double>(size) * share));
}

}  // namespace

KernelSplit::KernelSplit(const ProfiledStep& step, const ParallelPlan& recorded, const ParallelPlan& wanted)
    : recorded_(recorded), wanted_(wanted), tensor_share_(ratio(recorded.tensor, wanted.tensor)) {
  find_sizes(step);
  const MessagePrices groups({.plan = recorded}, {.plan = wanted});
  shards_optimizer_ = std::any_of(step.kernels.begin(), step.kernels.end(), [&](const ProfiledKernel& kernel) {
    const bool shards = kernel.message && (kernel.message->kind == CollectiveKind::reduce_scatter ||
                                           kernel.message->kind == CollectiveKind::all_gather);
    return shards && groups.axis_of(*kernel.message) == ParallelAxis::data;
  });
}

// Every multiply of a layer has the tokens as its rows and the hidden state on one side.
void KernelSplit::find_sizes(const ProfiledStep& step) {
  std::map<int64_t, int64_t> rows, sides;
  std::set<size_t> attention_calls;  // one may launch several kernels
  for (const ProfiledKernel& kernel : step.kernels) {
    const ProfiledOperator* const caller = kernel.call ? &step.operators[*kernel.call] : nullptr;
    if (classify_kernel(kernel, caller).role == KernelRole::attention &&
        (caller == nullptr || attention_calls.insert(*kernel.call).second)) {
      ++attention_passes_;
    }
    if (!kernel.call || kernel.backward) continue;
    const ProfiledOperator& call = step.operators[*kernel.call];
    const KernelClass kind = classify_kernel(kernel, &call);
    const std::optional<ProfiledShape> shape = shape_of_kernel(kernel, &call, kind);
    const auto* const multiply = shape ? std::get_if<GemmShape>(&shape->shape) : nullptr;
    if (multiply == nullptr || multiply->batch > 1) continue;
    ++rows[multiply->m];
    ++sides[multiply->n];
    if (multiply->k != multiply->n) ++sides[multiply->k];
    const double each = kind.dtype == DType::fp32 ? 4 : 2;
    weight_bytes_ += each * static_cast<double>(multiply->n) * static_cast<double>(multiply->k);
  }
  tokens_ = most_frequent(rows);
  hidden_ = most_frequent(sides);
}

bool KernelSplit::is_as_wide_as_hidden(const ProfiledOperator& call) const {
  return std::any_of(call.dims.begin(), call.dims.end(),
                     [&](const std::vector<int64_t>& dims) { return dims.size() > 1 && dims.back() == hidden_; });
}

KernelShape KernelSplit::divided(KernelShape shape, const ProfiledOperator* call, bool& is_certain) const {
  if (auto* const multiply = std::get_if<GemmShape>(&shape)) {
    std::vector<int64_t*> sizes;
    for (int64_t* size : {&multiply->n, &multiply->k, &multiply->m}) {
      if (*size != tokens_ && *size != hidden_) sizes.push_back(size);
    }
    is_certain = sizes.size() == 1;
    int64_t& size = sizes.empty() ? multiply->k : *sizes.front();
    size = divided_size(size, tensor_share_);
  } else if (auto* const attention = std::get_if<AttentionShape>(&shape)) {
    if (attention->heads * recorded_.tensor % wanted_.tensor != 0) {
      throw InputError({.source = "tensor parallelism",
                        .value = fmt::format("{}", wanted_.tensor),
                        .expected = fmt::format("a divisor of the trace's {} attention heads",
                                                attention->heads * recorded_.tensor)});
    }
    attention->heads = divided_size(attention->heads, tensor_share_);
    attention->kv_heads = divided_size(attention->kv_heads, tensor_share_);
  } else if (auto* const pass = std::get_if<ElementwiseShape>(&shape)) {
    const bool is_replicated = !recorded_.sequence && call != nullptr && is_as_wide_as_hidden(*call);
    if (!is_replicated) pass->elements = divided_size(pass->elements, tensor_share_);
  }
  return shape;
}

KernelWork KernelSplit::work_of(const ProfiledKernel& kernel, const ProfiledOperator* call, const KernelClass& kind,
                                const std::optional<ProfiledShape>& shape) const {
  if (is_optimizer(kernel)) {
    const double among_data = shards_optimizer_ ? ratio(recorded_.data, wanted_.data) : 1;
    return {.share = exactly(tensor_share_ * among_data)};
  }
  if (tensor_share_ == 1) return {.shape = shape};
  const double low = std::min(tensor_share_, 1.0), high = std::max(tensor_share_, 1.0);
  if (shape) {
    bool is_certain = true;
    KernelWork work{.shape =
                        ProfiledShape{.shape = divided(shape->shape, call, is_certain), .variant = shape->variant}};
    if (!is_certain) work.share = {.value = 1, .low = 1 / unsure, .high = unsure, .kind = Confidence::roofline};
    return work;
  }
  const bool divides_work = kind.role == KernelRole::multiply || kind.role == KernelRole::attention ||
                            kind.role == KernelRole::activate || recorded_.sequence;
  const bool is_known = call != nullptr && !call->dims.empty() && hidden_ > 0;
  const bool is_divided = divides_work || (is_known && !is_as_wide_as_hidden(*call));
  if (is_divided) {
    return {.share = {.value = tensor_share_,
                      .low = tensor_share_ / unsure,
                      .high = tensor_share_ * unsure,
                      .kind = Confidence::roofline}};
  }
  if (is_known) return {};
  return {.share = {.value = std::sqrt(tensor_share_), .low = low, .high = high, .kind = Confidence::roofline}};
}

std::optional<double> KernelSplit::hidden_bytes() const {
  if (tokens_ == 0 || hidden_ == 0) return std::nullopt;
  return 2 * static_cast<double>(tokens_) * static_cast<double>(hidden_);
}

std::optional<ParallelAxis> MessagePrices::axis_of(const ProfiledMessage& message) const {
  if (message.kind == CollectiveKind::send_recv) return ParallelAxis::pipeline;
  const ParallelPlan& plan = recorded_.plan;
  const auto& ranks = message.ranks;
  const int64_t size = ranks.empty() ? message.group_size : static_cast<int64_t>(ranks.size());
  const int64_t distance = ranks.size() > 1 ? ranks[1] - ranks[0] : 0;  // 0 = not known
  struct Axis {
    ParallelAxis axis;
    int64_t distance;
  };
  std::optional<ParallelAxis> found;
  for (const Axis& one : {Axis{ParallelAxis::tensor, 1}, Axis{ParallelAxis::data, plan.tensor * plan.context},
                          Axis{ParallelAxis::pipeline, plan.tensor * plan.context * plan.data}}) {
    const bool fits = size > 1 && size == size_along(plan, one.axis) && (distance == 0 || distance == one.distance);
    if (!fits) continue;
    if (found) return std::nullopt;
    found = one.axis;
  }
  return found;
}

Estimate MessagePrices::microseconds(const TraceJob& job, const CollectiveShape& shape) const {
  if (shape.ranks < 2) return exactly(0);
  return scaled(job.network->seconds({.shape = shape}), 1e6);
}

std::optional<MessageTimes> MessagePrices::times_of(const ProfiledMessage& message) const {
  const std::optional<ParallelAxis> axis = axis_of(message);
  if (!axis || message.kind == CollectiveKind::barrier || recorded_.network == nullptr) return std::nullopt;
  const int64_t before = size_along(recorded_.plan, *axis), after = size_along(wanted_.plan, *axis);
  if (before < 2 || (after > 1 && wanted_.network == nullptr)) return std::nullopt;
  // A send has two ends, whatever the number of stages.
  const bool is_send = message.kind == CollectiveKind::send_recv;
  const auto ends = [&](int64_t ranks) { return is_send ? std::min<int64_t>(ranks, 2) : ranks; };
  const double bytes = collective_bytes(message.kind, message.bytes, before);
  const bool is_divided = *axis == ParallelAxis::data || (*axis == ParallelAxis::pipeline && recorded_.plan.sequence);
  const double share = is_divided ? ratio(recorded_.plan.tensor, wanted_.plan.tensor) : 1;
  return MessageTimes{
      .before = microseconds(recorded_, {.kind = message.kind, .axis = *axis, .ranks = ends(before), .bytes = bytes}),
      .after =
          microseconds(wanted_, {.kind = message.kind, .axis = *axis, .ranks = ends(after), .bytes = bytes * share}),
      .waits_in_pipeline = is_send && !message.sends};
}

}  // namespace foretoken
