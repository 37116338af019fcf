#include "training/scale/iteration_pieces.h"

#include <gtest/gtest.h>

namespace foretoken::iteration_pieces_test {

struct PlannedIteration {
  TrainingPlan plan;
  IterationEstimate iteration;

  PlannedIteration() {
    plan.parallel.tensor = 8;
    plan.parallel.pipeline = 4;
    plan.parallel.context = 2;
    plan.parallel.data = 16;
    plan.micro_batch = 1;
    plan.global_batch = 16 * 32;
    plan.virtual_stages = 2;
    for (size_t part = 0; part < time_part_count; ++part)
      iteration.parts[part] = exactly(0.1 * static_cast<double>(part + 1));
    double sum = 0;
    for (const Estimate& seconds : iteration.parts) sum += seconds.value;
    iteration.seconds = exactly(sum);
  }
};

TEST(IterationPieces, all_time_but_the_bubble_is_in_a_piece) {
  const PlannedIteration planned;
  const StepPieces pieces = step_pieces(planned.iteration, planned.plan, 64);
  const double held = pieces.compute_seconds * static_cast<double>(pieces.micro_batches) +
                      pieces.exposed_communication_seconds + pieces.other_seconds;
  const double bubble = planned.iteration.parts[static_cast<size_t>(TimePart::bubble)].value;
  EXPECT_NEAR(held + bubble, planned.iteration.seconds.value, 1e-12);
  EXPECT_EQ(pieces.devices(), planned.plan.devices());
}

TEST(IterationPieces, the_median_is_the_predicted_time) {
  const PlannedIteration planned;
  const StepVariation variation = step_variation(step_pieces(planned.iteration, planned.plan, 64));
  EXPECT_NEAR(variation.p50, planned.iteration.seconds.value, 1e-9);
  EXPECT_GT(variation.p95, variation.p50);
}

}  // namespace foretoken::iteration_pieces_test
