#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/cli/grammar/command_line.h"
#include "base/error.h"
#include "base/file.h"
#include "hardware/device_file.h"

namespace foretoken::devices_test {

namespace fs = std::filesystem;
using testing::HasSubstr;

TEST(Devices, an_own_file_named_as_a_built_in_device_is_refused_for_that_name_only) {
  const fs::path home = fs::path(testing::TempDir()) / "devices_own_file";
  fs::create_directories(home / "hardware" / "devices");
  const Library shipped(FORETOKEN_SOURCE_DIR "/data");
  write_file(home / "hardware" / "devices" / "l4.json", device_file_text(shipped.hardware().device("l4")));
  const Library library = shipped.with_own(home);
  const auto listed = [](const Answer& answer) { return answer.json.find("devices")->items().size(); };
  EXPECT_EQ(listed(answer_command({"devices"}, library)), shipped.hardware().device_names().size());
  EXPECT_GT(listed(answer_command({"devices", "l"}, library)), 0U);
  EXPECT_EQ(answer_command({"devices", "h100_sxm"}, library).json.find("name")->string(), "h100_sxm");
  try {
    answer_command({"devices", "l4"}, library);
    ADD_FAILURE() << "taken";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("built-in device"));
  }
  std::error_code ignored;
  fs::remove_all(home, ignored);
}

}  // namespace foretoken::devices_test
