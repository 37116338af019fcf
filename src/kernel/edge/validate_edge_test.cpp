#include "kernel/edge/validate_edge.h"

#include <gtest/gtest.h>

#include "kernel/edge/edge_test_sweep.h"

namespace foretoken::validate_edge_test {

using namespace test_support;

Validation validated(const EdgePredictor& predictor, std::span<const EdgeRow> rows, const ScoredEdgeSink& sink = {}) {
  EdgeScores scores(sink);
  score_edge_kernels(predictor, rows, "sweep.csv", scores);
  return scores.result();
}

TEST(ValidateEdge, a_device_predicted_by_its_own_prices_is_without_error) {
  const std::vector<EdgeRow> rows = made_up_rows(2);
  size_t seen = 0;
  const Validation validation = validated(made_up_predictor(2), rows, [&](const ScoredEdge& scored) {
    EXPECT_EQ(scored.row, ++seen);
    EXPECT_EQ(scored.predicted.value, scored.measured);
  });
  EXPECT_EQ(validation.overall.n, rows.size());
  EXPECT_EQ(validation.overall.mape, 0);
  EXPECT_EQ(validation.groups.size(), made_up_predictor(2).kinds.size());
}

TEST(ValidateEdge, a_device_twice_as_fast_is_predicted_twice_too_slow) {
  const Validation validation = validated(made_up_predictor(2), made_up_rows(1));
  EXPECT_NEAR(validation.overall.bias, 100, 1e-9);
}

TEST(ValidateEdge, kernels_that_no_sweep_knows_are_listed_with_their_rows) {
  EdgePredictor predictor = made_up_predictor(1);
  predictor.kinds.erase(EdgeKernelKind::gelu);
  const std::vector<EdgeRow> rows = made_up_rows(1);
  const Validation validation = validated(predictor, rows);
  ASSERT_FALSE(validation.skipped.empty());
  EXPECT_EQ(validation.overall.n + validation.skipped.size(), rows.size());
  EXPECT_EQ(validation.skipped.front().file, "sweep.csv");
  EXPECT_EQ(rows[validation.skipped.front().row - 1].kernel.kind, EdgeKernelKind::gelu);
}

}  // namespace foretoken::validate_edge_test
