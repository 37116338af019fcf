#include "library/traffic_use.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace foretoken::traffic_use_test {

const std::filesystem::path data = FORETOKEN_SOURCE_DIR "/data";

TEST(TrafficUse, every_use_has_lengths_limits_and_sources) {
  const std::vector<TrafficUse> uses = read_traffic_uses(data);
  EXPECT_EQ(uses.size(), 5U);
  for (const TrafficUse& use : uses) {
    EXPECT_FALSE(use.summary.empty()) << use.name;
    EXPECT_FALSE(use.source.empty()) << use.name;
    EXPECT_NE(use.slo.find("ttft<"), std::string::npos) << use.name;
    EXPECT_FALSE(use.slo_source.empty()) << use.name;
  }
  EXPECT_EQ(traffic_use(data, "Chat").output_tokens, 211);
}

TEST(TrafficUse, an_unknown_use_is_told_the_nearest) {
  try {
    traffic_use(data, "chats");
    FAIL() << "an unknown use was accepted";
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("chat"), std::string::npos);
  }
}

}  // namespace foretoken::traffic_use_test
