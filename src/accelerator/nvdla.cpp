#include "accelerator/nvdla.h"

#include <cmath>

#include "base/json.h"
#include "hardware/fact_reader.h"

namespace foretoken {
namespace {

constexpr double weight_share_of_buffer = 0.25;
constexpr int64_t channel_granule = 16;

double whole_granules(int64_t channels) {
  return static_cast<double>((channels + channel_granule - 1) / channel_granule * channel_granule);
}

NvdlaLayer read_nvdla_layer(const JsonView& entry) {
  entry.allow_only({"name", "channels", "filters", "size", "filter", "stride", "padding", "repeats", "adds_shortcut"});
  const auto size = [&](const char* key) { return entry.at(key).integer({.least = 0, .most = 1 << 20}); };
  NvdlaLayer layer{.convolution = {.name = read_text(entry.at("name")),
                                   .channels = size("channels"),
                                   .filters = size("filters"),
                                   .height = size("size"),
                                   .width = size("size"),
                                   .filter_rows = size("filter"),
                                   .filter_columns = size("filter"),
                                   .stride = size("stride"),
                                   .padding = size("padding")},
                   .adds_shortcut = entry.at("adds_shortcut").boolean(),
                   .repeats = entry.at("repeats").integer({.least = 1, .most = 1 << 20})};
  check_conv_layer(layer.convolution, entry.source());
  return layer;
}

PublishedNvdlaRow read_nvdla_row(const JsonView& entry, Hertz clock) {
  entry.allow_only({"macs", "convolution_buffer_kib", "dram_gb_per_s", "frames_per_s"});
  const auto number = [&](const char* key) { return entry.at(key).number({.least = 1e-3, .most = 1e6}); };
  return {.configuration = {.macs = entry.at("macs").integer({.least = 1, .most = 1 << 24}),
                            .convolution_buffer = Bytes(number("convolution_buffer_kib") * kibi),
                            .dram = BytesPerSecond(number("dram_gb_per_s") * giga),
                            .clock = clock},
          .frames_per_second = number("frames_per_s")};
}

PublishedNvdla published_nvdla_from(const JsonView& view) {
  view.allow_only({"title", "source", "clock_mhz", "layers_source", "layers", "configurations"});
  const Hertz clock(view.at("clock_mhz").number({.least = 1, .most = 1e5}) * mega);
  PublishedNvdla published{.source = read_text(view.at("source"))};
  for (const JsonView& layer : view.at("layers").items()) published.layers.push_back(read_nvdla_layer(layer));
  for (const JsonView& row : view.at("configurations").items()) published.rows.push_back(read_nvdla_row(row, clock));
  return published;
}

}  // namespace

NvdlaTime nvdla_layer_time(const NvdlaConfiguration& configuration, const NvdlaLayer& layer) {
  const ConvLayer& convolution = layer.convolution;
  check_conv_layer(convolution, "nvdla");
  const auto images = static_cast<double>(convolution.batch);
  const auto taps = static_cast<double>(convolution.filter_rows * convolution.filter_columns);
  const double weights = static_cast<double>(convolution.filters * convolution.channels_per_group()) * taps;
  const double inputs =
      images * static_cast<double>(convolution.channels * convolution.height) * static_cast<double>(convolution.width);
  const double pixels = images * static_cast<double>(convolution.output_rows() * convolution.output_columns());
  const double outputs = pixels * static_cast<double>(convolution.filters);
  const double granule_macs = pixels * taps * static_cast<double>(convolution.groups) *
                              whole_granules(convolution.channels_per_group()) *
                              whole_granules(convolution.filters_per_group());
  const double input_reads = std::ceil(weights / (weight_share_of_buffer * configuration.convolution_buffer.value()));
  const Bytes traffic(inputs * input_reads + weights + outputs * (layer.adds_shortcut ? 2 : 1));
  return {.mac = Seconds(granule_macs / static_cast<double>(configuration.macs) / configuration.clock.value()),
          .dram = traffic / configuration.dram,
          .counted_macs = granule_macs,
          .input_reads = input_reads,
          .traffic = traffic};
}

Seconds nvdla_network_time(const NvdlaConfiguration& configuration, std::span<const NvdlaLayer> layers) {
  Seconds total;
  for (const NvdlaLayer& layer : layers) {
    total += nvdla_layer_time(configuration, layer).total() * static_cast<double>(layer.repeats);
  }
  return total;
}

PublishedNvdla parse_published_nvdla(std::string_view text, const std::string& source) {
  const Json json = parse_json(text, source);
  return published_nvdla_from(JsonView(json, source));
}

PublishedNvdla read_published_nvdla(const std::filesystem::path& file) {
  const Json json = read_json_file(file);
  return published_nvdla_from(JsonView(json, file.string()));
}

}  // namespace foretoken
