#include "kernel/edge/validate_edge.h"

#include <gtest/gtest.h>

#include "kernel/edge/edge_test_sweep.h"

namespace foretoken {
namespace {

using namespace test_support;

TEST(ValidateEdge, a_device_predicted_by_its_own_prices_is_without_error) {
  const std::vector<EdgeRow> rows = made_up_rows(2);
  size_t seen = 0;
  const Validation validation =
      validate_edge_kernels(made_up_predictor(2), rows, "sweep.csv", [&](const ScoredEdge& scored) {
        EXPECT_EQ(scored.row, ++seen);
        EXPECT_EQ(scored.predicted.value, scored.measured);
      });
  EXPECT_EQ(validation.overall.n, rows.size());
  EXPECT_EQ(validation.overall.mape, 0);
  EXPECT_EQ(validation.groups.size(), made_up_predictor(2).kinds.size());
}

TEST(ValidateEdge, a_device_twice_as_fast_is_predicted_twice_too_slow) {
  const Validation validation = validate_edge_kernels(made_up_predictor(2), made_up_rows(1), "sweep.csv");
  EXPECT_NEAR(validation.overall.bias, 100, 1e-9);
}

TEST(ValidateEdge, kernels_that_no_sweep_knows_are_listed_with_their_rows) {
  EdgePredictor predictor = made_up_predictor(1);
  predictor.kinds.erase(EdgeKernelKind::gelu);
  const std::vector<EdgeRow> rows = made_up_rows(1);
  const Validation validation = validate_edge_kernels(predictor, rows, "sweep.csv");
  ASSERT_FALSE(validation.skipped.empty());
  EXPECT_EQ(validation.overall.n + validation.skipped.size(), rows.size());
  EXPECT_EQ(validation.skipped.front().file, "sweep.csv");
  EXPECT_EQ(rows[validation.skipped.front().row - 1].kernel.kind, EdgeKernelKind::gelu);
}

TEST(ValidateEdge, a_model_is_scored_by_the_sum_of_its_kernels) {
  const EdgePredictor predictor = made_up_predictor(1);
  const std::vector<EdgeKernel> kernels = swept_kernels();
  const EdgeModelCase model{.name = "all", .kernels = kernels, .seconds = predictor.model_seconds(kernels).value / 1.1};
  const Validation validation = validate_edge_models(predictor, std::vector<EdgeModelCase>{model});
  EXPECT_NEAR(validation.overall.mape, 10, 1e-9);
  EXPECT_EQ(validation.groups.front().name, "all");
}

}  // namespace
}  // namespace foretoken
