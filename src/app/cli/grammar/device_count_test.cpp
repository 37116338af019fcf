#include "app/cli/grammar/device_count.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace foretoken::device_count_test {

TEST(DeviceCount, is_read_in_the_orders_that_people_use) {
  const HardwareCatalogue hardware(FORETOKEN_SOURCE_DIR "/data/hardware");
  const auto read = [&](const char* text) { return device_and_count(text, hardware); };
  for (const char* text : {"H100:8", "8xH100", "H100x8", "8XH100", "8 x H100", "H100: 8"}) {
    EXPECT_EQ(read(text), std::pair(std::string("H100"), std::string("8"))) << text;
  }
  EXPECT_EQ(read("mi300x:4").first, "mi300x");
  EXPECT_EQ(read("8xMI300X").first, "MI300X");
  EXPECT_EQ(read("rtx4090x2"), std::pair(std::string("rtx4090"), std::string("2")));
  EXPECT_EQ(read("h10x8"), std::pair(std::string("h10"), std::string("8"))) << "the name is what is wrong";
  EXPECT_EQ(read("my/chip.jsonx4"), std::pair(std::string("my/chip.json"), std::string("4")));
  EXPECT_EQ(read("8xH10").first, "H10") << "for a message about that name";
  for (const char* text : {"8", "x8", "8x"}) EXPECT_THROW(read(text), InputError) << text;
}

TEST(DeviceCount, a_device_without_a_number_is_a_node_of_it) {
  const HardwareCatalogue hardware(FORETOKEN_SOURCE_DIR "/data/hardware");
  for (const char* text : {"H100", "mi300x"}) {
    EXPECT_EQ(device_and_count(text, hardware), std::pair(std::string(text), std::string("8"))) << text;
    EXPECT_TRUE(has_no_count(text, hardware));
  }
  EXPECT_FALSE(has_no_count("H100:8", hardware));
  EXPECT_FALSE(has_no_count("8xH100", hardware));
}

TEST(DeviceCount, an_unknown_device_is_answered_with_near_names_and_the_form) {
  const HardwareCatalogue hardware(FORETOKEN_SOURCE_DIR "/data/hardware");
  for (const char* text : {"h10_sxm", "h10_sxm:8"}) {
    try {
      hardware.device(device_and_count(text, hardware).first);
      FAIL() << text;
    } catch (const InputError& error) {
      EXPECT_NE(error.problem().expected.find("`foretoken devices`"), std::string::npos) << text;
      EXPECT_NE(error.problem().suggestion.find("h100"), std::string::npos) << text;
    }
  }
}

}  // namespace foretoken::device_count_test
