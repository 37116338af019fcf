#include "network/astra_compatible/conformance.h"

#include <cstdlib>
#include <filesystem>

#include <gtest/gtest.h>

#include "base/error.h"
#include "network/astra_compatible/validate_astra.h"

namespace foretoken::conformance_test {

constexpr const char* header =
    "topology,dims,npus,bandwidth,latency,collective,algorithm,bytes,chunking,cycles,backend,queues_per_dim,"
    "endpoint_delay,local_mem_bw\n";

AstraRun run_of(const std::string& row) {
  CsvReader csv = CsvReader::from_text(header + row, "runs.csv");
  EXPECT_TRUE(csv.next());
  return AstraRowReader(csv).read(csv);
}

TEST(AstraConformance, a_row_gives_one_dimension_for_each_part_of_the_topology) {
  const AstraRun run =
      run_of("Switch_Ring,8x4,32,400_50,936.25_1000,A2A,ring_direct,1024,splits=4;active=2,5,aware,1,10,3350\n");
  ASSERT_EQ(run.dimensions.size(), 2u);
  EXPECT_EQ(run.dimensions[0].topology, AstraTopology::network_switch);
  EXPECT_EQ(run.dimensions[1].algorithm, AstraAlgorithm::direct);
  EXPECT_EQ(run.dimensions[1].npus, 4);
  EXPECT_EQ(run.dimensions[0].latency_ns, 936.25);
  EXPECT_EQ(run.active, 2);
  EXPECT_TRUE(run.congestion_aware);
}

TEST(AstraConformance, a_broken_row_is_an_input_error) {
  EXPECT_THROW(run_of("Torus,8,8,50,500,AR,ring,64,splits=4;active=1,5,aware,1,10,16\n"), InputError);
  EXPECT_THROW(run_of("Ring_Ring,8,8,50,500,AR,ring,64,splits=4;active=1,5,aware,1,10,16\n"), InputError);
  EXPECT_THROW(run_of("Ring,8,8,50,500,AR,ring,64,splits=4,5,aware,1,10,16\n"), InputError);
  EXPECT_THROW(run_of("Ring,8,8,50,500,AR,ring,64,splits=4;active=1,5,sometimes,1,10,16\n"), InputError);
}

TEST(AstraConformanceNeedsData, every_run_with_a_closed_form_is_met_to_the_nanosecond) {
  const char* data = std::getenv("FORETOKEN_DATA");
  if (data == nullptr) GTEST_SKIP() << "FORETOKEN_DATA is not set";
  const std::filesystem::path table = std::filesystem::path(data) / "astra" / "conformance.csv";
  ASSERT_TRUE(is_astra_table(table));
  const Validation validation = validate_astra(table, [](const ScoredAstraRun& scored) {
    EXPECT_EQ(scored.predicted_ns, scored.measured_ns) << "row " << scored.row;
  });
  EXPECT_EQ(validation.overall.mape, 0);
  EXPECT_GT(validation.overall.n, 4 * validation.skipped.size());
  for (const SkippedRows& skipped : validation.skipped) EXPECT_NE(skipped.why, "no closed form: ");
}

}  // namespace foretoken::conformance_test
