#include "accelerator/dataflow/dataflow_cases.h"

#include <cmath>
#include <cstdlib>

#include <gtest/gtest.h>

#include "accelerator/dataflow/dataflow_file.h"
#include "base/error.h"

namespace foretoken::dataflow_cases_test {

TEST(DataflowCasesNeedsData, every_figure_of_maestro_is_met_to_the_digits_it_prints) {
  const char* folder = std::getenv("FORETOKEN_DATA");
  if (folder == nullptr) GTEST_SKIP() << "FORETOKEN_DATA is not set";
  const DataflowCaseFile file = read_dataflow_cases(std::filesystem::path(folder) / "accelerator/maestro_cases.json");
  ASSERT_FALSE(file.cases.empty());
  size_t energies = 0;
  for (const DataflowCase& one : file.cases) {
    const DataflowCost cost =
        analyse_dataflow(one.layer, one.dataflow, file.hardware, DataflowReading::maestro, one.id);
    for (const auto& [name, expected] : one.expected) {
      const std::optional<double> ours = dataflow_figure(one, cost, name);
      if (name == "energy_nJ") {
        energies += ours ? 1 : 0;
        if (!ours) continue;
      }
      ASSERT_TRUE(ours) << one.id << " " << name;
      EXPECT_NEAR(*ours, expected, 5e-6 * std::abs(expected)) << one.id << " " << name;
    }
  }
  EXPECT_GT(energies, 0u);
}

TEST(DataflowCases, a_figure_nobody_computes_is_nothing) {
  EXPECT_FALSE(dataflow_figure({}, {}, "area_mm2"));
  EXPECT_EQ(dataflow_figure({}, {.macs = 7}, "macs"), 7);
}

TEST(DataflowCases, the_energy_of_a_clustered_dataflow_is_not_comparable) {
  DataflowCase one;
  one.dataflow = parse_directives("SpatialMap(1,1) K; Cluster(4, P); SpatialMap(1,1) C", "test");
  EXPECT_FALSE(dataflow_figure(one, {.macs = 7}, "energy_nJ"));
  one.dataflow = parse_directives("SpatialMap(1,1) K", "test");
  EXPECT_TRUE(dataflow_figure(one, {.macs = 7}, "energy_nJ"));
}

}  // namespace foretoken::dataflow_cases_test
