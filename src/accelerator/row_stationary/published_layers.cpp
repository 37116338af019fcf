#include "accelerator/row_stationary/published_layers.h"

#include <algorithm>

#include "accelerator/workload/conv_layers.h"
#include "base/json.h"
#include "base/text.h"
#include "hardware/fact_reader.h"

namespace foretoken {
namespace {

constexpr Range<int64_t> published_sizes{.least = 0, .most = 1 << 20};
constexpr Range<double> measured_numbers{.least = 1e-6, .most = 1e9};

PublishedConvLayer read_published_layer(const JsonView& entry, const std::string& network, int64_t batch) {
  entry.allow_only({"name", "channels", "filters", "height", "width", "filter_rows", "filter_columns", "stride",
                    "padding", "groups", "ifmap_zero_share", "power_mw", "total_ms", "processing_ms", "active_pes",
                    "buffer_mb", "dram_mb"});
  const auto size = [&](const char* key) { return entry.at(key).integer(published_sizes); };
  const auto measured = [&](const char* key) { return entry.at(key).number(measured_numbers); };
  PublishedConvLayer row{.network = network,
                         .layer = {.name = read_text(entry.at("name")),
                                   .batch = batch,
                                   .channels = size("channels"),
                                   .filters = size("filters"),
                                   .height = size("height"),
                                   .width = size("width"),
                                   .filter_rows = size("filter_rows"),
                                   .filter_columns = size("filter_columns"),
                                   .stride = size("stride"),
                                   .padding = size("padding"),
                                   .groups = size("groups"),
                                   .ifmap_zero_share = entry.at("ifmap_zero_share").number({.least = 0, .most = 1})},
                         .power = Watts(measured("power_mw") / kilo),
                         .total = milliseconds(measured("total_ms")),
                         .processing = milliseconds(measured("processing_ms")),
                         .active_pes = size("active_pes"),
                         .buffer = Bytes(measured("buffer_mb") * mega),
                         .dram = Bytes(measured("dram_mb") * mega)};
  check_conv_layer(row.layer, entry.source());
  return row;
}

std::vector<PublishedConvLayer> read_published_network(const JsonView& entry) {
  entry.allow_only({"name", "batch", "layers"});
  const std::string network = read_text(entry.at("name"));
  const int64_t batch = entry.at("batch").integer({.least = 1, .most = published_sizes.most});
  std::vector<PublishedConvLayer> rows;
  for (const JsonView& layer : entry.at("layers").items()) rows.push_back(read_published_layer(layer, network, batch));
  std::vector<ConvLayer> layers;
  for (const PublishedConvLayer& row : rows) layers.push_back(row.layer);
  chain_zero_shares(layers);
  for (size_t i = 0; i < rows.size(); ++i) rows[i].layer = layers[i];
  return rows;
}

PublishedConvLayers published_conv_layers_from(const JsonView& view) {
  view.allow_only({"title", "source", "note", "networks"});
  PublishedConvLayers published{.title = read_text(view.at("title")), .source = read_text(view.at("source"))};
  for (const JsonView& network : view.at("networks").items()) {
    for (PublishedConvLayer& row : read_published_network(network)) published.layers.push_back(std::move(row));
  }
  return published;
}

}  // namespace

std::optional<double> PublishedConvLayers::zero_share(std::string_view network, std::string_view layer) const {
  // Networks here write conv1_1 for the paper's conv1-1.
  const auto plain = [](std::string_view name) {
    std::string text = lower_case(name);
    std::replace(text.begin(), text.end(), '-', '_');
    return text;
  };
  for (const PublishedConvLayer& row : layers) {
    if (plain(row.network) == plain(network) && plain(row.layer.name) == plain(layer))
      return row.layer.ifmap_zero_share;
  }
  return std::nullopt;
}

PublishedConvLayers parse_published_conv_layers(std::string_view text, const std::string& source) {
  const Json json = parse_json(text, source);
  return published_conv_layers_from(JsonView(json, source));
}

PublishedConvLayers read_published_conv_layers(const std::filesystem::path& file) {
  const Json json = read_json_file(file);
  return published_conv_layers_from(JsonView(json, file.string()));
}

}  // namespace foretoken
