#include "serving/stages/picture_steps.h"

#include <array>

namespace foretoken {
namespace {

class PictureSteps final : public StepTimes {
 public:
  PictureSteps(StepTimes& engine, PictureEncoder& encoder) : engine_(&engine), encoder_(&encoder) {}

  Estimate step_seconds(const StepBatch& batch) override {
    const Estimate step = engine_->step_seconds(batch);
    if (batch.images.empty()) return step;
    return sum_of_correlated(std::array{encoder_->seconds(batch.images), step});
  }
  Estimate decode_run_seconds(const StepBatch& batch, int64_t steps) override {
    return engine_->decode_run_seconds(batch, steps);
  }

 private:
  StepTimes* engine_;
  PictureEncoder* encoder_;
};

}  // namespace

std::unique_ptr<StepTimes> picture_steps(StepTimes& engine, PictureEncoder& encoder) {
  return std::make_unique<PictureSteps>(engine, encoder);
}

}  // namespace foretoken
