#include "serving/steps/sustained_steps.h"

#include <utility>

namespace foretoken {
namespace {

class SustainedSteps final : public StepTimes {
 public:
  SustainedSteps(std::unique_ptr<StepTimes> cool, std::shared_ptr<SustainedGrid> grid)
      : cool_(std::move(cool)), grid_(std::move(grid)) {}

  Estimate step_seconds(const StepBatch& batch) override {
    // Drafts count as decodes; together they read the same cache.
    const auto decodes = static_cast<double>(batch.decodes + batch.drafted_tokens);
    const SustainedGrid::Step step{
        .prompt_tokens = static_cast<double>(batch.new_tokens()) - decodes,
        .decodes = decodes,
        .mean_context = batch.decodes > 0 ? static_cast<double>(batch.decode_context_tokens) / decodes : 0};
    const Estimate cool = cool_->step_seconds(batch), slowdown = grid_->slowdown(step);
    return slowdown.high == 1 ? cool : product_of_independent(cool, slowdown);  // most decodes: no limit is met
  }

 private:
  std::unique_ptr<StepTimes> cool_;
  std::shared_ptr<SustainedGrid> grid_;
};

}  // namespace

std::unique_ptr<StepTimes> sustained_steps(std::unique_ptr<StepTimes> cool, std::shared_ptr<SustainedGrid> grid) {
  return std::make_unique<SustainedSteps>(std::move(cool), std::move(grid));
}

}  // namespace foretoken
