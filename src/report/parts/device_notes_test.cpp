#include "report/parts/device_notes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hardware/catalogue.h"

namespace foretoken::device_notes_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(DeviceNotes, say_where_a_calibrated_deployment_does_not_cover_the_engine) {
  const CalibratedDeployment deployment{
      .name = "mine",
      .engine = "vllm",
      .stack = "vllm",
      .device = "h100_sxm",
      .engines = {{.model = "some/model", .plan = {.tensor = 2}, .constants = prior_of_constants()}},
      .others = prior_of_constants(),
      .rows = {},
      .notes = {}};
  Device own, other;
  own.name = "h100_sxm";
  other.name = "a100_sxm";
  Model model;
  model.name = "some/model";
  const auto sentences = [&](const CalibratedDeployment* known, const char* engine, const Device& device,
                             const ParallelPlan& plan) {
    DeviceNotes notes;
    notes.add_deployment(known, engine, device, model, plan);
    return notes.sentences;
  };
  EXPECT_THAT(sentences(nullptr, "vllm", other, {}), IsEmpty());
  EXPECT_THAT(sentences(&deployment, "vllm-0.19", own, {.tensor = 2}), IsEmpty());
  EXPECT_THAT(sentences(&deployment, "vllm", own, {.tensor = 4}), ElementsAre(HasSubstr("no run of some/model")));
  EXPECT_THAT(sentences(&deployment, "vllm", other, {.tensor = 2}),
              ElementsAre(HasSubstr("does not cover vllm on a100_sxm")));
  EXPECT_THAT(sentences(&deployment, "sglang", own, {.tensor = 2}),
              ElementsAre(HasSubstr("does not cover sglang on h100_sxm")));
}

TEST(DeviceNotes, an_engine_newer_than_what_was_fitted_is_said_once) {
  const Device device = HardwareCatalogue(FORETOKEN_SOURCE_DIR "/data/hardware").device("h100_sxm");
  DeviceNotes notes;
  notes.add_engine("vllm-0.19", device);
  EXPECT_THAT(notes.sentences, IsEmpty());
  notes.add_engine("vllm-0.31", device);
  notes.add_engine("vllm-0.31", device);
  ASSERT_EQ(notes.sentences.size(), 1);
  EXPECT_NE(notes.sentences[0].find("vLLM 0.31 is newer"), std::string::npos);
}

}  // namespace foretoken::device_notes_test
