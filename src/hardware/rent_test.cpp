#include "hardware/rent.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "hardware/catalogue.h"

namespace foretoken::rent_test {

const std::filesystem::path data = FORETOKEN_SOURCE_DIR "/data";

std::string complaint_about(const std::string& text) {
  try {
    parse_rents(text, "rent.json");
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(Rent, every_price_is_of_a_device_that_ships_and_says_who_asks_it) {
  const HardwareCatalogue hardware(data / "hardware");
  for (const auto& [device, rent] : read_rents(data / "prices" / "rent.json")) {
    EXPECT_EQ(hardware.device(device).name, device);
    EXPECT_FALSE(rent.source.empty());
  }
}

TEST(Rent, a_device_that_nobody_lends_has_no_price) {
  const Rents rents = read_rents(data / "prices" / "rent.json");
  for (const char* lent : {"h100_sxm", "gb200", "b300_sxm", "gh200", "a100_sxm_40gb", "a6000"}) {
    EXPECT_TRUE(find_rent(rents, lent)) << lent;
  }
  EXPECT_FALSE(find_rent(rents, "my_gpu"));
}

TEST(Rent, a_wrong_file_is_refused_with_the_place) {
  EXPECT_NE(complaint_about(R"({"usd_per_hour": {"h100_sxm": {"value": -1, "source": "x"}}})").find("h100_sxm"),
            std::string::npos);
  EXPECT_NE(complaint_about(R"({"usd_per_hours": {}})").find("usd_per_hour"), std::string::npos);
  EXPECT_NE(complaint_about(R"({"usd_per_hour": {"h100_sxm": {"value": 2}}})").find("source"), std::string::npos);
}

}  // namespace foretoken::rent_test
