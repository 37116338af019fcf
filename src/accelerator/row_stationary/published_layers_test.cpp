#include "accelerator/row_stationary/published_layers.h"

#include <gtest/gtest.h>

#include "accelerator/row_stationary/test_support.h"
#include "base/error.h"
#include "base/file.h"

namespace foretoken::published_layers_test {

const std::filesystem::path published_file = FORETOKEN_SOURCE_DIR "/data/accelerators/published/eyeriss_jssc2017.json";

// The totals printed below the tables.
TEST(PublishedConvLayers, columns_add_up_to_the_printed_totals) {
  struct Totals {
    double total_ms = 0, processing_ms = 0, buffer_mb = 0, dram_mb = 0, giga_macs = 0;
  };
  const auto totals_of = [&](const char* network) {
    Totals sums;
    for (const PublishedConvLayer& row : eyeriss_layers(network)) {
      sums.total_ms += row.total.value() * kilo;
      sums.processing_ms += row.processing.value() * kilo;
      sums.buffer_mb += row.buffer.value() / mega;
      sums.dram_mb += row.dram.value() / mega;
      sums.giga_macs += row.layer.macs() / giga;
    }
    return sums;
  };
  const Totals alexnet = totals_of("alexnet");
  EXPECT_NEAR(alexnet.total_ms, 115.3, 0.15);
  EXPECT_NEAR(alexnet.processing_ms, 103.5, 0.15);
  EXPECT_NEAR(alexnet.buffer_mb, 208.5, 0.15);
  EXPECT_NEAR(alexnet.dram_mb, 15.4, 0.15);
  EXPECT_NEAR(alexnet.giga_macs, 2.66, 0.01);
  const Totals vgg = totals_of("vgg16");
  EXPECT_NEAR(vgg.total_ms, 4309.5, 0.25);
  EXPECT_NEAR(vgg.processing_ms, 3755.2, 0.25);
  EXPECT_NEAR(vgg.buffer_mb, 11035.8, 0.25);
  EXPECT_NEAR(vgg.dram_mb, 321.1, 0.25);
  EXPECT_NEAR(vgg.giga_macs, 46.04, 0.01);
}

TEST(PublishedConvLayers, a_layer_writes_the_zeros_that_the_next_one_reads) {
  const std::vector<PublishedConvLayer> rows = eyeriss_layers("alexnet");
  ASSERT_EQ(rows.size(), 5u);
  EXPECT_FALSE(rows[0].layer.ifmap_compressed);
  EXPECT_TRUE(rows[1].layer.ifmap_compressed);
  EXPECT_EQ(rows[0].layer.ofmap_zero_share, rows[1].layer.ifmap_zero_share);
  EXPECT_EQ(rows[4].layer.ofmap_zero_share, rows[4].layer.ifmap_zero_share);
}

TEST(PublishedConvLayers, zeros_are_found_by_the_names_of_our_networks) {
  const PublishedConvLayers published = read_published_conv_layers(published_file);
  EXPECT_EQ(published.zero_share("vgg16", "conv1_2"), 0.477);
  EXPECT_EQ(published.zero_share("alexnet", "fc6"), std::nullopt);
  EXPECT_EQ(published.zero_share("resnet50", "conv1"), std::nullopt);
}

TEST(PublishedConvLayers, a_wrong_value_is_named_with_its_place) {
  std::string text = read_file(published_file, 1 << 20);
  const std::string good = "\"groups\": 2";
  ASSERT_NE(text.find(good), std::string::npos);
  text.replace(text.find(good), good.size(), "\"groups\": 7");
  const auto file = std::filesystem::path(testing::TempDir()) / "published_conv_layers_bad_groups.json";
  write_file(file, text);
  try {
    read_published_conv_layers(file);
    FAIL() << "accepted";
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("layer conv2: groups"), std::string::npos) << error.what();
  }
}

}  // namespace foretoken::published_layers_test
