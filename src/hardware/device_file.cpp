#include "hardware/device_file.h"

#include <fmt/format.h>

#include "base/json.h"
#include "base/text.h"
#include "base/units.h"
#include "hardware/fact_reader.h"

namespace foretoken {
namespace {

struct Field {
  std::string_view key;
  FactBounds bounds;
  double units;                   // base units in one of the file's
  bool none_if_left_out = false;  // rather than unknown
};

// The file format: one line per number. Bounds are wide enough for any real part and narrow enough to catch a slip of
// a thousand in the unit.
template <class AnyDevice, class Visit>
void for_each_fact(AnyDevice& device, Visit&& visit) {
  visit(Field{"processors", {"a whole number", 1, 4096, true}, 1}, device.processors);
  visit(Field{"fp32_lanes_per_processor", {"a whole number", 1, 1024, true}, 1}, device.fp32_lanes_per_processor);
  visit(Field{"boost_clock_mhz", {"MHz", 100, 10000}, mega}, device.boost_clock);
  visit(Field{"last_level_cache_mib", {"MiB", 0.1, 10000}, mebi}, device.last_level_cache);
  visit(Field{"memory_gb", {"GB", 0.5, 10000}, giga}, device.memory);
  visit(Field{"allocatable_memory_mib", {"MiB", 256, 10'000'000}, mebi}, device.allocatable_memory);
  visit(Field{"inline_ecc_memory_mib", {"MiB", 16, 1'000'000}, mebi, true}, device.inline_ecc_memory);
  visit(Field{"memory_bandwidth_gb_per_s", {"GB/s", 10, 100000}, giga}, device.memory_bandwidth);
  visit(Field{"power_limit_w", {"W", 1, 5000}, 1}, device.power_limit);
  visit(Field{"link_bandwidth_gb_per_s", {"GB/s", 5, 10000}, giga}, device.link_bandwidth);
  visit(Field{"host_bandwidth_gb_per_s", {"GB/s", 0.5, 2000}, giga}, device.host_bandwidth);
}

constexpr FactBounds peak_bounds{"TFLOP/s", 0.01, 100000};
constexpr std::string_view peaks_key = "dense_peak_tflops";

// Undoes the rounding of the unit change, so that 989.4 prints as it was written.
double in_file_units(double base_value, double units) {
  return parse_number(fmt::format("{:.12g}", base_value / units)).value_or(base_value / units);
}

double base_value(int value) {
  return value;
}
template <class Unit>
double base_value(Quantity<Unit> value) {
  return value.value();
}

template <class Value>
DeviceFact fact_row(std::string_view key, std::string_view unit, const Fact<Value>& fact, double units) {
  return {.key = std::string(key),
          .unit = std::string(unit),
          .value = in_file_units(base_value(fact.value), units),
          .source = fact.source,
          .assumed = fact.assumed,
          .note = fact.note};
}

Device read_device(const JsonView& file) {
  Device device;
  std::vector<std::string> keys = {"name",         "title",           "aliases", "vendor",     "kind",
                                   "architecture", "instruction_set", "note",    "accelerator"};
  for_each_fact(device, [&](const Field& field, auto&) { keys.emplace_back(field.key); });
  keys.emplace_back(peaks_key);
  reject_unknown_keys(file, keys);

  device.name = read_text(file.at("name"));
  device.title = read_text(file.at("title"));
  device.aliases = find_texts(file, "aliases");
  device.vendor = read_text(file.at("vendor"));
  device.kind = static_cast<DeviceKind>(read_choice(file.at("kind"), device_kind_names));
  device.architecture = find_text(file, "architecture");
  device.instruction_set = find_text(file, "instruction_set");
  device.note = find_text(file, "note");
  if (const std::optional<JsonView> design = file.find("accelerator")) device.accelerator = design->value().dump(0);

  // A design may be as small as it likes; a slip of the unit would show against the rest of it.
  const double smallest = device.accelerator.empty() ? 1 : 1e-6;
  const auto bounds_of = [&](FactBounds bounds) {
    if (!bounds.whole) bounds.least *= smallest;
    return bounds;
  };
  for_each_fact(device, [&]<class Value>(const Field& field, MaybeFact<Value>& fact) {
    fact = find_fact<Value>(file, field.key, bounds_of(field.bounds), field.units);
  });
  if (const std::optional<JsonView> peaks = file.find(peaks_key)) {
    reject_unknown_keys(*peaks, dtype_names());
    for (size_t type = 0; type < device.dense_peak.size(); ++type) {
      const std::string_view key = dtype_name(static_cast<DType>(type));
      device.dense_peak[type] = find_fact<FlopsPerSecond>(*peaks, key, bounds_of(peak_bounds), tera);
    }
  }
  return device;
}

}  // namespace

Device read_device_file(const std::filesystem::path& path) {
  const Json document = read_json_file(path, {.max_bytes = size_t{1} << 20});
  return read_device(JsonView(document, path.string()));
}

Device parse_device(std::string_view text, const std::string& source) {
  const Json document = parse_json(text, source);
  return read_device(JsonView(document, source));
}

std::vector<DeviceFact> device_facts(const Device& device) {
  std::vector<DeviceFact> rows;
  for_each_fact(device, [&]<class Value>(const Field& field, const MaybeFact<Value>& fact) {
    const std::string_view unit = field.bounds.whole ? std::string_view() : field.bounds.unit;
    if (fact) rows.push_back(fact_row(field.key, unit, *fact, field.units));
  });
  for (size_t type = 0; type < device.dense_peak.size(); ++type) {
    if (!device.dense_peak[type]) continue;
    const auto dtype = static_cast<DType>(type);
    const bool counts_integers = dtype == DType::int8 || dtype == DType::int4;
    rows.push_back(fact_row(fmt::format("{}.{}", peaks_key, dtype_name(dtype)),
                            counts_integers ? "TOP/s" : peak_bounds.unit, *device.dense_peak[type], tera));
  }
  return rows;
}

std::vector<std::string> unknown_device_facts(const Device& device) {
  std::vector<std::string> keys;
  for_each_fact(device, [&](const Field& field, const auto& fact) {
    if (!fact && !field.none_if_left_out) keys.emplace_back(field.key);
  });
  return keys;
}

}  // namespace foretoken
