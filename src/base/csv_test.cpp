#include "base/csv.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include "base/error.h"
#include "base/random.h"

namespace foretoken::csv_test {

using testing::HasSubstr;
using Table = std::vector<std::vector<std::string>>;

// Header and rows, all as text.
Table read_all(CsvReader reader) {
  Table table = {reader.columns()};
  while (reader.next()) {
    std::vector<std::string>& row = table.emplace_back();
    for (size_t i = 0; i < reader.columns().size(); ++i) row.emplace_back(reader.cell(i));
  }
  return table;
}

Table read_all(std::string text, CsvLimits limits = {}) {
  return read_all(CsvReader::from_text(std::move(text), "f.csv", limits));
}

std::string complaint(std::string text, CsvLimits limits = {}) {
  try {
    read_all(text, limits);
  } catch (const InputError& error) {
    return error.what();
  }
  ADD_FAILURE() << "no complaint about " << text.substr(0, 100);
  return "";
}

TEST(Csv, rows_come_with_or_without_a_final_newline_and_with_any_line_end) {
  const Table expected = {{"a", "b"}, {"1", "2"}, {"", "4"}};
  for (const char* text :
       {"a,b\n1,2\n,4\n", "a,b\n1,2\n,4", "a,b\r\n1,2\r\n,4\r\n", "a,b\r1,2\r,4\r",
        "\xEF\xBB\xBF"
        "a,b\n1,2\n,4",
        "\"a\",b\n\"1\",\"2\"\n\"\",4\n", "\xEF\xBB\xBF\"a\",b\n1,2\n,4", "a,b\n\n1,2\n\n\r\n,4\n\n\n"}) {
    EXPECT_EQ(read_all(text), expected) << text;
  }
}

TEST(Csv, quoted_cells_hold_commas_quotes_and_newlines) {
  EXPECT_EQ(read_all("a,b\n\"x,y\",\"say \"\"hi\"\"\"\n\"two\r\nlines\",\"\"\"\"\n"),
            (Table{{"a", "b"}, {"x,y", "say \"hi\""}, {"two\r\nlines", "\""}}));
  EXPECT_EQ(read_all("a\n5\" pipe\n"), (Table{{"a"}, {"5\" pipe"}}));
}

TEST(Csv, a_header_without_rows_is_a_table_without_rows) {
  EXPECT_EQ(read_all("a,b"), (Table{{"a", "b"}}));
  EXPECT_EQ(read_all("a,b\n"), (Table{{"a", "b"}}));
}

TEST(Csv, a_table_of_one_column_skips_empty_lines_but_not_empty_cells) {
  EXPECT_EQ(read_all("a\n1\n\n2\n"), (Table{{"a"}, {"1"}, {"2"}}));
  EXPECT_EQ(read_all("a\n1\n\"\"\n2\n"), (Table{{"a"}, {"1"}, {""}, {"2"}}));
}

TEST(Csv, what_is_written_by_csv_cell_reads_back_the_same) {
  RandomStream stream(1, "csv");
  const std::string alphabet = "a1 ,\"\n\r;'\xc3\xbc";
  for (int trial = 0; trial < 300; ++trial) {
    Table table = {{"x", "y", "z"}};
    for (uint64_t rows = stream.below(6); rows > 0; --rows) {
      std::vector<std::string>& row = table.emplace_back();
      for (int column = 0; column < 3; ++column) {
        std::string& cell = row.emplace_back();
        for (uint64_t length = stream.below(6); length > 0; --length) cell += alphabet[stream.below(alphabet.size())];
      }
    }
    std::string text;
    for (const auto& row : table) text += csv_cell(row[0]) + "," + csv_cell(row[1]) + "," + csv_cell(row[2]) + "\n";
    ASSERT_EQ(read_all(text), table) << text;
  }
}

TEST(Csv, a_first_cell_that_begins_with_a_byte_order_mark_is_written_so_that_it_stays) {
  const std::string name =
      "\xEF\xBB\xBF"
      "a";
  EXPECT_EQ(read_all(csv_cell(name) + ",b\n"), (Table{{name, "b"}}));
}

TEST(Csv, cells_across_the_read_buffer_stay_whole) {
  // Rows of 7 bytes and CRLF, so that every kind of byte falls on the buffer's end once in a while.
  std::string text = "a,b\r\n";
  for (int i = 0; i < 200000; ++i) text += i % 2 == 0 ? "\"x\"\"\",1\r\n" : "\"y\",23\r\n";
  const Table table = read_all(text);
  ASSERT_EQ(table.size(), 200001u);
  for (size_t i = 1; i < table.size(); ++i) {
    ASSERT_EQ(table[i], (i % 2 == 1 ? std::vector<std::string>{"x\"", "1"} : std::vector<std::string>{"y", "23"})) << i;
  }
}

TEST(Csv, an_empty_file_lacks_a_header) {
  EXPECT_EQ(complaint(""), "f.csv: an empty file\n  expected a header line with column names");
  EXPECT_EQ(complaint("\xEF\xBB\xBF"), "f.csv: an empty file\n  expected a header line with column names");
}

TEST(Csv, a_header_names_each_column_once) {
  EXPECT_EQ(complaint("a,,b\n"), "f.csv:1: header = column 2 without a name\n  expected a name for each column");
  EXPECT_EQ(complaint("a,b,a\n"), "f.csv:1: header = a\n  expected each column name only once");
  EXPECT_THAT(complaint("\n"), HasSubstr("column 1 without a name"));
}

TEST(Csv, a_row_with_too_few_or_too_many_cells_is_refused_where_it_stands) {
  EXPECT_EQ(complaint("a,b\n1,2\n\n3\n"), "f.csv:4: row 2 = 1 cells\n  expected 2 cells as in the header");
  EXPECT_EQ(complaint("a,b\n\"1\n\n\",2\n3,4,5\n"), "f.csv:5: row 2 = 3 cells\n  expected 2 cells as in the header");
}

TEST(Csv, nul_bytes_and_broken_quotes_are_refused) {
  EXPECT_EQ(complaint(std::string("a,b\n1,\0\n", 8)), "f.csv:2: row 1 = a NUL byte\n  expected text");
  EXPECT_THAT(complaint(std::string("a\n\"\0\"\n", 6)), HasSubstr("a NUL byte"));
  EXPECT_THAT(complaint(std::string("a\0b\n", 4)), HasSubstr("header = a NUL byte"));
  EXPECT_EQ(complaint("a\n\"open\n\n"),
            "f.csv:2: row 1 = an open quote at the end of the file\n  expected a closing \"");
  EXPECT_EQ(complaint("a\n\"x\"y\n"), "f.csv:2: row 1 = y\n  expected a comma or line end after a closing quote");
}

TEST(Csv, limits_on_rows_columns_and_bytes_are_kept) {
  EXPECT_THAT(complaint("a\n" + std::string(2 << 20, 'x')),
              HasSubstr("f.csv:2: row 1\n  expected at most 1048576 bytes in a row"));
  EXPECT_THAT(complaint("a\n\"" + std::string(2 << 20, 'x') + "\""), HasSubstr("at most 1048576 bytes in a row"));
  EXPECT_THAT(complaint(std::string(2 << 20, 'x')), HasSubstr("at most 1048576 bytes in a row"));
  EXPECT_THAT(complaint("a\n" + std::string(5000, ',')), HasSubstr("at most 1024 columns"));
  EXPECT_THAT(complaint("a\n12345\n", {.max_bytes = 7}), HasSubstr("8 bytes\n  expected at most 7 bytes"));
  EXPECT_EQ(read_all("a\n12345", {.max_bytes = 7, .max_row_bytes = 5, .max_columns = 1}).size(), 2u);
}

TEST(Csv, numbers_are_read_within_their_range_or_refused_where_they_stand) {
  CsvReader reader = CsvReader::from_text("m,us\n4096,1.5\n4096.0,nan\n-1,1e400\nx,\n1e30,-0.5\n", "f.csv");
  const size_t m = reader.column("m"), us = reader.column("us");
  const auto complaint_of = [&](auto read) -> std::string {
    try {
      read();
    } catch (const InputError& error) {
      return error.what();
    }
    return "no complaint";
  };
  ASSERT_TRUE(reader.next());
  EXPECT_EQ(reader.row(), 1u);
  EXPECT_EQ(reader.line(), 2);
  EXPECT_EQ(reader.integer(m), 4096);
  EXPECT_EQ(reader.number(us), 1.5);
  EXPECT_EQ(complaint_of([&] { reader.integer(us); }), "f.csv:2: row 1, column us = 1.5\n  expected a whole number");
  ASSERT_TRUE(reader.next());
  EXPECT_EQ(reader.integer(m), 4096);
  EXPECT_EQ(complaint_of([&] { reader.number(us); }), "f.csv:3: row 2, column us = nan\n  expected a number");
  ASSERT_TRUE(reader.next());
  EXPECT_EQ(complaint_of([&] {
              reader.integer(m, {1, 8});
            }),
            "f.csv:4: row 3, column m = -1\n  expected a whole number between 1 and 8");
  EXPECT_EQ(complaint_of([&] { reader.number(us, {.least = 0}); }),
            "f.csv:4: row 3, column us = 1e400\n  expected a number of at least 0");
  ASSERT_TRUE(reader.next());
  EXPECT_EQ(complaint_of([&] { reader.number(us); }), "f.csv:5: row 4, column us = (empty)\n  expected a number");
  ASSERT_TRUE(reader.next());
  EXPECT_THAT(complaint_of([&] { reader.integer(m); }),
              HasSubstr("column m = 1e30\n  expected a whole number between -9007199254740992 and 9007199254740992"));
  EXPECT_THAT(complaint_of([&] { reader.number(us, {.least = 0}); }), HasSubstr("of at least 0"));
  EXPECT_FALSE(reader.next());
  EXPECT_FALSE(reader.next());
  EXPECT_THROW(reader.cell(0), InternalError);
}

TEST(Csv, a_missing_column_suggests_the_nearest) {
  const CsvReader reader = CsvReader::from_text("batch,seq_len,us\n", "f.csv");
  EXPECT_EQ(reader.find_column("us"), 2u);
  EXPECT_EQ(reader.find_column("ms"), std::nullopt);
  try {
    reader.column("seqlen");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(),
                 "f.csv:1: header = batch,seq_len,us\n  expected a column `seqlen`; did you mean seq_len?");
  }
}

