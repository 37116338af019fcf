#include "app/cli/grammar/device_count.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace foretoken::device_count_test {

TEST(DeviceCount, is_read_in_the_orders_that_people_use) {
  for (const char* text : {"H100:8", "8xH100", "H100x8", "8XH100"}) {
    EXPECT_EQ(device_and_count(text), std::pair(std::string("H100"), std::string("8"))) << text;
  }
  EXPECT_EQ(device_and_count("mi300x:4").first, "mi300x");
  EXPECT_EQ(device_and_count("8xMI300X").first, "MI300X");
  for (const char* text : {"8", "H100", "x8", "8x", "mi300x"}) {
    EXPECT_THROW(device_and_count(text), InputError) << text;
  }
}

}  // namespace foretoken::device_count_test
