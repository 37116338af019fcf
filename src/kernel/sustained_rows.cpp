#include "kernel/sustained_rows.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/csv.h"
#include "base/error.h"
#include "base/text.h"
#include "kernel/family.h"

namespace foretoken {
namespace {

using Pairs = std::vector<std::pair<std::string, std::string>>;

// "m=16 n=8192" as pairs.
Pairs pairs_of(std::string_view text, const CsvReader& csv, size_t column) {
  Pairs pairs;
  for (const std::string_view word : split_words(text, " ")) {
    const size_t equals = word.find('=');
    if (equals == std::string_view::npos || equals == 0) csv.fail(column, "name=value, separated by spaces");
    pairs.emplace_back(word.substr(0, equals), word.substr(equals + 1));
  }
  if (pairs.empty()) csv.fail(column, "name=value, separated by spaces; calls by semicolons");
  return pairs;
}

int64_t whole(const Pairs& pairs, std::string_view name, const CsvReader& csv, size_t column) {
  for (const auto& [key, value] : pairs) {
    if (key != name) continue;
    const auto number = parse_integer(value);
    if (number && *number > 0 && *number <= 1'000'000'000'000) return *number;
  }
  csv.fail(column, fmt::format("a whole number {}=...", name));
}

// Those that are parameters of the family; the profiler keeps a few more (what exactly was cast).
Pairs known_pairs(const KernelFamily& family, const Pairs& pairs) {
  Pairs known;
  for (const auto& pair : pairs) {
    if (pair.first == "kernel") continue;  // the variant, which is no part of the shape
    const bool is_known = std::any_of(family.parameters.begin(), family.parameters.end(),
                                      [&](const KernelParameter& parameter) { return parameter.name == pair.first; });
    if (is_known) known.push_back(pair);
  }
  return known;
}

// Adds one call. Families that only the profiler knows become the kernels they are.
void add_call(const std::vector<std::string_view>& families, const Pairs& pairs, const CsvReader& csv, size_t column,
              SustainedRow& row) {
  const auto has = [&](std::string_view name) {
    return std::any_of(pairs.begin(), pairs.end(), [&](const auto& pair) { return pair.first == name; });
  };
  const auto listed = [&](std::string_view name) {
    return std::find(families.begin(), families.end(), name) != families.end();
  };
  if (listed("pause") && has("us")) {
    row.pause += microseconds(static_cast<double>(whole(pairs, "us", csv, column)));
    return;
  }
  if (listed("copy") && has("bytes")) {
    row.calls.push_back(
        {.shape = ElementwiseShape{.elements = std::max<int64_t>(1, whole(pairs, "bytes", csv, column) / 2)}});
    return;
  }
  std::string variant;
  for (const auto& [key, value] : pairs) {
    if (key == "kernel") variant = value;
  }
  if (listed("grouped_gemm") && has("groups")) {
    const int64_t groups = whole(pairs, "groups", csv, column);
    const bool fp8 = variant.starts_with("scaled_");
    row.calls.push_back({.shape = GemmShape{.m = std::max<int64_t>(1, whole(pairs, "m", csv, column) / groups),
                                            .n = whole(pairs, "n", csv, column),
                                            .k = whole(pairs, "k", csv, column),
                                            .batch = groups,
                                            .scheme = fp8 ? Scheme::fp8 : Scheme::bf16},
                         .variant = variant});
    return;
  }
  for (const std::string_view name : families) {
    const KernelFamily* family = find_kernel_family(name);
    if (family == nullptr) continue;
    const Pairs known = known_pairs(*family, pairs);
    const size_t of_shape = pairs.size() - (has("kernel") ? 1 : 0);
    if (known.size() < of_shape && families.size() > 1) continue;
    row.calls.push_back({.shape = shape_from_texts(*family, known), .variant = variant});
    return;
  }
  csv.fail(column, "parameters of one of the row's families");
}

}  // namespace

std::vector<SustainedFile> find_sustained_files(const std::filesystem::path& data) {
  namespace fs = std::filesystem;
  std::vector<SustainedFile> found;
  std::error_code error;
  fs::path root = data;
  if (!root.has_filename()) root = root.parent_path();  // a trailing slash
  std::vector<fs::path> folders = {root};
  for (fs::directory_iterator entry(root, error), end; !error && entry != end; entry.increment(error)) {
    if (entry->is_directory()) folders.push_back(entry->path());
  }
  std::sort(folders.begin(), folders.end());
  for (const fs::path& folder : folders) {
    const std::string device = fs::absolute(folder).lexically_normal().filename().string();
    std::vector<fs::path> files;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
      const std::string name = entry->path().filename().string();
      const bool is_table = name.ends_with(".csv") || name.ends_with(".csv.gz");
      if (name.starts_with("sustained") && is_table) files.push_back(entry->path());
    }
    std::sort(files.begin(), files.end());
    for (const fs::path& file : files) found.push_back({file, device});
  }
  if (found.empty()) {
    throw InputError({.source = data.string(),
                      .value = "no sustained kernels",
                      .expected = "<device>/sustained.csv[.gz] in or below it, as foretoken profile cuda writes"});
  }
  return found;
}

std::vector<SustainedRow> read_sustained_rows(const std::filesystem::path& path) {
  CsvReader csv(path);
  const size_t name = csv.column("name"), family = csv.column("family"), shape = csv.column("shape");
  const size_t burst = csv.column("burst_us"), sustained = csv.column("sustained_us"), power = csv.column("power_w");
  const size_t clock = csv.column("sm_clock_mhz"), idle = csv.column("idle_w");
  std::vector<SustainedRow> rows;
  while (csv.next()) {
    SustainedRow row{.name = std::string(csv.cell(name)),
                     .burst = microseconds(csv.number(burst, {0.01, 1e9})),
                     .sustained = microseconds(csv.number(sustained, {0.01, 1e9})),
                     .power = Watts(csv.number(power, {0.1, 100'000})),
                     .idle = Watts(csv.number(idle, {0, 10'000})),
                     .clock = Hertz(csv.number(clock, {1, 100'000}) * mega)};
    const std::vector<std::string_view> families = split_words(csv.cell(family), "+");
    for (const std::string_view call : split_words(csv.cell(shape), ";")) {
      add_call(families, pairs_of(call, csv, shape), csv, shape, row);
    }
    if (row.calls.empty() && row.pause.value() == 0) csv.fail(shape, "the parameters of at least one call");
    if (row.pause >= row.burst) csv.fail(burst, "longer than the pause in it");
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace foretoken
