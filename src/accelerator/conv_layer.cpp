#include "accelerator/conv_layer.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/range.h"

namespace foretoken {
namespace {

// Far above any network, and low enough that every product of sizes is finite.
constexpr Range<int64_t> layer_sizes{.least = 1, .most = 1 << 20};

class ConvLayerCheck {
 public:
  ConvLayerCheck(const ConvLayer& layer, const std::string& source) : layer_(layer), source_(source) {}

  void size(const char* field, int64_t value, Range<int64_t> allowed = layer_sizes) const {
    if (!allowed.holds(value)) fail(field, fmt::format("{}", value), range_text(allowed));
  }
  void share(const char* field, double value) const {
    constexpr Range<double> shares{.least = 0, .most = 1};
    if (!shares.holds(value)) fail(field, fmt::format("{}", value), range_text(shares));
  }
  [[noreturn]] void fail(const char* field, std::string value, std::string expected) const {
    throw InputError({.source = source_,
                      .path = fmt::format("layer {}: {}", printable(layer_.name), field),
                      .value = std::move(value),
                      .expected = std::move(expected)});
  }

 private:
  const ConvLayer& layer_;
  const std::string& source_;
};

}  // namespace

double ConvLayer::macs() const {
  return static_cast<double>(batch) * static_cast<double>(filters) * static_cast<double>(channels_per_group()) *
         static_cast<double>(output_rows() * output_columns()) * static_cast<double>(filter_rows * filter_columns);
}

void check_conv_layer(const ConvLayer& layer, const std::string& source) {
  const ConvLayerCheck check(layer, source);
  check.size("batch", layer.batch);
  check.size("channels", layer.channels);
  check.size("filters", layer.filters);
  check.size("height", layer.height);
  check.size("width", layer.width);
  check.size("filter_rows", layer.filter_rows);
  check.size("filter_columns", layer.filter_columns);
  check.size("stride", layer.stride);
  check.size("padding", layer.padding, {.least = 0, .most = layer_sizes.most});
  check.size("groups", layer.groups);
  check.share("ifmap_zero_share", layer.ifmap_zero_share);
  check.share("ofmap_zero_share", layer.ofmap_zero_share);
  if (layer.filter_rows > layer.padded_height()) {
    check.fail("filter_rows", fmt::format("{}", layer.filter_rows),
               fmt::format("at most the {} rows of the padded input", layer.padded_height()));
  }
  if (layer.filter_columns > layer.padded_width()) {
    check.fail("filter_columns", fmt::format("{}", layer.filter_columns),
               fmt::format("at most the {} columns of the padded input", layer.padded_width()));
  }
  if (layer.channels % layer.groups != 0 || layer.filters % layer.groups != 0) {
    check.fail("groups", fmt::format("{}", layer.groups),
               fmt::format("a divisor of {} channels and {} filters", layer.channels, layer.filters));
  }
}

}  // namespace foretoken
