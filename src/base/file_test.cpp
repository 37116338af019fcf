#include "base/file.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/error.h"
#include "base/random.h"

namespace foretoken::base_file_test {

using testing::HasSubstr;
namespace fs = std::filesystem;

class File : public testing::Test {
 protected:
  File() { fs::create_directories(folder_); }
  ~File() override { fs::remove_all(folder_); }

  fs::path path(const std::string& name) const { return folder_ / name; }

  fs::path written(const std::string& name, std::string_view content) const {
    std::ofstream(path(name), std::ios::binary) << content;  // as it is: write_file would compress a .gz
    return path(name);
  }

  fs::path gzipped(const std::string& name, std::string_view content, const char* mode = "wb") const {
    const gzFile file = gzopen(path(name).c_str(), mode);
    EXPECT_EQ(gzwrite(file, content.data(), static_cast<unsigned>(content.size())), static_cast<int>(content.size()));
    EXPECT_EQ(gzclose(file), Z_OK);
    return path(name);
  }

  static std::string complaint(const fs::path& file, size_t max_bytes = 1 << 20) {
    try {
      read_file(file, max_bytes);
    } catch (const InputError& error) {
      EXPECT_EQ(error.problem().source, file.string());
      return error.what();
    }
    ADD_FAILURE() << "no complaint about " << file;
    return "";
  }

  static std::string incompressible(size_t size) {
    RandomStream stream(1, "file");
    std::string content(size, '\0');
    for (char& c : content) c = static_cast<char>(stream.below(256));
    return content;
  }

