#include "validate/withheld/withheld_calibrations.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file.h"
#include "hardware/generation.h"

namespace foretoken::withheld_calibrations_test {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

class Withheld : public testing::Test {
 protected:
  Withheld() { fs::create_directories(folder_); }
  ~Withheld() override { fs::remove_all(folder_); }

  std::string complaint(const WithheldRequest& request) const {
    try {
      withheld_calibrations(request, library_);
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  }

  fs::path folder_ = fs::temp_directory_path() / "foretoken-withheld-test";
  Library library_{FORETOKEN_SOURCE_DIR "/data"};
};

TEST_F(Withheld, devices_of_the_generation_are_found_as_the_table_spells_them) {
  const fs::path table = folder_ / "rows.csv";
  write_file(table, "gpu,ms\nH100 SXM,1\nA100 SXM,1\nH200 SXM,1\nunheard-of,1\nH100 SXM,2\n");
  const HardwareCatalogue hardware = library_.hardware();
  const auto found = [&](const std::string& generation, const std::vector<std::string>& asked) {
    return devices_of_generation(generation, table, "gpu", asked, hardware);
  };
  const std::string hopper = generation_of(hardware.device("h100_sxm"));
  EXPECT_THAT(found(hopper, {}), ElementsAre("H100 SXM", "H200 SXM"));
  EXPECT_THAT(found(hopper, {"h200_sxm"}), ElementsAre("H200 SXM"));
  EXPECT_THROW(found(generation_of(hardware.device("v100_sxm")), {}), InputError);
}

TEST_F(Withheld, a_folder_without_calibrations_and_one_that_has_seen_the_generation_are_refused) {
  EXPECT_THAT(complaint({.without = "hopper", .calibration = folder_.string()}), HasSubstr("calibrations"));
  EXPECT_THAT(complaint({.without = "hopper", .calibration = library_.calibrations().string()}),
              HasSubstr("has not seen"));
  EXPECT_THAT(complaint({.without = "hopper"}), HasSubstr("kernel_data"));
}

TEST_F(Withheld, both_tiers_are_validated) {
  std::vector<Tier> tiers;
  std::vector<std::string> told;
  const WithheldValidation table = validate_withheld(
      "steps", "hopper",
      [&](Tier tier) {
        tiers.push_back(tier);
        Validation validation;
        validation.overall.n = tier == Tier::cross ? 3 : 4;
        return validation;
      },
      [&](const std::string& text) { told.push_back(text); });
  EXPECT_THAT(tiers, ElementsAre(Tier::cross, Tier::best));
  EXPECT_THAT(told, ElementsAre("steps: from spec sheets", "steps: with a sweep"));
  EXPECT_EQ(table.cross.overall.n, 3);
  EXPECT_EQ(table.measured.overall.n, 4);
}

}  // namespace foretoken::withheld_calibrations_test
