#include "kernel/fewshot/failed_rows.h"

#include <gtest/gtest.h>

namespace foretoken::failed_rows_test {

struct Drawn {
  ArchitectureTable architectures;
  DeviceLatencies latencies{.device = "device"};
};

// Latencies that are sums over layers, each with its own cost of each choice.
Drawn summed_layers(const ArchitectureSpace& space, double noise) {
  Drawn drawn;
  RandomStream stream(1, "sums");
  for (size_t a = 0; a < 600; ++a) {
    const std::vector<std::string> cells = space.draw(stream);
    double milliseconds = 5;
    for (size_t l = 0; l < cells[0].size(); ++l)
      milliseconds += 0.1 * static_cast<double>(1 + l % 3) * (cells[0][l] - '0');
    drawn.architectures.features.push_back(drawn_features(space, cells));
    drawn.architectures.cells.push_back(cells);
    drawn.latencies.rows.push_back(a);
    drawn.latencies.ids.push_back(a);
    drawn.latencies.milliseconds.push_back(milliseconds * stream.lognormal(0, noise));
  }
  return drawn;
}

TEST(FailedRows, values_under_a_fifth_of_the_median_are_found) {
  const std::vector<double> milliseconds = {10, 11, 0.003, 9, 1.9, 2.1, 12};
  EXPECT_EQ(far_below_median(milliseconds), (std::vector<size_t>{2}));
  EXPECT_TRUE(far_below_median({}).empty());
}

TEST(FailedRows, sums_of_blocks_are_told_from_measurements) {
  const ArchitectureSpace& space = architecture_space("fbnet");
  const Drawn exact = summed_layers(space, 0), measured = summed_layers(space, 0.005);
  EXPECT_TRUE(is_sum_of_blocks(space, exact.architectures, exact.latencies));
  EXPECT_FALSE(is_sum_of_blocks(space, measured.architectures, measured.latencies));
}

TEST(FailedRows, failed_rows_are_left_out_and_counted) {
  const ArchitectureSpace& space = architecture_space("fbnet");
  Drawn drawn = summed_layers(space, 0.01);
  drawn.latencies.milliseconds[7] = 0.01;
  const UsableRows usable = usable_rows(space, drawn.architectures, drawn.latencies);
  EXPECT_EQ(usable.failed, 1U);
  EXPECT_EQ(usable.positions.size(), drawn.latencies.rows.size() - 1);
  EXPECT_EQ(usable.positions[7], 8U);
}

}  // namespace foretoken::failed_rows_test