 private:
  fs::path folder_ = fs::path(testing::TempDir()) / ("foretoken_file_test_" + std::to_string(getpid()));
};

TEST_F(File, what_was_written_is_read_back) {
  for (const size_t size : {size_t{0}, size_t{1}, size_t{1} << 16, (size_t{1} << 18) + 3}) {
    const std::string content = incompressible(size);
    EXPECT_EQ(read_file(written("plain", content), size), content);
    EXPECT_EQ(read_file(gzipped("packed.gz", content), size + 1000), content);
  }
}

TEST_F(File, raw_bytes_are_those_on_the_disk) {
  const fs::path packed = gzipped("packed.gz", std::string(1000, 'x'));
  EXPECT_EQ(read_raw_file(packed, 1000).size(), fs::file_size(packed));
  EXPECT_EQ(read_raw_file(written("plain", "a\nb"), 3), (std::vector<uint8_t>{'a', '\n', 'b'}));
  EXPECT_THROW(read_raw_file(path("plain"), 2), InputError);
  EXPECT_THROW(read_raw_file(path("nothing"), 2), InputError);
}

TEST_F(File, a_pipe_is_read_once_and_to_its_end) {
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  const std::string content = incompressible(200'000);
  std::thread writer([&] { std::ofstream(path("pipe"), std::ios::binary) << content; });
  EXPECT_EQ(read_file(path("pipe"), 1 << 20), content);
  writer.join();
}

TEST_F(File, json_files_of_a_folder_are_listed_in_order_without_their_ending) {
  for (const char* name : {"b.json", "a.json", "a.json.gz", "c.txt", ".json", "d.e.json"}) written(name, "{}");
  EXPECT_EQ(file_stems(path("")), (std::vector<std::string>{"a", "b", "d.e"}));
  EXPECT_TRUE(file_stems(path("nowhere")).empty());
}

TEST_F(File, a_name_that_ends_in_gz_is_written_compressed) {
  const std::string content(100'000, 'x');
  write_file(path("packed.gz"), content);
  EXPECT_LT(fs::file_size(path("packed.gz")), 1000u);
  EXPECT_EQ(read_file(path("packed.gz"), 1 << 20), content);
}

TEST_F(File, gzip_is_known_by_its_first_bytes_not_its_name) {
  EXPECT_EQ(read_file(gzipped("data.csv", "a,b\n1,2\n"), 100), "a,b\n1,2\n");
  EXPECT_EQ(read_file(written("data.gz", "not packed"), 100), "not packed");
}

TEST_F(File, gzip_members_one_after_the_other_are_one_content) {
  gzipped("two.gz", "first ");
  EXPECT_EQ(read_file(gzipped("two.gz", "second", "ab"), 100), "first second");
}

TEST_F(File, a_missing_file_is_an_error_that_says_so) {
  EXPECT_THAT(complaint(path("nothing.json")), HasSubstr("no such file"));
  EXPECT_THAT(complaint(path("no_folder/nothing.json")), HasSubstr("no such file"));
  EXPECT_THAT(complaint(written("plain", "x") / "below"), HasSubstr("expected a"));
}

TEST_F(File, a_directory_is_an_error_that_says_so) {
  EXPECT_THAT(complaint(path("")), HasSubstr("this is a directory"));
}

TEST_F(File, a_truncated_gzip_is_an_error_that_says_so) {
  const std::string whole = read_file(written("copy", ""), 10);
  const fs::path packed = gzipped("whole.gz", incompressible(5000));
  const auto size = fs::file_size(packed);
  for (const size_t kept :
       {size_t{2}, size_t{5}, size_t{11}, size_t{100}, size_t{4000}, size_t(size - 8), size_t(size - 1)}) {
    fs::copy_file(packed, path("cut.gz"), fs::copy_options::overwrite_existing);
    fs::resize_file(path("cut.gz"), kept);
    EXPECT_THAT(complaint(path("cut.gz")), HasSubstr("the gzip stream ends too early")) << kept;
  }
}

TEST_F(File, a_damaged_gzip_is_an_error_that_names_the_file_once) {
  const std::string text(5000, 'x');
  std::string bytes;
  {
    const fs::path packed = gzipped("damaged.gz", text);
    std::string raw(fs::file_size(packed), '\0');
    std::FILE* file = std::fopen(packed.c_str(), "rb");
    ASSERT_EQ(std::fread(raw.data(), 1, raw.size(), file), raw.size());
    std::fclose(file);
    bytes = raw;
  }
  bytes[bytes.size() - 6] = static_cast<char>(bytes[bytes.size() - 6] ^ 1);  // in the checksum
  const fs::path file = written("damaged.gz", bytes);
  const std::string text_of_error = complaint(file);
  EXPECT_THAT(text_of_error, HasSubstr("incorrect data check"));
  EXPECT_EQ(text_of_error.find(file.string()), text_of_error.rfind(file.string()));
}

TEST_F(File, a_small_gzip_that_unpacks_beyond_the_limit_is_stopped) {
  const fs::path bomb = gzipped("bomb.gz", std::string(8 << 20, '\0'));
  ASSERT_LT(fs::file_size(bomb), 20'000u);
  EXPECT_THAT(complaint(bomb, 1 << 20), HasSubstr("at most 1048576 bytes of content"));
  EXPECT_EQ(read_file(bomb, 8 << 20).size(), size_t{8} << 20);
}

TEST_F(File, a_file_beyond_the_limit_is_refused_unread) {
  const fs::path file = written("large", "");
  fs::resize_file(file, uintmax_t{3} << 30);  // sparse: takes no room
  EXPECT_THAT(complaint(file, size_t{64} << 20), HasSubstr("3221225472 bytes\n  expected at most 67108864 bytes"));
  EXPECT_EQ(read_file(written("exact", "12345"), 5), "12345");
  EXPECT_THAT(complaint(written("exact", "12345"), 4), HasSubstr("5 bytes\n  expected at most 4 bytes"));
}

TEST_F(File, a_stream_hands_out_the_content_in_pieces) {
  FileStream stream(gzipped("pieces.gz", "abcdefgh"), 100);
  char piece[3];
  std::string content;
  while (const size_t got = stream.read(piece)) content.append(piece, got);
  EXPECT_EQ(content, "abcdefgh");
  EXPECT_EQ(stream.read(piece), 0u);
}

TEST_F(File, writing_into_a_missing_folder_is_an_error_that_names_the_path) {
  try {
    write_file(path("no_folder/out.csv"), "x");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("no_folder/out.csv"));
  }
  EXPECT_THROW(write_file(path(""), "x"), InputError);
}

}  // namespace foretoken::base_file_test
