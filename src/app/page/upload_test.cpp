#include "app/page/upload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"

namespace foretoken::upload_test {

using testing::HasSubstr;
using testing::Not;

TEST(UploadFolder, holds_the_files_as_long_as_it_lives) {
  std::string place;
  {
    const UploadFolder folder({{.name = "run.json", .content = "{}"}, {.name = "requests.csv.gz", .content = "plain"}});
    place = folder.place();
    EXPECT_EQ(read_file(std::filesystem::path(place) / "run.json", 100), "{}");
    EXPECT_EQ(read_file(std::filesystem::path(place) / "requests.csv.gz", 100), "plain") << "as it came";
    const auto permissions = std::filesystem::status(place).permissions();
    EXPECT_EQ(permissions & (std::filesystem::perms::group_all | std::filesystem::perms::others_all),
              std::filesystem::perms::none);
  }
  EXPECT_FALSE(std::filesystem::exists(place));
}

TEST(UploadFolder, a_single_file_is_named_itself) {
  const UploadFolder folder(std::vector<UploadedFile>{{.name = "net.onnx", .content = "x"}});
  EXPECT_TRUE(folder.place().ends_with("/net.onnx"));
  EXPECT_EQ(folder.hidden_in(folder.place() + ": broken"), "net.onnx: broken");
}

TEST(UploadFolder, its_name_is_told_to_nobody) {
  const UploadFolder folder(std::vector<UploadedFile>{{.name = "run.json", .content = "{}"}});
  const std::string name = std::filesystem::path(folder.place()).filename().string();
  EXPECT_THAT(folder.hidden_in(folder.place() + "/run.json, " + folder.place() + ", " + name), Not(HasSubstr(name)));
}

}  // namespace foretoken::upload_test
