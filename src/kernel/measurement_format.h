// Layouts of other people's measurement tables that `validate` and `fit` read as they are. One file and one line in
// measurement_formats/list.cpp for each.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace foretoken {

class MeasurementRows;
class ModelCatalogue;

// What a format makes of a path: a table of a device, or one it leaves out and why.
struct FormatMatch {
  std::string device;
  std::string left_out;  // the reason; empty = it is read
};

struct MeasurementFormat {
  std::string_view name;
  std::optional<FormatMatch> (*match)(const std::filesystem::path& path);  // nothing: not of this format
  std::unique_ptr<MeasurementRows> (*open)(const std::filesystem::path& path, const ModelCatalogue* models);
};

std::span<const MeasurementFormat> measurement_formats();

}  // namespace foretoken
