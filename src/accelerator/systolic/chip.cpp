#include "accelerator/systolic/chip.h"

#include "base/json.h"
#include "hardware/fact_reader.h"

namespace foretoken {
namespace {

constexpr JsonLimits systolic_chip_limits{.max_bytes = size_t{1} << 20};

VectorUnit vector_unit_in(const JsonView& entry) {
  entry.allow_only(
      {"operations_per_cycle", "word_bytes", "launch_cycles", "softmax_operations", "layernorm_operations"});
  constexpr FactBounds operations{"operations per element", 0, 10'000};
  return {.operations_per_cycle = read_fact(entry.at("operations_per_cycle"), {"operations", 1, 1e6}),
          .word_bytes = read_fact(entry.at("word_bytes"), {"bytes", 0.5, 8}),
          .launch_cycles = read_fact(entry.at("launch_cycles"), {"cycles", 0, 1e7}),
          .softmax_operations = read_fact(entry.at("softmax_operations"), operations),
          .layernorm_operations = read_fact(entry.at("layernorm_operations"), operations)};
}

SystolicChip systolic_chip_in(const JsonView& file) {
  file.allow_only({"name", "title", "array_rows", "array_columns", "arrays", "clock_mhz", "memory_bandwidth_gb_per_s",
                   "on_chip_memory_mib", "matrix_word_bytes", "non_matrix_share", "vector"});
  constexpr FactBounds side{"cells", 1, 65536, true};
  SystolicChip chip{
      .name = read_text(file.at("name")),
      .title = read_text(file.at("title")),
      .array_rows = read_fact_as<int64_t>(file.at("array_rows"), side),
      .array_columns = read_fact_as<int64_t>(file.at("array_columns"), side),
      .arrays = read_fact_as<int64_t>(file.at("arrays"), {"arrays", 1, 65536, true}),
      .clock = read_fact_as<Hertz>(file.at("clock_mhz"), {"MHz", 1, 100'000}, 1e6),
      .memory_bandwidth =
          read_fact_as<BytesPerSecond>(file.at("memory_bandwidth_gb_per_s"), {"GB/s", 0.01, 100'000}, 1e9),
      .on_chip_memory = read_fact_as<Bytes>(file.at("on_chip_memory_mib"), {"MiB", 0.01, 100'000}, 1 << 20),
      .matrix_word_bytes = read_fact(file.at("matrix_word_bytes"), {"bytes", 0.5, 8}),
      .non_matrix_share = find_fact<double>(file, "non_matrix_share", {"share of cycles", 0, 0.9})};
  if (const auto vector = file.find("vector")) chip.vector = vector_unit_in(*vector);
  return chip;
}

}  // namespace

FlopsPerSecond SystolicChip::peak() const {
  const auto cells = static_cast<double>(array_rows.value * array_columns.value * arrays.value);
  return FlopsPerSecond(2 * cells * clock.value.value());
}

SystolicChip read_systolic_chip(const std::filesystem::path& path) {
  const Json document = read_json_file(path, systolic_chip_limits);
  return systolic_chip_in(JsonView(document, path.string()));
}

SystolicChip parse_systolic_chip(std::string_view text, const std::string& source) {
  const Json document = parse_json(text, source, systolic_chip_limits);
  return systolic_chip_in(JsonView(document, source));
}

}  // namespace foretoken