TEST(Csv, a_reader_can_be_moved) {
  CsvReader first = CsvReader::from_text("a\n1\n2\n", "f.csv");
  ASSERT_TRUE(first.next());
  CsvReader second = std::move(first);
  EXPECT_EQ(second.cell(0), "1");
  ASSERT_TRUE(second.next());
  EXPECT_EQ(second.cell(0), "2");
}

class CsvFile : public testing::Test {
 protected:
  ~CsvFile() override { std::filesystem::remove(path_); }

  void write(const std::string& content, bool packed) const {
    const gzFile file = gzopen(path_.c_str(), packed ? "wb" : "wbT");
    gzwrite(file, content.data(), static_cast<unsigned>(content.size()));
    gzclose(file);
  }

  std::filesystem::path path_ =
      std::filesystem::path(testing::TempDir()) / ("foretoken_csv_test_" + std::to_string(getpid()) + ".csv");
};

TEST_F(CsvFile, plain_and_gzip_files_read_alike) {
  for (const bool packed : {false, true}) {
    write(
        "\xEF\xBB\xBF"
        "a,b\n1,2\n",
        packed);
    EXPECT_EQ(read_all(CsvReader(path_)), (Table{{"a", "b"}, {"1", "2"}}));
  }
}

TEST_F(CsvFile, a_truncated_gzip_is_an_error_that_says_so) {
  RandomStream stream(2, "csv");
  std::string text = "a,b\n";
  for (int i = 0; i < 20000; ++i) text += std::to_string(stream.bits()) + "," + std::to_string(stream.bits()) + "\n";
  write(text, true);
  for (const size_t cut : {size_t{1}, size_t{100}, size_t{100'000}}) {
    std::filesystem::resize_file(path_, std::filesystem::file_size(path_) - cut);
    try {
      read_all(CsvReader(path_));
      FAIL() << cut;
    } catch (const InputError& error) {
      EXPECT_THAT(error.what(), HasSubstr("the gzip stream ends too early"));
    }
  }
}

TEST_F(CsvFile, a_gzip_that_unpacks_beyond_the_limit_is_stopped) {
  std::string text = "a\n";
  for (int i = 0; i < 100000; ++i) text += "0000000000\n";
  write(text, true);
  EXPECT_THROW(read_all(CsvReader(path_, {.max_bytes = 500'000})), InputError);
  EXPECT_EQ(read_all(CsvReader(path_)).size(), 100001u);
}

TEST(Csv, a_missing_file_or_a_directory_is_an_input_error) {
  EXPECT_THROW(CsvReader("no/such.csv"), InputError);
  EXPECT_THROW(CsvReader(std::filesystem::path(".")), InputError);
}

}  // namespace foretoken::csv_test
