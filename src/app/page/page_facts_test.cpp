#include "app/page/page_facts.h"

#include <filesystem>
#include <map>

#include <gtest/gtest.h>

#include "base/file.h"
#include "hardware/device_file.h"

namespace foretoken::page_facts_test {

namespace fs = std::filesystem;

TEST(PageFacts, devices_of_the_user_are_listed_beside_those_that_ship) {
  const fs::path home = fs::path(testing::TempDir()) / "page_facts_own_devices";
  fs::create_directories(home / "hardware" / "devices");
  const Library shipped(FORETOKEN_SOURCE_DIR "/data");
  const auto copy = [&](const std::string& original, const std::string& stem) {
    write_file(home / "hardware" / "devices" / (stem + ".json"), device_file_text(shipped.hardware().device(original)));
  };
  copy("h100_sxm", "a_copy");
  copy("l4", "l4");  // refused where somebody asks for it
  const Json facts = page_facts(shipped.with_own(home));
  std::map<std::string, JsonView> files;
  for (const JsonView& device : JsonView(facts, "facts").at("devices").items()) {
    const JsonView file = device.at("file");
    EXPECT_TRUE(files.emplace(file.at("name").string(), file).second) << file.at("name").string();
  }
  EXPECT_EQ(files.size(), shipped.hardware().device_names().size() + 1);
  EXPECT_TRUE(files.contains("l4"));
  ASSERT_TRUE(files.contains("a_copy") && files.contains("h100_sxm"));
  EXPECT_TRUE(files.at("a_copy").at("aliases").items().empty()) << "they go on meaning the original";
  EXPECT_NE(files.at("a_copy").at("title").string(), files.at("h100_sxm").at("title").string());
  std::error_code ignored;
  fs::remove_all(home, ignored);
}

}  // namespace foretoken::page_facts_test
