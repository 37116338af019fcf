#include "network/flow/traffic_case.h"

#include <algorithm>
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "network/topology/topology_file.h"

namespace foretoken::traffic_case_test {

using testing::HasSubstr;

const std::filesystem::path cases = FORETOKEN_SOURCE_DIR "/data/networks/packets";

std::vector<std::filesystem::path> shipped_cases() {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(cases)) {
    if (entry.path().extension() == ".json") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

class ShippedCase : public testing::TestWithParam<std::filesystem::path> {};

TEST_P(ShippedCase, ends_at_flow_level_within_5_percent_of_the_packet_level) {
  const TrafficCase traffic = read_traffic_case(GetParam());
  ASSERT_FALSE(traffic.recorded_ends.empty());
  const std::vector<Seconds> ends = flow_level_ends(traffic, topology_from(traffic.topology));
  const Seconds last = *std::max_element(ends.begin(), ends.end());
  const Seconds recorded_last = *std::max_element(traffic.recorded_ends.begin(), traffic.recorded_ends.end());
  EXPECT_LT(std::abs(last / recorded_last - 1), 0.05);
  double error = 0;
  for (size_t i = 0; i < ends.size(); ++i) error += std::abs(ends[i] / traffic.recorded_ends[i] - 1);
  EXPECT_LT(error / static_cast<double>(ends.size()), 0.05);
}

INSTANTIATE_TEST_SUITE_P(Packets, ShippedCase, testing::ValuesIn(shipped_cases()),
                         [](const auto& path) { return path.param.stem().string(); });

TEST(TrafficCase, wrong_files_are_refused_with_the_place) {
  const std::string head = R"({"title": "t", "topology": "switch:4@1GB/s", "routing": "ecmp",
    "packets": {"payload_bytes": 4096, "header_bytes": 42, "window_bytes": 65536}, "transfers": )";
  const std::vector<std::pair<std::string, std::string>> complaints = {
      {R"([{"from": 0, "to": 4, "bytes": 1}]})", "transfers[0].to"},
      {R"([{"from": 0, "to": 0, "bytes": 1}]})", "another device"},
      {R"([{"from": 0, "to": 1, "bytes": 0}]})", "transfers[0].bytes"},
      {R"([{"from": 0, "to": 1, "bytes": 1}], "recorded": {"by": "ns-3", "ends_us": []}})", "one time for each"},
      {R"([], "more": 1})", "more"},
  };
  for (const auto& [tail, expected] : complaints) {
    try {
      parse_traffic_case(head + tail, "test.json");
      ADD_FAILURE() << tail << " was accepted";
    } catch (const InputError& error) {
      EXPECT_THAT(error.what(), HasSubstr(expected));
    }
  }
}

}  // namespace foretoken::traffic_case_test
