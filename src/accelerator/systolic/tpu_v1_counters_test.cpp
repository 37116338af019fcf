#include "accelerator/systolic/tpu_v1_counters.h"

#include <gtest/gtest.h>

#include <cmath>

namespace foretoken::tpu_v1_counters_test {

const std::filesystem::path accelerators = std::filesystem::path(FORETOKEN_SOURCE_DIR) / "data" / "accelerators";

SystolicChip tpu_v1() {
  return read_systolic_chip(accelerators / "systolic" / "tpu_v1.json");
}

TpuV1Figures published() {
  return read_tpu_v1_figures(accelerators / "published" / "tpu_v1.json", tpu_v1());
}

// The share that the other workloads give: what is predicted has not been looked at.
SystolicChip chip_without(const TpuV1Workload& left_out, const std::vector<TpuV1Workload>& all) {
  SystolicChip chip = tpu_v1();
  double sum = 0;
  for (const TpuV1Workload& workload : all) {
    if (workload.name != left_out.name) sum += workload.counters.non_matrix;
  }
  chip.non_matrix_share->value = sum / static_cast<double>(all.size() - 1);
  return chip;
}

TEST(TpuV1, the_shipped_share_is_the_mean_of_the_counters) {
  const auto workloads = published().workloads;
  double sum = 0;
  for (const TpuV1Workload& workload : workloads) sum += workload.counters.non_matrix;
  EXPECT_NEAR(tpu_v1().non_matrix_share->value, sum / static_cast<double>(workloads.size()), 0.0005);
}

TEST(TpuV1, each_workload_is_bound_by_what_the_paper_says) {
  const auto workloads = published().workloads;
  ASSERT_EQ(workloads.size(), 6);
  for (const TpuV1Workload& workload : workloads) {
    EXPECT_EQ(run_weight_fed(chip_without(workload, workloads), workload.parts).weight_bound, workload.weight_bound)
        << workload.name;
  }
}

// Measured: 6.5% on average, LSTM1 20%; the authors' own model 8%.
TEST(TpuV1, operations_counted_by_the_chip_are_nearer_than_the_authors_own_model_for_workloads_not_seen) {
  const auto workloads = published().workloads;
  double error = 0;
  double authors_error = 0;
  for (const TpuV1Workload& workload : workloads) {
    const WeightFedRun run = run_weight_fed(chip_without(workload, workloads), workload.parts);
    const double off = run.rate.value() / 1e12 / workload.counted_tops - 1;
    error += std::abs(off) / static_cast<double>(workloads.size());
    authors_error += workload.authors_model_error_percent / 100 / static_cast<double>(workloads.size());
    EXPECT_LT(std::abs(off), 0.25) << workload.name;
  }
  EXPECT_LT(error, authors_error);
}

TEST(TpuV1, shares_of_cycles_add_up_and_lie_near_the_counters) {
  const auto workloads = published().workloads;
  for (const TpuV1Workload& workload : workloads) {
    const WeightFedShares shares = run_weight_fed(chip_without(workload, workloads), workload.parts).shares;
    EXPECT_NEAR(shares.active + shares.weight_stall + shares.weight_shift + shares.non_matrix, 1, 1e-12);
    EXPECT_LE(shares.useful, shares.active);
    const WeightFedShares& counted = workload.counters;
    EXPECT_NEAR(shares.active, counted.active, 0.11) << workload.name;
    EXPECT_NEAR(shares.weight_stall, counted.weight_stall, 0.13) << workload.name;
    EXPECT_NEAR(shares.weight_shift, counted.weight_shift, 0.035) << workload.name;
    EXPECT_NEAR(shares.non_matrix, counted.non_matrix, 0.15) << workload.name;
  }
}

TEST(TpuV1, larger_batches_of_a_weight_bound_workload_are_free_and_throughput_is_the_published_one) {
  const TpuV1Figures figures = published();
  for (const TpuV1Throughput& row : figures.throughput) {
    std::vector<WeightFedPart> parts = figures.workloads.front().parts;
    ASSERT_EQ(row.workload, figures.workloads.front().name);
    parts.front().rows = row.batch;
    const double seconds = run_weight_fed(tpu_v1(), parts).time.value() * (1 + row.host_share);
    EXPECT_NEAR(row.batch / seconds / row.inferences_per_second, 1, 0.1) << row.batch;
  }
}

TEST(TpuV1, a_larger_array_needs_fewer_tiles_and_more_time_for_a_matrix_that_does_not_fit_it) {
  for (const TpuV1Tiles& row : published().tiles) {
    SystolicChip chip = tpu_v1();
    chip.array_rows.value = chip.array_columns.value = row.array_side;
    const int64_t tiles = weight_tiles(chip, row.matrix_rows, row.matrix_columns);
    EXPECT_EQ(tiles, row.tiles);
    const auto cells = static_cast<double>(tiles * row.array_side * row.array_side);
    const double load_seconds = cells * chip.matrix_word_bytes.value / chip.memory_bandwidth.value.value();
    EXPECT_NEAR(load_seconds * 1e6 / row.microseconds, 1, 0.1) << row.array_side;
  }
}

TEST(TpuV1, more_weight_bandwidth_is_never_slower) {
  for (const TpuV1Workload& workload : published().workloads) {
    SystolicChip chip = tpu_v1();
    double before = run_weight_fed(chip, workload.parts).time.value();
    for (int step = 0; step < 6; ++step) {
      chip.memory_bandwidth.value = BytesPerSecond(1.7 * chip.memory_bandwidth.value.value());
      const double seconds = run_weight_fed(chip, workload.parts).time.value();
      EXPECT_LE(seconds, before * (1 + 1e-12)) << workload.name;
      before = seconds;
    }
  }
}

}  // namespace foretoken::tpu_v1_counters_test
