#include "kernel/edge/fit_edge.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "kernel/edge/edge_predictor_file.h"
#include "kernel/edge/edge_test_sweep.h"
#include "kernel/test_support.h"

namespace foretoken::fit_edge_test {

using namespace test_support;

TEST(FitEdge, a_device_that_follows_the_laws_is_found_again_from_its_sweep) {
  for (const double speed : {0.2, 5.0}) {
    const std::vector<EdgeRow> rows = made_up_rows(speed);
    const EdgeFit fit = fit_edge(rows, {.device = "made up"});
    for (const EdgeRow& row : rows)
      EXPECT_NEAR(fit.predictor.kernel_seconds(row.kernel).value / row.seconds, 1, 0.02) << edge_parameters(row.kernel);
    EXPECT_LT(fit.predictor.cross_validated_mape, 2);
  }
}

TEST(FitEdge, a_row_gone_wrong_does_not_steer_the_others) {
  std::vector<EdgeRow> rows = made_up_rows(1);
  for (EdgeRow& row : rows) {
    if (row.row % 20 == 0) row.seconds *= 3;
  }
  const EdgeFit fit = fit_edge(rows, {.device = "made up"});
  std::vector<PredictedRow> undisturbed;
  for (const EdgeRow& row : made_up_rows(1))
    undisturbed.push_back({.measured = row.seconds, .predicted = fit.predictor.kernel_seconds(row.kernel).value});
  EXPECT_LT(summarize_errors(undisturbed).mape, 2);
}

TEST(FitEdge, one_kind_says_nothing_about_the_prices_of_another) {
  std::vector<EdgeRow> rows = made_up_rows(1);
  const EdgeFit all = fit_edge(rows, {});
  std::erase_if(rows, [](const EdgeRow& row) { return row.kernel.kind == EdgeKernelKind::gelu; });
  const EdgeFit fewer = fit_edge(rows, {});
  EXPECT_EQ(all.predictor.kinds.at(EdgeKernelKind::linear).prices_ns,
            fewer.predictor.kinds.at(EdgeKernelKind::linear).prices_ns);
  EXPECT_FALSE(fewer.predictor.kinds.contains(EdgeKernelKind::gelu));
}

TEST(FitEdge, a_sweep_without_empty_calls_is_refused) {
  std::vector<EdgeRow> rows = made_up_rows(1);
  std::erase_if(rows, [](const EdgeRow& row) { return row.kernel.kind == EdgeKernelKind::empty; });
  EXPECT_NE(problem_of([&] { fit_edge(rows, {}); }).value, "");
}

// The sweep of a Neoverse-V1 core that the fp32 kernels of the shipped predictor were fitted on.
TEST(FitEdgeNeedsData, left_out_kernels_of_a_measured_core_come_out_within_five_percent) {
  const char* data = std::getenv("FORETOKEN_DATA");
  if (!data) GTEST_SKIP() << "FORETOKEN_DATA is not set";
  const std::vector<EdgeRow> rows = read_edge_rows(std::filesystem::path(data) / "edge/host_ort_kernels.csv");
  const EdgeFit fit = fit_edge(rows, {});
  const ErrorSummary summary = summarize_errors(fit.left_out);
  EXPECT_LT(summary.mape, 5);
  EXPECT_NEAR(summary.coverage90, 90, 5);
  // Those of the file that ships.
  const EdgePredictor shipped = read_edge_predictor(FORETOKEN_SOURCE_DIR "/data/edge/devices/neoverse_v1_ort.json");
  for (const EdgeKernelKind kind : {EdgeKernelKind::convolution, EdgeKernelKind::depthwise, EdgeKernelKind::linear}) {
    EXPECT_NEAR(fit.predictor.kinds.at(kind).cross_validated_mape, shipped.kinds.at(kind).cross_validated_mape, 0.4)
        << edge_kind_name(kind);
  }
  EXPECT_TRUE(shipped.kinds.contains(EdgeKernelKind::int8_convolution));
  EXPECT_TRUE(shipped.kinds.contains(EdgeKernelKind::int4_gemv));
}

}  // namespace foretoken::fit_edge_test
