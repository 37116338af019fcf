#include "accelerator/systolic/scalesim_files.h"

#include <fmt/format.h>

#include <map>
#include <optional>

#include "base/error.h"
#include "base/file.h"
#include "base/range.h"
#include "base/text.h"

namespace foretoken {
namespace {

constexpr size_t scalesim_file_bytes = size_t{4} << 20;
constexpr size_t most_scalesim_layers = 100'000;
constexpr Range<int64_t> scalesim_size{1, int64_t{1} << 31};
constexpr Range<int64_t> scalesim_sram_kib{1, int64_t{1} << 20};

std::string_view without_blanks(std::string_view text) {
  constexpr std::string_view blanks = " \t\r\n";
  const size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

// `section.key` in lower case -> value, as Python's configparser reads it.
class IniFile {
 public:
  IniFile(std::string_view text, const std::string& source) : source_(source) {
    std::string section;
    int line = 0;
    for (const std::string_view raw : split(text, "\n")) {
      ++line;
      const std::string_view content = without_blanks(raw);
      if (content.empty() || content.front() == '#' || content.front() == ';') continue;
      if (content.front() == '[') {
        if (content.back() != ']' || content.size() < 3) fail(line, content, "a section such as [general]");
        section = lower_case(content.substr(1, content.size() - 2));
        continue;
      }
      const size_t separator = content.find_first_of("=:");
      if (separator == std::string_view::npos || separator == 0) fail(line, content, "`key = value` or `key : value`");
      if (section.empty()) fail(line, content, "a section before the first key");
      const std::string key = section + "." + lower_case(without_blanks(content.substr(0, separator)));
      const bool is_new =
          entries_
              .emplace(key, Entry{.value = std::string(without_blanks(content.substr(separator + 1))), .line = line})
              .second;
      if (!is_new) fail(line, content, "a key that was not set before in its section");
    }
  }

  struct Entry {
    std::string value;
    int line = 0;
  };

  const Entry* find(const std::string& key) const {
    const auto found = entries_.find(key);
    return found == entries_.end() ? nullptr : &found->second;
  }
  const Entry& at(const std::string& key) const {
    if (const Entry* entry = find(key)) return *entry;
    std::vector<std::string> keys;
    for (const auto& [name, entry] : entries_) keys.push_back(name);
    throw InputError(
        {.source = source_, .path = key, .expected = "this key", .suggestion = nearest_name(key, keys).value_or("")});
  }
  int64_t integer(const std::string& key, Range<int64_t> allowed) const {
    const Entry& entry = at(key);
    const auto value = parse_integer(entry.value);
    if (!value || !allowed.holds(*value)) fail(entry.line, entry.value, range_text(allowed), key);
    return *value;
  }
  [[noreturn]] void fail(int line, std::string_view value, std::string expected, const std::string& path = "") const {
    throw InputError({.source = source_,
                      .line = line,
                      .path = path,
                      .value = printable(value),
                      .expected = std::move(expected),
                      .suggestion = ""});
  }

 private:
  std::string source_;
  std::map<std::string, Entry> entries_;
};

std::optional<DramWordsPerCycle> scalesim_bandwidth(const IniFile& file) {
  const IniFile::Entry& mode = file.at("run_presets.interfacebandwidth");
  if (equal_ignoring_case(mode.value, "calc")) return std::nullopt;
  if (!equal_ignoring_case(mode.value, "user")) {
    file.fail(mode.line, mode.value, "USER or CALC", "run_presets.InterfaceBandwidth");
  }
  const IniFile::Entry& given = file.at("architecture_presets.bandwidth");
  const auto words = parse_integer(without_blanks(split(given.value, ",").front()));
  if (!words || !scalesim_size.holds(*words)) {
    file.fail(given.line, given.value, "whole words per cycle, the first of which counts",
              "architecture_presets.Bandwidth");
  }
  DramWordsPerCycle dram{.inputs = *words, .weights = *words, .outputs = *words};
  if (file.find("layout.ifmapsrambankbandwidth") != nullptr) {
    dram.inputs = file.integer("layout.ifmapsrambankbandwidth", scalesim_size);
  }
  if (file.find("layout.filtersrambankbandwidth") != nullptr) {
    dram.weights = file.integer("layout.filtersrambankbandwidth", scalesim_size);
  }
  return dram;
}

// One line of a topology: cells without blanks, without the empty one after a closing comma.
std::vector<std::string_view> topology_cells(std::string_view line) {
  std::vector<std::string_view> cells = split(line, ",");
  for (std::string_view& cell : cells) cell = without_blanks(cell);
  while (!cells.empty() && cells.back().empty()) cells.pop_back();
  return cells;
}

struct TopologyLine {
  const std::string& source;
  int number = 0;
  std::vector<std::string_view> cells;

  int64_t size(size_t cell) const {
    const auto value = parse_integer(cells[cell]);
    if (!value || !scalesim_size.holds(*value))
      fail(cells[cell], range_text(scalesim_size), fmt::format("column {}", cell + 1));
    return *value;
  }
  [[noreturn]] void fail(std::string_view value, std::string expected, std::string path = "") const {
    throw InputError({.source = source,
                      .line = number,
                      .path = std::move(path),
                      .value = printable(value),
                      .expected = std::move(expected),
                      .suggestion = ""});
  }
};

bool names_a_gemm(const std::vector<std::string_view>& header) {
  return header.size() >= 2 && equal_ignoring_case(header[1], "m");
}

SystolicLayer topology_layer(const TopologyLine& line, bool is_gemm) {
  if (is_gemm) {
    if (line.cells.size() < 4) line.fail(fmt::format("{} cells", line.cells.size()), "a name, M, N and K");
    return as_layer({.m = line.size(1), .n = line.size(2), .k = line.size(3)});
  }
  if (line.cells.size() < 8) {
    line.fail(fmt::format("{} cells", line.cells.size()),
              "a name, input height and width, filter height and width, channels, filters and stride");
  }
  SystolicLayer layer{.input_height = line.size(1),
                      .input_width = line.size(2),
                      .filter_height = line.size(3),
                      .filter_width = line.size(4),
                      .channels = line.size(5),
                      .filters = line.size(6),
                      .stride_height = line.size(7)};
  // A ninth cell may be the other stride or, in v3, a sparsity such as 2:4.
  const bool has_second_stride = line.cells.size() > 8 && line.cells[8].find(':') == std::string_view::npos;
  layer.stride_width = has_second_stride ? line.size(8) : layer.stride_height;
  return layer;
}

// N:M in the last cell; 1:1 is dense.
void refuse_sparse_layer(const TopologyLine& line) {
  const std::vector<std::string_view> ratio = split(line.cells.back(), ":");
  if (ratio.size() == 2 && ratio[0] != ratio[1]) {
    line.fail(line.cells.back(), "a dense layer (1:1); N:M sparsity is part of the mapper, not of the systolic model");
  }
}

}  // namespace

ScaleSimConfig parse_scalesim_config(std::string_view text, const std::string& source) {
  const IniFile file(text, source);
  const std::string presets = "architecture_presets.";
  const IniFile::Entry& dataflow = file.at(presets + "dataflow");
  const auto found = find_dataflow(lower_case(dataflow.value));
  if (!found) file.fail(dataflow.line, dataflow.value, "os, ws or is", presets + "Dataflow");
  if (const IniFile::Entry* sparse = file.find("sparsity.sparsitysupport");
      sparse != nullptr && equal_ignoring_case(sparse->value, "true")) {
    file.fail(sparse->line, sparse->value, "false; sparsity is part of the mapper, not of the systolic model",
              "sparsity.SparsitySupport");
  }
  ScaleSimConfig config;
  if (const IniFile::Entry* name = file.find("general.run_name")) config.run_name = name->value;
  config.array = {.rows = file.integer(presets + "arrayheight", scalesim_size),
                  .columns = file.integer(presets + "arraywidth", scalesim_size),
                  .dataflow = *found,
                  .input_sram_bytes = 1024 * file.integer(presets + "ifmapsramszkb", scalesim_sram_kib),
                  .weight_sram_bytes = 1024 * file.integer(presets + "filtersramszkb", scalesim_sram_kib),
                  .output_sram_bytes = 1024 * file.integer(presets + "ofmapsramszkb", scalesim_sram_kib),
                  .dram = scalesim_bandwidth(file)};
  return config;
}

ScaleSimConfig read_scalesim_config(const std::filesystem::path& path) {
  return parse_scalesim_config(read_file(path, scalesim_file_bytes), path.string());
}

std::vector<NamedSystolicLayer> parse_scalesim_topology(std::string_view text, const std::string& source) {
  std::vector<NamedSystolicLayer> layers;
  std::optional<bool> is_gemm;
  TopologyLine line{.source = source, .number = 0, .cells = {}};
  for (const std::string_view raw : split(text, "\n")) {
    ++line.number;
    line.cells = topology_cells(raw);
    if (line.cells.empty()) continue;
    if (!is_gemm) {
      is_gemm = names_a_gemm(line.cells);
      continue;
    }
    SystolicLayer layer = topology_layer(line, *is_gemm);
    refuse_sparse_layer(line);
    const std::string name(line.cells.front());
    const bool depthwise = !*is_gemm && name.find("DP") != std::string::npos;
    const int64_t copies = depthwise ? layer.channels : 1;
    if (depthwise) layer.channels = 1;
    if (layers.size() + static_cast<size_t>(copies) > most_scalesim_layers) {
      line.fail(name, fmt::format("at most {} layers", most_scalesim_layers));
    }
    try {
      check_layer(layer);
    } catch (const InputError& error) {
      line.fail(error.problem().value, error.problem().expected, error.problem().path);
    }
    for (int64_t channel = 0; channel < copies; ++channel) {
      layers.push_back({.name = depthwise ? fmt::format("{}Channel_{}", name, channel) : name, .layer = layer});
    }
  }
  if (layers.empty()) line.fail("", "a header and at least one layer");
  return layers;
}

std::vector<NamedSystolicLayer> read_scalesim_topology(const std::filesystem::path& path) {
  return parse_scalesim_topology(read_file(path, scalesim_file_bytes), path.string());
}

}  // namespace foretoken
