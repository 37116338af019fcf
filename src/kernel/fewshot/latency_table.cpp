#include "kernel/fewshot/latency_table.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/csv.h"
#include "base/error.h"

namespace foretoken {
namespace {

constexpr Range<double> latency_range = {.least = 1e-6, .most = 1e9};  // milliseconds

// Reads the architecture of a CSV's current row.
class ArchitectureReader {
 public:
  ArchitectureReader(const ArchitectureSpace& space, const CsvReader& csv) : space_(space) {
    for (const std::string_view name : space.columns) columns_.push_back(csv.column(name));
  }

  bool describes(size_t column) const { return std::find(columns_.begin(), columns_.end(), column) != columns_.end(); }

  void read(const CsvReader& csv, ArchitectureTable& table) const {
    std::vector<std::string_view> cells;
    for (const size_t column : columns_) cells.push_back(csv.cell(column));
    table.features.push_back(space_.features(
        cells, [&](size_t cell, std::string expected) { csv.fail(columns_[cell], std::move(expected)); }));
    table.cells.emplace_back(cells.begin(), cells.end());
  }

 private:
  const ArchitectureSpace& space_;
  std::vector<size_t> columns_;
};

// The number by which a published table names the current row.
class RowIds {
 public:
  explicit RowIds(const CsvReader& csv) : column_(csv.find_column("arch_id")) {
    if (!column_) column_ = csv.find_column("row_id");
  }
  size_t read(const CsvReader& csv) const {
    constexpr int64_t most = 1'000'000'000'000;
    return column_ ? static_cast<size_t>(csv.integer(*column_, {.least = 0, .most = most})) : csv.row() - 1;
  }

 private:
  std::optional<size_t> column_;
};

LatencyTable read_wide(CsvReader& csv, const ArchitectureReader& reader) {
  LatencyTable table;
  const RowIds ids(csv);
  std::vector<size_t> columns;
  const std::vector<std::string>& names = csv.columns();
  for (size_t c = 0; c < names.size(); ++c) {
    if (reader.describes(c) || names[c] == "arch_id" || names[c] == "depth") continue;
    columns.push_back(c);
    table.devices.push_back({.device = names[c]});
  }
  while (csv.next()) {
    const size_t row = table.architectures.cells.size();
    reader.read(csv, table.architectures);
    for (size_t d = 0; d < columns.size(); ++d) {
      if (csv.cell(columns[d]).empty()) continue;
      table.devices[d].rows.push_back(row);
      table.devices[d].ids.push_back(ids.read(csv));
      table.devices[d].milliseconds.push_back(csv.number(columns[d], latency_range));
    }
  }
  return table;
}

LatencyTable read_by_row(CsvReader& csv, const ArchitectureReader& reader) {
  const size_t task = csv.column("task"), device = csv.column("device");
  const size_t encoder = csv.column("latency_mean_encoder"), decoder = csv.column("latency_mean_decoder");
  const RowIds ids(csv);
  LatencyTable table;
  std::map<std::string, size_t> known;
  while (csv.next()) {
    const std::string name = fmt::format("{}/{}", csv.cell(task), csv.cell(device));
    const auto [found, is_new] = known.emplace(name, table.devices.size());
    if (is_new) table.devices.push_back({.device = name});
    DeviceLatencies& latencies = table.devices[found->second];
    latencies.rows.push_back(table.architectures.cells.size());
    latencies.ids.push_back(ids.read(csv));
    latencies.milliseconds.push_back(csv.number(encoder, latency_range) + csv.number(decoder, latency_range));
    reader.read(csv, table.architectures);
  }
  return table;
}

}  // namespace

LatencyTable read_latency_table(const ArchitectureSpace& space, const std::filesystem::path& path) {
  CsvReader csv(path);
  const ArchitectureReader reader(space, csv);
  LatencyTable table = csv.find_column("latency_mean_encoder") ? read_by_row(csv, reader) : read_wide(csv, reader);
  if (table.architectures.cells.empty() || table.devices.empty()) {
    const bool has_rows = !table.architectures.cells.empty();
    throw InputError({.source = path.string(),
                      .value = has_rows ? "no column with milliseconds" : "a header without rows",
                      .expected = "a row for each timed architecture, with its milliseconds in a column such as `ms`"});
  }
  return table;
}

ArchitectureTable read_architectures(const ArchitectureSpace& space, const std::filesystem::path& path) {
  CsvReader csv(path);
  const ArchitectureReader reader(space, csv);
  ArchitectureTable table;
  while (csv.next()) reader.read(csv, table);
  return table;
}

std::string device_family(const std::string& device) {
  if (const size_t slash = device.rfind('/'); slash != std::string::npos) return device.substr(slash + 1);
  const size_t underscore = device.rfind('_');
  const bool batch = underscore != std::string::npos && underscore + 1 < device.size() &&
                     std::all_of(device.begin() + static_cast<std::ptrdiff_t>(underscore) + 1, device.end(),
                                 [](char c) { return c >= '0' && c <= '9'; });
  // A batch size is at most 4 digits, and 1 to 3 in all published tables; a model number (gold_6240) has four.
  return batch && device.size() - underscore <= 4 ? device.substr(0, underscore) : device;
}

}  // namespace foretoken
