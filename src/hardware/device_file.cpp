#include "hardware/device_file.h"

#include <concepts>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/json.h"
#include "base/rounding.h"
#include "base/text.h"
#include "base/units.h"
#include "hardware/fact_reader.h"
#include "hardware/generation.h"
#include "hardware/node_file.h"

namespace foretoken {
namespace {

struct Field {
  std::string_view key;
  FactBounds bounds;
  double units;                   // base units in one of the file's
  bool none_if_left_out = false;  // rather than unknown
};

// The file format: one line per fact. Bounds are wide enough for any real part and narrow enough to catch a slip of
// a thousand in the unit.
template <class AnyDevice, class Visit>
void for_each_fact(AnyDevice& device, Visit&& visit) {
  visit(Field{"processors", {"a whole number", 1, 4096, true}, 1}, device.processors);
  visit(Field{"fp32_lanes_per_processor", {"a whole number", 1, 1024, true}, 1}, device.fp32_lanes_per_processor);
  visit(Field{"boost_clock_mhz", {"MHz", 100, 10000}, mega}, device.boost_clock);
  visit(Field{"held_clock_factor", {"a factor", 0.5, 2}, 1, true}, device.held_clock_factor);
  visit(Field{"asynchronous_multiplies", {}, 1, true}, device.asynchronous_multiplies);
  visit(Field{"exponentials_per_clock", {"a whole number", 1, 1024, true}, 1, true}, device.exponentials_per_clock);
  visit(Field{"last_level_cache_mib", {"MiB", 0.1, 10000}, mebi}, device.last_level_cache);
  visit(Field{"memory_side_cache_mib", {"MiB", 1, 100000}, mebi, true}, device.memory_side_cache);
  visit(Field{"memory_type", {}, 1, true}, device.memory_type);
  visit(Field{"memory_gb", {"GB", 0.5, 10000}, giga}, device.memory);
  visit(Field{"allocatable_memory_mib", {"MiB", 256, 10'000'000}, mebi}, device.allocatable_memory);
  visit(Field{"inline_ecc_memory_mib", {"MiB", 16, 1'000'000}, mebi, true}, device.inline_ecc_memory);
  visit(Field{"memory_bandwidth_gb_per_s", {"GB/s", 10, 100000}, giga}, device.memory_bandwidth);
  visit(Field{"power_limit_w", {"W", 1, 5000}, 1}, device.power_limit);
  visit(Field{"link_bandwidth_gb_per_s", {"GB/s", 5, 10000}, giga}, device.link_bandwidth);
  visit(Field{"host_bandwidth_gb_per_s", {"GB/s", 0.5, 2000}, giga}, device.host_bandwidth);
  visit(Field{"host_time_factor", {"a factor", 0.1, 10}, 1, true}, device.host_time_factor);
  visit(Field{"devices_per_module", {"a whole number", 1, 64, true}, 1, true}, device.devices_per_module);
  visit(Field{"vllm_max_num_batched_tokens", {"tokens", 1, 1e6, true}, 1, true}, device.vllm_step_tokens);
  visit(Field{"vllm_max_num_seqs", {"sequences", 1, 1e6, true}, 1, true}, device.vllm_step_sequences);
  visit(Field{"vllm_max_cudagraph_capture_size", {"sequences", 1, 1e6, true}, 1, true}, device.vllm_graph_limit);
}

constexpr FactBounds peak_bounds{"TFLOP/s", 0.01, 100000};
constexpr std::string_view peaks_key = "dense_peak_tflops", reached_key = "reached_peak_tflops";

// Undoes the rounding of the unit change, so that 989.4 prints as it was written.
double in_file_units(double base_value, double units) {
  return rounded_to_digits(base_value / units, 12);
}

double base_value(int value) {
  return value;
}
double base_value(double value) {
  return value;
}
template <class Unit>
double base_value(Quantity<Unit> value) {
  return value.value();
}

std::string word_of(bool value) {
  return value ? "yes" : "no";
}
std::string word_of(MemoryType type) {
  return std::string(memory_type_name(type));
}

template <class Value>
concept IsWord = std::same_as<Value, bool> || std::same_as<Value, MemoryType>;

template <class Value>
DeviceFact fact_row(std::string_view key, std::string_view unit, const Fact<Value>& fact, double units) {
  DeviceFact row{.key = std::string(key),
                 .unit = std::string(unit),
                 .source = fact.source,
                 .assumed = fact.assumed,
                 .note = fact.note};
  if constexpr (IsWord<Value>) {
    row.word = word_of(fact.value);
  } else {
    row.value = in_file_units(base_value(fact.value), units);
  }
  return row;
}

Fact<MemoryType> memory_type_in(const JsonView& entry) {
  const Fact<size_t> chosen = read_fact_choice(entry, memory_type_names);
  return {.value = static_cast<MemoryType>(chosen.value),
          .source = chosen.source,
          .assumed = chosen.assumed,
          .note = chosen.note};
}

constexpr std::string_view mig_key = "mig";

MigSlices read_mig(const JsonView& view) {
  view.allow_only({"processor_slices", "memory_slices", "profiles", "source"});
  constexpr int64_t most_slices = 64;
  const auto slices = [](const JsonView& entry, int64_t most) {
    return static_cast<int>(entry.integer({.least = 1, .most = most}));
  };
  MigSlices mig{.processors = slices(view.at("processor_slices"), most_slices),
                .memory = slices(view.at("memory_slices"), most_slices),
                .profiles = {},
                .source = read_text(view.at("source"))};
  for (const auto& [name, profile] : view.at("profiles").members()) {
    profile.allow_only({"processors", "memory"});
    mig.profiles.push_back({.name = name,
                            .processors = slices(profile.at("processors"), mig.processors),
                            .memory = slices(profile.at("memory"), mig.memory)});
  }
  if (mig.profiles.empty()) view.at("profiles").fail("at least one profile");
  return mig;
}

LikeDevice read_like(const JsonView& entry, const DeviceFinder& find) {
  const std::string name = read_text(entry);
  if (!find) entry.fail("a GPU whose own generation is known: others are declared to be like this one");
  if (means_a_file(name)) entry.fail("the name of a GPU in the library (foretoken devices)");
  const Device found = [&] {
    try {
      return find(name);
    } catch (const InputError& error) {
      if (!error.problem().line) entry.fail("the name of a GPU in the library", error.problem().suggestion);
      throw;  // found, but its own file is wrong
    }
  }();
  if (kernel_generation(found).key.empty()) {
    entry.fail(fmt::format("a GPU whose kernels are known; foretoken does not know the kernels of {}", found.name));
  }
  return {.name = found.name, .title = found.title, .instruction_set = found.instruction_set};
}

// A GPU of a generation that nobody described would silently be taken for an old one.
void check_generation(const Device& device, const JsonView& file) {
  if (device.kind != DeviceKind::gpu && device.like) file.at("like").fail("no such key: only GPUs are like others");
  if (device.kind != DeviceKind::gpu || device.instruction_set.empty()) return;
  const bool known = find_generation(device.instruction_set) != nullptr;
  if (!known && !device.like) {
    file.at("instruction_set")
        .fail(fmt::format("one whose kernels are known ({}), or a key beside it that names the GPU whose kernels to "
                          "assume: \"like\": \"b200_sxm\"",
                          fmt::join(known_instruction_sets(), ", ")));
  }
  if (known && device.like) {
    file.at("like").fail(fmt::format("no such key: the kernels of {} are known", device.instruction_set));
  }
}

ComputingMemory read_computing_memory(const JsonView& entry) {
  entry.allow_only({"design", "beside", "source"});
  ComputingMemory memory{.design = entry.at("design").value().dump(0), .source = read_text(entry.at("source"))};
  if (const std::optional<JsonView> beside = entry.find("beside")) memory.beside = beside->boolean();
  return memory;
}

Device read_device(const JsonView& file, const DeviceFinder& find) {
  Device device;
  std::vector<std::string> keys = {"name", "title",        "aliases",         "vendor",
                                   "kind", "architecture", "instruction_set", "like",
                                   "note", "accelerator",  "computing_memory"};
  for_each_fact(device, [&](const Field& field, auto&) { keys.emplace_back(field.key); });
  keys.emplace_back(mig_key);
  keys.emplace_back(peaks_key);
  keys.emplace_back(reached_key);
  reject_unknown_keys(file, keys);

  device.name = read_text(file.at("name"));
  device.title = read_text(file.at("title"));
  device.aliases = find_texts(file, "aliases");
  device.vendor = read_text(file.at("vendor"));
  device.kind = static_cast<DeviceKind>(read_choice(file.at("kind"), device_kind_names));
  device.architecture = find_text(file, "architecture");
  device.instruction_set = find_text(file, "instruction_set");
  if (const std::optional<JsonView> like = file.find("like")) device.like = read_like(*like, find);
  check_generation(device, file);
  device.note = find_text(file, "note");
  if (const std::optional<JsonView> design = file.find("accelerator")) device.accelerator = design->value().dump(0);

  if (const std::optional<JsonView> memory = file.find("computing_memory")) {
    device.computing_memory = read_computing_memory(*memory);
  }

  // A design may be as small as it likes; a slip of the unit would show against the rest of it.
  const double smallest = device.accelerator.empty() ? 1 : 1e-6;
  const auto bounds_of = [&](FactBounds bounds) {
    if (!bounds.whole) bounds.least *= smallest;
    return bounds;
  };
  for_each_fact(device, [&]<class Value>(const Field& field, MaybeFact<Value>& fact) {
    if constexpr (IsWord<Value>) {
      const std::optional<JsonView> entry = file.find(field.key);
      if (!entry) return;
      if constexpr (std::same_as<Value, bool>) fact = read_fact_yes_or_no(*entry);
      if constexpr (std::same_as<Value, MemoryType>) fact = memory_type_in(*entry);
    } else {
      fact = find_fact<Value>(file, field.key, bounds_of(field.bounds), field.units);
    }
  });
  if (const std::optional<JsonView> mig = file.find(mig_key)) device.mig = read_mig(*mig);
  const auto read_peaks = [&](std::string_view where, auto& peaks_of, const std::vector<std::string>& names) {
    const std::optional<JsonView> peaks = file.find(where);
    if (!peaks) return;
    reject_unknown_keys(*peaks, names);
    for (size_t i = 0; i < peaks_of.size(); ++i)
      peaks_of[i] = find_fact<FlopsPerSecond>(*peaks, names[i], bounds_of(peak_bounds), tera);
  };
  read_peaks(peaks_key, device.dense_peak, dtype_names());
  read_peaks(reached_key, device.reached_peak, scheme_names());
  for (const SchemeFacts& scheme : all_schemes()) {
    const auto& reached = device.reached_peak[static_cast<size_t>(scheme.scheme)];
    const auto& peak = device.dense_peak[static_cast<size_t>(scheme.math)];
    if (reached && !(peak && reached->value <= peak->value))
      file.at(reached_key).at(scheme.name).fail(fmt::format("at most {}.{}", peaks_key, dtype_name(scheme.math)));
  }
  return device;
}

}  // namespace

Device read_device_file(const std::filesystem::path& path, const DeviceFinder& find) {
  const Json document = read_json_file(path, {.max_bytes = size_t{1} << 20});
  return read_device(JsonView(document, path.string()), find);
}

Device parse_device(std::string_view text, const std::string& source, const DeviceFinder& find) {
  const Json document = parse_json(text, source);
  return read_device(JsonView(document, source), find);
}

std::vector<DeviceFact> device_facts(const Device& device) {
  std::vector<DeviceFact> rows;
  for_each_fact(device, [&]<class Value>(const Field& field, const MaybeFact<Value>& fact) {
    const std::string_view unit = field.bounds.whole ? std::string_view() : field.bounds.unit;
    if (fact) rows.push_back(fact_row(field.key, unit, *fact, field.units));
  });
  if (device.mig) {
    std::vector<std::string> profiles;
    for (const MigProfile& profile : device.mig->profiles) profiles.push_back(profile.name);
    rows.push_back({.key = std::string(mig_key),
                    .unit = {},
                    .word = fmt::format("{}", fmt::join(profiles, " ")),
                    .source = device.mig->source});
  }
  const auto add_peak = [&](std::string_view where, std::string_view name, DType type, const auto& peak) {
    const bool counts_integers = type == DType::int8 || type == DType::int4;
    if (peak) {
      rows.push_back(
          fact_row(fmt::format("{}.{}", where, name), counts_integers ? "TOP/s" : peak_bounds.unit, *peak, tera));
    }
  };
  for (size_t i = 0; i < device.dense_peak.size(); ++i)
    add_peak(peaks_key, dtype_name(static_cast<DType>(i)), static_cast<DType>(i), device.dense_peak[i]);
  for (const SchemeFacts& scheme : all_schemes())
    add_peak(reached_key, scheme.name, scheme.math, device.reached_peak[static_cast<size_t>(scheme.scheme)]);
  return rows;
}

std::string device_file_text(const Device& device) {
  Json file = Json::object({{"name", device.name}, {"title", device.title}});
  if (!device.aliases.empty()) {
    Json aliases = Json::array();
    for (const std::string& alias : device.aliases) aliases.push(alias);
    file.set("aliases", std::move(aliases));
  }
  file.set("vendor", device.vendor);
  file.set("kind", device_kind_name(device.kind));
  const auto set_text = [&](const char* key, const std::string& text) {
    if (!text.empty()) file.set(key, text);
  };
  set_text("architecture", device.architecture);
  set_text("instruction_set", device.instruction_set);
  if (device.like) file.set("like", device.like->name);
  set_text("note", device.note);
  Json peaks = Json::object(), reached = Json::object();
  const std::string peak_start = std::string(peaks_key) + ".", reached_start = std::string(reached_key) + ".";
  for (const DeviceFact& row : device_facts(device)) {
    if (row.key == mig_key) continue;
    const bool is_yes_or_no = row.word == word_of(true) || row.word == word_of(false);
    Json fact = Json::object({{"value", is_yes_or_no       ? Json(row.word == word_of(true))
                                        : row.word.empty() ? Json(row.value)
                                                           : Json(row.word)},
                              {"source", row.source}});
    if (row.assumed) fact.set("assumed", true);
    if (!row.note.empty()) fact.set("note", row.note);
    if (row.key.starts_with(peak_start)) {
      peaks.set(row.key.substr(peak_start.size()), std::move(fact));
    } else if (row.key.starts_with(reached_start)) {
      reached.set(row.key.substr(reached_start.size()), std::move(fact));
    } else {
      file.set(row.key, std::move(fact));
    }
  }
  if (device.mig) {
    Json profiles = Json::object();
    for (const MigProfile& profile : device.mig->profiles) {
      profiles.set(profile.name, Json::object({{"processors", profile.processors}, {"memory", profile.memory}}));
    }
    file.set(std::string(mig_key), Json::object({{"processor_slices", device.mig->processors},
                                                 {"memory_slices", device.mig->memory},
                                                 {"profiles", std::move(profiles)},
                                                 {"source", device.mig->source}}));
  }
  if (const std::optional<ComputingMemory>& memory = device.computing_memory) {
    file.set("computing_memory", Json::object({{"design", parse_json(memory->design, device.name)},
                                               {"beside", memory->beside},
                                               {"source", memory->source}}));
  }
  file.set(std::string(peaks_key), std::move(peaks));
  if (!reached.members().empty()) file.set(std::string(reached_key), std::move(reached));
  return file.dump() + "\n";
}

std::vector<std::string> unknown_device_facts(const Device& device) {
  std::vector<std::string> keys;
  for_each_fact(device, [&](const Field& field, const auto& fact) {
    if (!fact && !field.none_if_left_out) keys.emplace_back(field.key);
  });
  return keys;
}

}  // namespace foretoken
