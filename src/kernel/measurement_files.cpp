#include "kernel/measurement_files.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/error.h"

namespace foretoken {
namespace {

namespace fs = std::filesystem;

// The name of a file without .csv or .csv.gz; nothing for other files.
std::optional<std::string> table_name(const fs::path& path) {
  std::string name = path.filename().string();
  for (const std::string_view ending : {".csv.gz", ".csv"}) {
    if (name.ends_with(ending)) return name.substr(0, name.size() - ending.size());
  }
  return std::nullopt;
}

std::vector<fs::path> sorted_entries(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    entries.push_back(entry->path());
  }
  if (error) {
    throw InputError({.source = folder.string(), .value = error.message(), .expected = "a folder that can be read"});
  }
  std::sort(entries.begin(), entries.end());
  return entries;
}

// Adds the devices and families of a table of operators; false if the file is none.
bool add_operator_table(const fs::path& path, MeasurementFiles& found) {
  CsvReader csv(path);
  const std::optional<OperatorTableKind> kind = operator_table_kind(csv.columns());
  if (!kind) return false;
  const OperatorRowReader reader(*kind, csv);
  std::set<std::pair<std::string, std::string>> present;  // device, family
  while (csv.next()) present.emplace(reader.device(csv), reader.family(csv));
  for (const auto& [device, family] : present) {
    found.files.push_back(
        {.path = path, .device = device, .family = find_kernel_family(family), .table = kind, .device_text = device});
  }
  return true;
}

// Adds the tables directly in `folder`, whose name is the device.
void add_tables(const fs::path& folder, MeasurementFiles& found) {
  for (const fs::path& path : sorted_entries(folder)) {
    const std::optional<std::string> table = table_name(path);
    if (!table || !fs::is_regular_file(path)) continue;
    const KernelFamily* family = find_kernel_family(*table);
    if (add_operator_table(path, found)) continue;
    if (family) {
      found.files.push_back(
          {.path = path, .device = fs::absolute(folder).lexically_normal().filename().string(), .family = family});
    } else {
      found.notes.push_back(fmt::format("{}: not a kernel family, left out", path.string()));
    }
  }
}

std::vector<fs::path> folders_in(const fs::path& folder) {
  std::vector<fs::path> folders;
  for (const fs::path& path : sorted_entries(folder)) {
    if (fs::is_directory(path)) folders.push_back(path);
  }
  return folders;
}

// Adds `path` if it is a table of another format.
void add_foreign(const fs::path& path, MeasurementFiles& found) {
  for (const MeasurementFormat& format : measurement_formats()) {
    const std::optional<FormatMatch> match = format.match(path);
    if (!match) continue;
    if (match->left_out.empty()) {
      found.files.push_back({.path = path, .device = match->device, .format = &format});
    } else {
      found.left_out.push_back({.path = path, .why = match->left_out});
    }
    return;
  }
}

// Tables of other formats anywhere below `folder`.
void add_foreign_below(const fs::path& folder, int depth, MeasurementFiles& found) {
  for (const fs::path& path : sorted_entries(folder)) {
    if (fs::is_directory(path)) {
      if (depth > 0) add_foreign_below(path, depth - 1, found);
    } else {
      add_foreign(path, found);
    }
  }
}

}  // namespace

MeasurementFiles find_measurement_files(const fs::path& data) {
  MeasurementFiles found;
  std::error_code error;
  const fs::file_status status = fs::status(data, error);
  if (!fs::exists(status)) {
    throw InputError({.source = data.string(),
                      .value = "no such file or folder",
                      .expected = "<device>/<family>.csv[.gz] below it"});
  }
  if (!fs::is_directory(status)) {
    add_foreign(data, found);
    if (!found.files.empty()) return found;
    if (table_name(data) && add_operator_table(data, found)) return found;
    const KernelFamily& family =
        kernel_family(table_name(data).value_or(data.filename().string()), {.source = data.string()});
    found.files.push_back(
        {.path = data, .device = fs::absolute(data).parent_path().filename().string(), .family = &family});
    return found;
  }
  fs::path root = data;
  if (!root.has_filename()) root = root.parent_path();  // a trailing slash
  constexpr int deepest = 4;
  add_foreign_below(root, deepest, found);
  if (!found.files.empty()) return found;
  add_tables(root, found);
  if (!found.files.empty()) return found;

  const std::vector<fs::path> folders = folders_in(root);
  std::vector<fs::path> without_tables;
  for (const fs::path& folder : folders) {
    const size_t before = found.files.size();
    add_tables(folder, found);
    if (found.files.size() == before) without_tables.push_back(folder);
  }
  const bool campaigns = found.files.empty();
  for (const fs::path& folder : without_tables) {
    if (campaigns) {
      for (const fs::path& device : folders_in(folder)) add_tables(device, found);
    } else {
      found.notes.push_back(
          fmt::format("{}: no tables of kernels directly in it, left out; name it to read it", folder.string()));
    }
  }
  if (found.files.empty()) {
    throw InputError({.source = data.string(),
                      .value = "no measurements",
                      .expected = fmt::format("<device>/<family>.csv[.gz] with family one of {}",
                                              fmt::join(kernel_family_names(), ", "))});
  }
  return found;
}

}  // namespace foretoken
