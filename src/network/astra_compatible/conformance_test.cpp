#include "network/astra_compatible/conformance.h"

#include <cstdlib>
#include <filesystem>

#include <gtest/gtest.h>

#include "base/error.h"

namespace foretoken {
namespace {

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

TEST(AstraConformance, every_run_with_a_closed_form_is_met_to_the_nanosecond) {
  const char* data = std::getenv("FORETOKEN_DATA");
  if (data == nullptr) GTEST_SKIP() << "set FORETOKEN_DATA to the folder that holds astra/conformance.csv";
  CsvReader csv(std::filesystem::path(data) / "astra" / "conformance.csv");
  ASSERT_TRUE(is_astra_table(csv));
  const AstraRowReader reader(csv);
  int met = 0, skipped = 0;
  while (csv.next()) {
    const AstraTime time = astra_time(reader.read(csv));
    if (!time.nanoseconds) {
      EXPECT_FALSE(time.no_closed_form.empty());
      ++skipped;
      continue;
    }
    EXPECT_EQ(*time.nanoseconds, reader.measured_nanoseconds(csv)) << "line " << csv.line();
    ++met;
  }
  EXPECT_GT(met, 4 * skipped);
  RecordProperty("met", met);
  RecordProperty("skipped", skipped);
}

}  // namespace
}  // namespace foretoken
