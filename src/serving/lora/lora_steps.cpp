#include "serving/lora/lora_steps.h"

#include <array>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "serving/steps/size_grid.h"

namespace foretoken {
namespace {

constexpr int64_t grid_steps = 4;
constexpr double fastest_measured = 0.6, slowest_measured = 1.6;  // of the prediction, 5% and 95% of rows

class LoraSteps final : public StepTimes {
 public:
  LoraSteps(StepTimes& base, const LoraAdapter& lora, ComposedStepsConfig config)
      : base_(&base), config_(std::move(config)) {
    if (lora.rank == 0) return;
    for (int64_t stage = 0; stage < config_.plan.pipeline; ++stage) {
      StepRequest request{.phase = StepPhase::decode, .batch = 1, .context_len = 1};
      request.lora = lora;
      for (const Operator& call : stage_operators(config_.model, request, config_.plan, stage)) {
        const bool shrinks = call.name.ends_with("_lora_a"), expands = call.name.ends_with("_lora_b");
        if (!shrinks && !expands) continue;
        const GemmShape& matrix = std::get<GemmShape>(call.shape);
        kernels_.push_back(
            {.kernel = {.n = matrix.n, .k = matrix.k, .scheme = matrix.scheme, .adds_to_output = expands},
             .count = call.count});
        launches_ += call.count;
      }
    }
  }

  Estimate step_seconds(const StepBatch& batch) override {
    const Estimate plain = base_->step_seconds(batch);
    if (batch.adapters == 0 || kernels_.empty()) return plain;
    const StepPhase phase = batch.prompts.empty() ? StepPhase::decode : StepPhase::prefill;
    const std::array<double, 2> point{static_cast<double>(batch.adapter_tokens), static_cast<double>(batch.adapters)};
    const std::array<Estimate, 3> parts{
        plain,
        kernels_at_.at(static_cast<uint64_t>(phase), point,
                       [&](const auto& node) { return at_least_of_fewer(phase, node[0], node[1]); }),
        exactly(gap(phase, batch.new_tokens()) * static_cast<double>(launches_))};
    return sum_of_correlated(parts);
  }

 private:
  struct Calls {
    AdapterKernel kernel;
    int64_t count = 0;
  };

  // Beyond what measured kernel times hold.
  double gap(StepPhase phase, int64_t tokens) const {
    const Dispatch dispatch = config_.stack.dispatch_of(phase, tokens);
    if (dispatch == Dispatch::fused) return 0;
    const StackCosts& costs = config_.stack.costs;
    return (dispatch == Dispatch::eager ? costs.eager_gap : costs.graph_gap).value();
  }

  Estimate at_least_of_fewer(StepPhase phase, int64_t tokens, int64_t adapters) const {
    Estimate longest = kernel_seconds(phase, tokens, adapters);
    for (int64_t fewer = 1; fewer < adapters; fewer = size_cell(static_cast<double>(fewer), grid_steps).upper) {
      longest = larger_of(longest, kernel_seconds(phase, tokens, fewer));
    }
    return longest;
  }

  Estimate kernel_seconds(StepPhase phase, int64_t tokens, int64_t adapters) const {
    if (tokens == 0 || adapters == 0) return exactly(0);
    std::vector<Estimate> parts;
    for (const Calls& calls : kernels_) {
      parts.push_back(scaled(adapter_kernel_seconds(config_.models.kernels, calls.kernel, tokens, adapters),
                             static_cast<double>(calls.count) * config_.stack.kernel_factor(phase)));
    }
    return sum_of_correlated(parts);
  }

  StepTimes* base_;
  ComposedStepsConfig config_;
  std::vector<Calls> kernels_;
  int64_t launches_ = 0;
  SizeGrid<2, grid_steps> kernels_at_;  // by phase: tokens, adapters
};

}  // namespace

Estimate adapter_kernel_seconds(const KernelPredictor& predictor, const AdapterKernel& kernel, int64_t tokens,
                                int64_t adapters) {
  const GemmShape shape{.m = (tokens + adapters - 1) / adapters,
                        .n = kernel.n,
                        .k = kernel.k,
                        .batch = adapters,
                        .scheme = kernel.scheme};
  double seconds = predictor.estimate(shape).seconds.value;
  if (kernel.adds_to_output) {
    const Bytes output(static_cast<double>(tokens) * static_cast<double>(kernel.n) *
                       facts(kernel.scheme).activation_bytes);
    seconds += (output / predictor.device().memory_bandwidth->value).value();
  }
  return {.value = seconds,
          .low = seconds * fastest_measured,
          .high = seconds * slowest_measured,
          .kind = Confidence::extrapolated};
}

std::unique_ptr<StepTimes> lora_steps(StepTimes& base, const LoraAdapter& lora, ComposedStepsConfig config) {
  return std::make_unique<LoraSteps>(base, lora, std::move(config));
}

}  // namespace foretoken
