#include "plan/store/table_file.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "plan/store/sqlite_file.h"

namespace foretoken::table_file_test {

TEST(TableFile, keeps_types_and_is_the_same_bytes_each_time) {
  const auto path = std::filesystem::temp_directory_path() / "foretoken_table_file_test.sqlite";
  const Json rows = Json::array({Json::object({{"name", "a \"b\""}, {"gpus", 2}, {"usd", 1.5}, {"none", Json()}}),
                                 Json::object({{"name", "c"}, {"gpus", 4}})});
  write_table_file(path, "cases", rows);
  const std::vector<uint8_t> first = read_raw_file(path, 1 << 20);
  {
    SqliteFile file(path, SqliteFile::Opening::must_exist, 1);
    const auto sum = file.run("SELECT sum(gpus), max(usd), count(none) FROM cases");
    ASSERT_TRUE(sum.has_value());
    EXPECT_EQ(std::get<int64_t>((*sum)[0]), 6);
    EXPECT_EQ(std::get<double>((*sum)[1]), 1.5);
    EXPECT_EQ(std::get<int64_t>((*sum)[2]), 0);
    EXPECT_EQ(std::get<std::string>((*file.run("SELECT name FROM cases WHERE gpus = 2"))[0]), "a \"b\"");
  }
  write_table_file(path, "cases", rows);
  EXPECT_EQ(read_raw_file(path, 1 << 20), first);
  std::filesystem::remove(path);
}

}  // namespace foretoken::table_file_test
