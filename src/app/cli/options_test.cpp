#include "app/cli/options.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace foretoken {
namespace {

constexpr Range<int64_t> any{.least = 0, .most = 1'000'000'000'000};

TEST(ParseSize, suffixes_count_thousands_or_1024s) {
  EXPECT_EQ(parse_size("--x", "4096", any), 4096);
  EXPECT_EQ(parse_size("--x", "4k", any), 4000);
  EXPECT_EQ(parse_size("--x", "4K", any), 4096);
  EXPECT_EQ(parse_size("--x", "1.5m", any), 1'500'000);
  EXPECT_EQ(parse_size("--x", "2G", any), 2147483648);
}

TEST(ParseSize, anything_else_is_an_input_error_that_names_the_flag) {
  for (const char* text : {"", "k", "4kk", "1e30", "-1", "2.5", "nan", "0x10", " 4", "4 "}) {
    try {
      parse_size("--batch", text, any);
      FAIL() << text;
    } catch (const InputError& error) {
      EXPECT_EQ(error.problem().source, "--batch") << text;
    }
  }
}

}  // namespace
}  // namespace foretoken
