// Accuracy wherever the tests run: predictions against our own measurements (data/measured) and against the sample of
// other people's that ships with the tests (tests/data; its README names sources and licences). Constants were fitted
// to more rows of the same sources, so the ceilings catch a predictor that gets worse; docs/accuracy.md has errors on
// rows that no fit saw.
#include <string>

#include <gtest/gtest.h>

#include "base/json.h"
#include "run.h"

namespace foretoken::sample_accuracy_test {

struct Ceiling {
  int64_t least_rows;
  double mape;           // percent, over all rows
  double group_mape;     // and of each group of at least ten rows
  double least_covered;  // percent of measurements inside the 90% interval
};

void expect_within(const Ceiling& ceiling, const std::string& command) {
  SCOPED_TRACE("foretoken validate " + command);
  const Outcome run = run_foretoken("validate " + command + " --json");
  ASSERT_EQ(run.status, 0) << run.err;
  const Json document = parse_json(run.out, command);
  const JsonView validation(document, command);
  EXPECT_GE(validation.at("overall").at("n").integer(), ceiling.least_rows);
  EXPECT_LT(validation.at("overall").at("mape").number(), ceiling.mape);
  EXPECT_GE(validation.at("overall").at("coverage90").number(), ceiling.least_covered);
  for (const JsonView& group : validation.at("groups").items()) {
    if (group.at("n").integer() < 10) continue;
    EXPECT_LT(group.at("mape").number(), ceiling.group_mape) << group.at("name").string();
  }
  EXPECT_EQ(validation.at("skipped").items().size(), 0U);
}

const std::string sample = FORETOKEN_SOURCE_DIR "/tests/data";
const std::string measured = FORETOKEN_SOURCE_DIR "/data/measured";

TEST(SampleAccuracy, kernels_of_four_gpus) {
  expect_within({.least_rows = 480, .mape = 3, .group_mape = 7, .least_covered = 85},
                "kernels --data " + sample + "/kernels");
}

TEST(SampleAccuracy, kernels_of_four_gpus_predicted_from_other_gpus) {
  expect_within({.least_rows = 480, .mape = 16, .group_mape = 32, .least_covered = 85},
                "kernels --tier cross --data " + sample + "/kernels");
}

TEST(SampleAccuracy, kernels_of_our_own_sweep) {
  expect_within({.least_rows = 4500, .mape = 5, .group_mape = 20, .least_covered = 85},
                "kernels --data " + measured + "/h200_sxm");
}

TEST(SampleAccuracy, sizes_of_matrices_that_no_fit_has_seen) {
  expect_within({.least_rows = 180, .mape = 18, .group_mape = 18, .least_covered = 85},
                "kernels --families gemm --data " FORETOKEN_SOURCE_DIR "/data/measured_unfitted");
}

TEST(SampleAccuracy, multiplies_of_boards_that_nobody_swept) {
  expect_within({.least_rows = 44, .mape = 13, .group_mape = 20, .least_covered = 80},
                "kernels --data " FORETOKEN_SOURCE_DIR "/data/measured_public");
}

TEST(SampleAccuracy, sparse_products_of_graphs_that_no_fit_has_seen) {
  expect_within({.least_rows = 3800, .mape = 7, .group_mape = 11, .least_covered = 85},
                "kernels --data " FORETOKEN_SOURCE_DIR "/data/measured_sparse/unfitted");
}

TEST(SampleAccuracy, whole_steps_that_we_measured) {
  const std::string steps = "steps --data " + measured + "/h200_sxm/steps.csv";
  expect_within({.least_rows = 160, .mape = 5.1, .group_mape = 8, .least_covered = 85},
                steps + " --phases prefill,train");
  expect_within({.least_rows = 150, .mape = 6, .group_mape = 8, .least_covered = 85}, steps + " --phases decode");
}

TEST(SampleAccuracy, schedules_of_products_that_no_fit_has_seen) {
  const std::string data = FORETOKEN_SOURCE_DIR "/data/measured_schedules/unfitted.csv";
  const Outcome run = run_foretoken("validate schedules --data " + data + " --json");
  ASSERT_EQ(run.status, 0) << run.err;
  const Json document = parse_json(run.out, "answer");
  const JsonView answer(document, "answer");
  EXPECT_EQ(answer.at("overall").at("n").integer(), 936);
  EXPECT_LT(answer.at("overall").at("mape").number(), 12);
  ASSERT_EQ(answer.at("choices").items().size(), 6U);
  for (const JsonView& choice : answer.at("choices").items()) {
    EXPECT_GT(choice.at("rank_correlation").number(), 0.9);
    EXPECT_LT(choice.at("lost_of_five_percent").number(), 5);
  }
}

TEST(SampleAccuracy, steps_of_image_models_that_no_fit_has_seen) {
  expect_within({.least_rows = 12, .mape = 10, .group_mape = 26, .least_covered = 85},
                "images --data " FORETOKEN_SOURCE_DIR "/data/measured_images/h200_sxm.csv");
}

TEST(SampleAccuracy, collectives_inside_a_node) {
  expect_within({.least_rows = 70, .mape = 4, .group_mape = 8, .least_covered = 85},
                "collectives --data " + sample + "/collectives/nccl.csv");
}

TEST(SampleAccuracy, latencies_of_serving_engines) {
  expect_within({.least_rows = 60, .mape = 14, .group_mape = 17, .least_covered = 85},
                "serving --data " + sample + "/serving/inferencex.csv");
}

}  // namespace foretoken::sample_accuracy_test
