// Encoders composed from kernels, in front of an engine and inside it.
#include "serving/stages/encoder_passes.h"

#include <gtest/gtest.h>

#include "hardware/catalogue.h"
#include "kernel/learned.h"
#include "model/catalogue.h"
#include "serving/load/images.h"
#include "serving/load/lengths.h"
#include "serving/load/synthetic.h"
#include "serving/stages/picture_steps.h"
#include "serving/stages/stage_list.h"
#include "serving/test_support.h"

namespace foretoken::encoder_passes_test {

const std::filesystem::path data = FORETOKEN_SOURCE_DIR "/data";

EncoderMachine machine() {
  const Device device = HardwareCatalogue(data / "hardware").device("h100_sxm");
  return {.models = {KernelPredictor(device, {},
                                     std::make_shared<LearnedKernels>(device, data / "kernels" / "calibrations")),
                     nullptr},
          .stack = StackCatalogue(data / "stacks").stack("torch-graph")};
}

VisionEncoder qwen() {
  return find_vision_encoder(data / "vision", "Qwen2-VL-7B-Instruct");
}

TEST(EncoderPasses, larger_batches_and_longer_texts_take_longer_but_less_for_each_text) {
  EncoderPasses passes(ModelCatalogue(data / "models").model("bert-base-uncased"), machine());
  double before = 0;
  for (const int64_t texts : {1, 8, 64, 256}) {
    const double seconds = passes.seconds(texts, 128).value;
    EXPECT_GT(seconds, before);
    EXPECT_LE(seconds, static_cast<double>(texts) * passes.seconds(1, 128).value);
    EXPECT_LT(seconds, passes.seconds(texts, 512).value);
    before = seconds;
  }
}

TEST(PictureEncoder, time_grows_with_pictures_and_their_size_and_none_takes_none) {
  PictureEncoder encoder(qwen(), machine());
  const std::vector<int64_t> small = {1024}, large = {4096}, several = {1024, 1024, 1024, 4096};
  EXPECT_LT(encoder.seconds(small).value, encoder.seconds(large).value);
  EXPECT_LT(encoder.seconds(large).value, encoder.seconds(several).value);
  EXPECT_EQ(encoder.seconds({}).value, 0);
}

std::unique_ptr<RequestSource> picture_load(double share) {
  return with_images(synthetic_load({.rate = 20, .count = 60}, uniform_lengths({100, 100}, {5, 5}, 1), {}, 1),
                     {.sizes = {{.patches = 1024, .tokens = 256}}, .per_request = 2, .share = share}, 1);
}

SimulationConfig engine(StepTimes& times) {
  return {.replicas = {{.options = {.max_num_batched_tokens = 300, .num_gpu_blocks = 4000}, .times = &times}}};
}

// Pictures that went through it.
class CountingTimes final : public StepTimes {
 public:
  Estimate step_seconds(const StepBatch& batch) override {
    pictures += static_cast<int64_t>(batch.images.size());
    return exactly(0.001);
  }
  int64_t pictures = 0;
};

TEST(PictureSteps, every_picture_is_encoded_once_however_prompts_are_cut) {
  CountingTimes times;
  RecordedRun seen;
  const auto load = picture_load(1);
  simulate(engine(times), *load, seen);
  EXPECT_EQ(seen.requests.size(), 60U);
  EXPECT_EQ(times.pictures, 2 * 60);
  EXPECT_EQ(seen.requests.front().input_tokens, 100 + 2 * 256) << "their tokens are part of the prompt";
}

TEST(PictureSteps, workers_of_their_own_leave_the_engine_nothing_to_encode) {
  CountingTimes times;
  RecordedRun seen;
  StageList stages;
  stages.add("encode", 2, 2, picture_stage(std::make_shared<PictureEncoder>(qwen(), machine())));
  SimulationConfig config = engine(times);
  config.stages = stages.configs();
  const auto load = picture_load(0.5);
  const SimulationTotals totals = simulate(config, *load, seen);
  EXPECT_EQ(times.pictures, 0);
  EXPECT_EQ(totals.completed, 60);
  const int64_t encoded = totals.stages.front().service.count();
  EXPECT_GT(encoded, 10) << "those with pictures";
  EXPECT_LT(encoded, 50) << "the others pass by";
}

TEST(PictureSteps, a_step_without_pictures_takes_what_the_engine_takes) {
  LinearTimes inner({});
  PictureEncoder encoder(qwen(), machine());
  const auto times = picture_steps(inner, encoder);
  const StepBatch decodes{.decodes = 4, .decode_context_tokens = 400, .longest_decode_context = 100};
  EXPECT_EQ(times->step_seconds(decodes).value, inner.step_seconds(decodes).value);
  const std::vector<int64_t> pictures = {1024};
  StepBatch with_picture = decodes;
  with_picture.images = pictures;
  EXPECT_DOUBLE_EQ(times->step_seconds(with_picture).value,
                   inner.step_seconds(decodes).value + encoder.seconds(pictures).value);
}

}  // namespace foretoken::encoder_passes_test
