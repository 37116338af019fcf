#include "base/base64.h"

#include <gtest/gtest.h>

namespace foretoken::base64_test {

std::vector<uint8_t> bytes_of(std::string_view text) {
  return {text.begin(), text.end()};
}

TEST(Base64, the_examples_of_rfc_4648_hold) {
  EXPECT_EQ(base64(bytes_of("")), "");
  EXPECT_EQ(base64(bytes_of("f")), "Zg==");
  EXPECT_EQ(base64(bytes_of("fo")), "Zm8=");
  EXPECT_EQ(base64(bytes_of("foobar")), "Zm9vYmFy");
}

TEST(Base64, reading_undoes_writing_for_every_length) {
  std::vector<uint8_t> bytes;
  for (int i = 0; i < 300; ++i) {
    EXPECT_EQ(from_base64(base64(bytes)), bytes);
    bytes.push_back(static_cast<uint8_t>(i * 37));
  }
}

TEST(Base64, malformed_text_gives_nothing) {
  for (const char* text : {"Zg=", "Zg", "Z===", "Zg==Zg==", "Zm9*", "Zh==", "====", "Zm 9"}) {
    EXPECT_EQ(from_base64(text), std::nullopt) << text;
  }
}

}  // namespace foretoken::base64_test
