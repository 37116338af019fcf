#include "kernel/trees/smooth_residual.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "base/base64.h"
#include "base/bytes.h"
#include "base/error.h"

namespace foretoken {
namespace {

constexpr size_t most_used = 64;

std::string packed_floats(const std::vector<float>& values) {
  ByteWriter bytes;
  for (const float value : values) bytes.put(value);
  return base64(bytes.bytes());
}

std::vector<uint8_t> bytes_of(const JsonView& view) {
  auto decoded = from_base64(view.value().string());
  if (!decoded) view.fail("base64 text");
  return std::move(*decoded);
}

std::vector<float> floats_of(const JsonView& view) {
  const std::vector<uint8_t> bytes = bytes_of(view);
  if (bytes.size() % sizeof(float) != 0) view.fail("base64 text of 4-byte numbers");
  std::vector<float> values;
  for (ByteReader reader(bytes); reader.left() > 0;) values.push_back(reader.get<float>());
  return values;
}

bool all_finite(const std::vector<float>& values) {
  return std::all_of(values.begin(), values.end(), [](float value) { return std::isfinite(value); });
}

}  // namespace

std::optional<std::string> SmoothResidual::flaw(const Parts& parts, size_t features) {
  const size_t rows = parts.weights.size(), used = parts.used.size();
  if (rows == 0) return std::nullopt;
  const bool asks_known = std::all_of(parts.used.begin(), parts.used.end(), [&](uint8_t f) { return f < features; });
  if (!asks_known || parts.group_feature >= features || used > most_used)
    return fmt::format("{} features at most, each of the {} of a call", most_used, features);
  if (parts.inverse_lengths.size() != used || parts.groups.size() != rows || parts.places.size() != rows * used)
    return "a length for each feature used, a group and a place for each row";
  const bool finite = all_finite(parts.inverse_lengths) && all_finite(parts.groups) && all_finite(parts.weights) &&
                      all_finite(parts.places) && std::isfinite(parts.across);
  if (!finite) return "finite numbers";
  return std::nullopt;
}

SmoothResidual::SmoothResidual(Parts parts) : parts_(std::move(parts)) {
  const size_t features =
      parts_.used.empty() ? 0 : size_t{1} + *std::max_element(parts_.used.begin(), parts_.used.end());
  ensure(!flaw(parts_, std::max(features, parts_.group_feature + 1)),
         "a process has a place and a weight for each row");
}

double SmoothResidual::predict(std::span<const float> features) const {
  if (empty()) return 0;
  const size_t used = parts_.used.size();
  std::array<float, most_used> place{};
  for (size_t f = 0; f < used; ++f) place[f] = features[parts_.used[f]] * parts_.inverse_lengths[f];
  const float group = features[parts_.group_feature];
  double sum = 0;
  const float* other = parts_.places.data();
  for (size_t row = 0; row < parts_.weights.size(); ++row, other += used) {
    double distance = 0;
    for (size_t f = 0; f < used; ++f) {
      const double apart = place[f] - other[f];
      distance += apart * apart;
    }
    const double share = parts_.groups[row] == group ? 1 : parts_.across;
    sum += parts_.weights[row] * share * correlation(distance);
  }
  return sum;
}

Json SmoothResidual::to_json() const {
  return Json::object({{"features_u8", base64(parts_.used)},
                       {"inverse_lengths_f32", packed_floats(parts_.inverse_lengths)},
                       {"group_feature", parts_.group_feature},
                       {"across", static_cast<double>(parts_.across)},
                       {"groups_f32", packed_floats(parts_.groups)},
                       {"weights_f32", packed_floats(parts_.weights)},
                       {"places_f32", packed_floats(parts_.places)}});
}

SmoothResidual SmoothResidual::from_json(const JsonView& view, size_t features) {
  Parts parts{.used = bytes_of(view.at("features_u8")),
              .inverse_lengths = floats_of(view.at("inverse_lengths_f32")),
              .group_feature = static_cast<size_t>(view.at("group_feature").integer({.least = 0, .most = 255})),
              .across = static_cast<float>(view.at("across").number({.least = 0, .most = 1})),
              .groups = floats_of(view.at("groups_f32")),
              .weights = floats_of(view.at("weights_f32")),
              .places = floats_of(view.at("places_f32"))};
  if (const auto found = flaw(parts, features)) view.fail(*found);
  return SmoothResidual(std::move(parts));
}

}  // namespace foretoken
