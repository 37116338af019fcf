#include "accelerator/nvdla.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file.h"
#include "base/statistics.h"

namespace foretoken::nvdla_test {

const std::filesystem::path nvdla_primer = FORETOKEN_SOURCE_DIR "/data/accelerators/published/nvdla_primer.json";

TEST(Nvdla, the_layers_are_those_of_resnet_50) {
  double macs = 0, weights = 0;
  for (const NvdlaLayer& layer : read_published_nvdla(nvdla_primer).layers) {
    const ConvLayer& convolution = layer.convolution;
    macs += convolution.macs() * static_cast<double>(layer.repeats);
    weights += static_cast<double>(convolution.channels * convolution.filters * convolution.filter_rows *
                                   convolution.filter_columns * layer.repeats);
  }
  EXPECT_NEAR(macs / giga, 3.858, 0.001);
  EXPECT_NEAR(weights / mega, 25.50, 0.01);  // without biases and normalisation
}

TEST(Nvdla, frames_per_second_of_the_primer) {
  const PublishedNvdla published = read_published_nvdla(nvdla_primer);
  std::vector<PredictedRow> rows;
  for (const PublishedNvdlaRow& row : published.rows) {
    rows.push_back({.measured = row.frames_per_second,
                    .predicted = 1 / nvdla_network_time(row.configuration, published.layers).value()});
    EXPECT_NEAR(rows.back().predicted / rows.back().measured, 1, 0.1) << row.configuration.macs;
  }
  ASSERT_EQ(rows.size(), 7u);
  EXPECT_LE(summarize_errors(rows).mape, 3.5);
}

TEST(Nvdla, more_macs_buffer_or_bandwidth_never_slow_a_network) {
  const PublishedNvdla published = read_published_nvdla(nvdla_primer);
  for (const PublishedNvdlaRow& row : published.rows) {
    const Seconds base = nvdla_network_time(row.configuration, published.layers);
    NvdlaConfiguration more = row.configuration;
    more.macs *= 2;
    EXPECT_LE(nvdla_network_time(more, published.layers), base);
    more = row.configuration;
    more.convolution_buffer = more.convolution_buffer * 2;
    EXPECT_LE(nvdla_network_time(more, published.layers), base);
    more = row.configuration;
    more.dram = more.dram * 2;
    EXPECT_LT(nvdla_network_time(more, published.layers), base);
  }
}

TEST(Nvdla, a_layer_whose_weights_fit_reads_its_input_once) {
  const NvdlaConfiguration configuration{
      .macs = 1024, .convolution_buffer = Bytes(64 * kibi), .dram = BytesPerSecond(1e9), .clock = Hertz(1e9)};
  const auto dram_bytes = [&](int64_t filters) {
    const NvdlaLayer layer{
        .convolution = {.name = "layer", .channels = 64, .filters = filters, .height = 32, .width = 32}};
    return nvdla_layer_time(configuration, layer).dram.value() * 1e9;
  };
  constexpr double pixels = 32 * 32;
  EXPECT_NEAR(dram_bytes(256), 64 * pixels + 64 * 256 + 256 * pixels, 1e-3);
  EXPECT_NEAR(dram_bytes(257), 2 * 64 * pixels + 64 * 257 + 257 * pixels, 1e-3);
}

TEST(Nvdla, a_misspelt_key_is_named) {
  std::string text = read_file(nvdla_primer, 1 << 20);
  const std::string key = "dram_gb_per_s";
  text.replace(text.find(key), key.size(), "dram_gb_s");
  const auto file = std::filesystem::path(testing::TempDir()) / "nvdla_misspelt.json";
  write_file(file, text);
  EXPECT_THROW(read_published_nvdla(file), InputError);
}

}  // namespace foretoken::nvdla_test
