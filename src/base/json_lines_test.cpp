#include "base/json_lines.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file.h"

namespace foretoken::json_lines_test {

TEST(JsonLines, gives_documents_in_order_and_skips_blank_lines) {
  JsonLinesReader reader = JsonLinesReader::from_text("{\"a\": 1}\n\n  \n[2]\n3", "lines");
  EXPECT_EQ(reader.next()->find("a")->integer(), 1);
  EXPECT_EQ(reader.line(), 1);
  EXPECT_EQ(reader.next()->items().size(), 1U);
  EXPECT_EQ(reader.line(), 4);
  EXPECT_EQ(reader.next()->integer(), 3) << "the last line needs no end";
  EXPECT_FALSE(reader.next());
  EXPECT_FALSE(reader.next());
}

TEST(JsonLines, a_broken_document_is_named_by_its_line) {
  JsonLinesReader reader = JsonLinesReader::from_text("{}\n{\n", "lines");
  reader.next();
  try {
    reader.next();
    FAIL() << "half a document is none";
  } catch (const InputError& error) {
    EXPECT_EQ(error.problem().line, 2);
  }
}

TEST(JsonLines, a_line_beyond_the_limit_is_refused) {
  JsonLinesReader reader = JsonLinesReader::from_text("{}\n\"too long a line\"\n", "lines", {.max_line_bytes = 8});
  reader.next();
  EXPECT_THROW(reader.next(), InputError);
}

TEST(JsonLines, a_file_reads_like_its_text_plain_or_compressed) {
  std::string text;
  for (int i = 0; i < 30000; ++i) text += "{\"number\": " + std::to_string(i) + "}\n";
  for (const char* name : {"lines.jsonl", "lines.jsonl.gz"}) {
    const std::filesystem::path file = std::filesystem::path(testing::TempDir()) / name;
    write_file(file, text);
    JsonLinesReader reader(file);
    for (int i = 0; i < 30000; ++i) ASSERT_EQ(reader.next()->find("number")->integer(), i);
    EXPECT_FALSE(reader.next());
    std::filesystem::remove(file);
  }
}

}  // namespace foretoken::json_lines_test
