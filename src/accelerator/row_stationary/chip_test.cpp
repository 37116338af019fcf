#include "accelerator/row_stationary/chip.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file.h"

namespace foretoken::chip_test {

TEST(RowStationaryChip, the_shipped_chip_has_the_published_peak_and_buffer) {
  const RowStationaryChip chip = eyeriss_v1(FORETOKEN_SOURCE_DIR "/data");
  EXPECT_EQ(chip.processing_elements(), 168);
  EXPECT_DOUBLE_EQ(static_cast<double>(chip.processing_elements()) * chip.core_clock.value(), 33.6e9);
  EXPECT_EQ(chip.buffer_banks * chip.buffer_bank_bytes + chip.filter_prefetch_bytes, 108 * 1024);
  EXPECT_DOUBLE_EQ(chip.link.value(), 480e6);
}

TEST(RowStationaryChip, a_number_without_a_source_is_refused) {
  const std::string good = read_file(FORETOKEN_SOURCE_DIR "/data/accelerators/chips/eyeriss_v1.json", 1 << 20);
  const std::string entry =
      R"("array_rows": {"value": 12, "source": "JSSC 52(1) 2017, section V-B: a Y-bus of 12 X-buses"})";
  std::string bad = good;
  ASSERT_NE(bad.find(entry), std::string::npos);
  bad.replace(bad.find(entry), entry.size(), R"("array_rows": {"value": 12})");
  try {
    parse_row_stationary_chip(bad, "chip.json");
    FAIL() << "accepted";
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("array_rows"), std::string::npos) << error.what();
  }
}

TEST(RowStationaryChip, a_word_is_whole_bytes) {
  std::string text = read_file(FORETOKEN_SOURCE_DIR "/data/accelerators/chips/eyeriss_v1.json", 1 << 20);
  const std::string good = R"("word_bits": {"value": 16)";
  ASSERT_NE(text.find(good), std::string::npos);
  text.replace(text.find(good), good.size(), R"("word_bits": {"value": 12)");
  EXPECT_THROW(parse_row_stationary_chip(text, "chip.json"), InputError);
}

}  // namespace foretoken::chip_test
