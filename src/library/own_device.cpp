#include "library/own_device.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <system_error>

#include <fmt/format.h>

#include "base/csv.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/portable_math.h"
#include "base/text.h"
#include "hardware/device_file.h"
#include "hardware/generation.h"
#include "kernel/fit/power_fit.h"
#include "kernel/sustained_rows.h"

namespace foretoken {
namespace fs = std::filesystem;
namespace {

constexpr const char* meta_name = "meta.json";

// What the script learned from the driver; 0 and empty: it could not tell.
struct DriverFacts {
  std::string title;            // NVIDIA H200
  std::string vendor;           // NVIDIA
  std::string instruction_set;  // sm_90
  std::string date, torch;
  int processors = 0;
  double cache_bytes = 0, memory_bytes = 0, power_watts = 0, clock_mhz = 0;
  double memory_clock_mhz = 0, bus_bits = 0;
};

DriverFacts read_driver_facts(const fs::path& sweep) {
  const fs::path path = sweep / meta_name;
  if (std::error_code ignored; !fs::exists(path, ignored)) {
    throw InputError({.source = sweep.string(),
                      .value = fmt::format("no {}", meta_name),
                      .expected = "a folder written by `foretoken profile` or tools/profile_cuda.py"});
  }
  const Json document = read_json_file(path);
  const JsonView view(document, path.string());
  const auto number = [&](const char* key, double most) {
    const std::optional<JsonView> found = view.find(key);
    return found ? found->number({0, most}) : 0;
  };
  DriverFacts facts{.title = view.at("device").string(), .vendor = {}, .instruction_set = {}, .date = {}, .torch = {}};
  if (const auto architecture = view.find("architecture")) {  // gfx942:sramecc+:xnack-
    facts.vendor = "AMD";
    const std::string name = architecture->string();
    facts.instruction_set = name.substr(0, name.find(':'));
  } else {
    facts.vendor = "NVIDIA";
    facts.instruction_set = cuda_instruction_set(view.at("compute_capability").string());
  }
  facts.date = view.find("date") ? view.at("date").string() : std::string();
  if (const auto versions = view.find("versions")) {
    if (const auto torch = versions->find("torch")) facts.torch = torch->string();
  }
  facts.processors = static_cast<int>(view.at("processors").integer({.least = 1, .most = 4096}));
  facts.cache_bytes = number("l2_bytes", 1e12);
  facts.memory_bytes = number("memory_bytes", 1e15);
  facts.power_watts = number("power_limit_w", 1e5);
  facts.clock_mhz = number("max_sm_clock_mhz", 1e5);
  facts.memory_clock_mhz = number("max_memory_clock_mhz", 1e6);
  facts.bus_bits = number("memory_bus_bits", 1e5);
  return facts;
}

// The device that the driver's name means; nothing where the library has none.
std::optional<Device> device_called(const HardwareCatalogue& hardware, const std::string& title) {
  try {
    return hardware.device(title);
  } catch (const InputError&) {
    return std::nullopt;
  }
}

// The shipped one of the same instruction set whose processors and clock are nearest; rather one whose host is not part
// of the product.
std::optional<Device> nearest_of_generation(const HardwareCatalogue& hardware, const DriverFacts& facts) {
  std::optional<Device> nearest;
  std::pair<bool, double> least;
  for (const std::string& name : hardware.device_names()) {
    const std::vector<std::string>& own = hardware.own_device_names();
    if (std::find(own.begin(), own.end(), name) != own.end()) continue;
    Device other = hardware.find_device(name);
    if (other.instruction_set != facts.instruction_set || !other.processors || !other.boost_clock) continue;
    const double clock = facts.clock_mhz > 0 ? facts.clock_mhz * mega : other.boost_clock->value.value();
    const double distance =
        std::abs(portable_log(facts.processors * clock / (other.processors->value * other.boost_clock->value.value())));
    const std::pair rank(other.host_time_factor.has_value(), distance);
    if (nearest && rank >= least) continue;
    least = rank;
    nearest = std::move(other);
  }
  return nearest;
}

// Bytes read and written over time of the fastest copy; 0 = none was timed.
double fastest_copy(const fs::path& sweep) {
  const fs::path path = sweep / "copy.csv";
  if (std::error_code ignored; !fs::exists(path, ignored)) return 0;
  CsvReader rows(path);
  const size_t bytes = rows.column("bytes"), latency = rows.column("latency_us");
  double fastest = 0;
  constexpr double large = 64e6;  // beyond caches
  while (rows.next()) {
    const double size = rows.number(bytes), microseconds_each = rows.number(latency);
    if (size >= large && microseconds_each > 0) fastest = std::max(fastest, 2e6 * size / microseconds_each);
  }
  return fastest;
}

template <class Value>
void lend(MaybeFact<Value>& fact, const std::string& lender) {
  if (!fact) return;
  fact->assumed = true;
  fact->source = fmt::format("taken from {}: {}", lender, fact->source);
}

// What its sheet says, without what belongs to that product alone.
Device borrowed_sheet(const Device& lender) {
  Device device = lender;
  device.aliases.clear();
  device.note.clear();
  device.mig.reset();
  device.link_bandwidth.reset();
  device.inline_ecc_memory.reset();
  device.held_clock_factor.reset();
  device.devices_per_module.reset();
  device.host_time_factor.reset();
  lend(device.fp32_lanes_per_processor, lender.name);
  lend(device.asynchronous_multiplies, lender.name);
  lend(device.exponentials_per_clock, lender.name);
  lend(device.memory_type, lender.name);
  lend(device.memory_bandwidth, lender.name);
  lend(device.host_bandwidth, lender.name);
  lend(device.power_limit, lender.name);
  lend(device.last_level_cache, lender.name);
  lend(device.vllm_step_tokens, lender.name);
  lend(device.vllm_step_sequences, lender.name);
  lend(device.vllm_graph_limit, lender.name);
  return device;
}

void scale_peaks(Device& device, const Device& lender) {
  if (!device.processors || !device.boost_clock || !lender.processors || !lender.boost_clock) return;
  const double factor = device.processors->value * device.boost_clock->value.value() /
                        (lender.processors->value * lender.boost_clock->value.value());
  const auto scale = [&](MaybeFact<FlopsPerSecond>& peak) {
    if (!peak) return;
    peak->value = peak->value * factor;
    peak->assumed = true;
    peak->source = fmt::format("computed: the peak of {} times processors and clock", lender.name);
    peak->note.clear();
  };
  std::for_each(device.dense_peak.begin(), device.dense_peak.end(), scale);
  std::for_each(device.reached_peak.begin(), device.reached_peak.end(), scale);
}

void check_own_name(const HardwareCatalogue& shipped, const std::string& name) {
  const bool plain = !name.empty() && name.size() <= 64 && std::all_of(name.begin(), name.end(), [](char c) {
    return ('a' <= c && c <= 'z') || ('0' <= c && c <= '9') || c == '_';
  });
  if (!plain) {
    throw InputError({.field = "install",
                      .value = printable(name),
                      .expected = "a device name of lower-case letters, digits and _"});
  }
  if (const std::optional<Device> known = device_called(shipped, name)) {
    throw InputError({.field = "install",
                      .value = name,
                      .expected = fmt::format("a name that is not yet in the library; {} is {}", name, known->title),
                      .suggestion = "my_" + name});
  }
}

void copy_rows(const fs::path& from, const fs::path& to) {
  fs::create_directories(to);
  for (const fs::directory_entry& entry : fs::directory_iterator(from)) {
    const std::string name = entry.path().filename().string();
    const bool is_row_file = name.ends_with(".csv") || name.ends_with(".csv.gz") || name == meta_name;
    if (entry.is_regular_file() && is_row_file) fs::copy_file(entry.path(), to / name);
  }
}

// False where the sweep has no sustained rows, or too few.
bool fit_own_power(const Library& staged, const Device& device, const fs::path& rows, const DriverFacts& facts,
                   const std::string& source, const fs::path& out) {
  std::vector<SustainedRow> sustained;
  try {
    for (const SustainedFile& file : find_sustained_files(rows)) {
      for (SustainedRow& row : read_sustained_rows(file.path)) sustained.push_back(std::move(row));
    }
    const KernelPredictor predictor = staged.predictor(device);
    PowerFit fit = fit_power(device, sustained, [&](const SustainedCall& call) {
      return predictor.estimate(call.shape, call.variant).seconds.value;
    });
    fit.calibration.source = source;
    fit.calibration.fitted_on = facts.date;
    fs::create_directories(out.parent_path());
    write_file(out, power_calibration_json({&fit.calibration, 1}));
    return true;
  } catch (const InputError&) {
    return false;
  }
}

// The old one gives way only when the new one is there.
void put_in_place(const fs::path& from, const fs::path& to) {
  if (!fs::exists(from)) return;
  fs::create_directories(to.parent_path());
  fs::remove_all(to);
  fs::rename(from, to);
}

}  // namespace

Device described_by_sweep(const HardwareCatalogue& hardware, const OwnDeviceRequest& request, std::string& sheet_of) {
  const DriverFacts facts = read_driver_facts(request.sweep);
  std::optional<Device> same = request.like.empty() ? device_called(hardware, facts.title) : std::nullopt;
  if (same && same->instruction_set != facts.instruction_set) same.reset();
  const std::optional<Device> lender = same                   ? same
                                       : request.like.empty() ? nearest_of_generation(hardware, facts)
                                                              : hardware.device(request.like);
  if (!lender) {
    throw InputError(
        {.field = "like",
         .value = "not given",
         .expected = fmt::format(
             "the library device whose kernels and peaks to assume, because foretoken knows no device of {} ({})",
             facts.instruction_set, facts.title)});
  }
  sheet_of = lender->name;
  Device device = same ? *same : borrowed_sheet(*lender);
  device.name = request.name;
  device.title = same ? same->title : facts.title;
  device.aliases.clear();
  device.vendor = facts.vendor;
  device.instruction_set = facts.instruction_set;
  device.like.reset();
  if (find_generation(facts.instruction_set) == nullptr) {
    device.like = LikeDevice{.name = lender->name, .title = lender->title, .instruction_set = lender->instruction_set};
  }
  device.note = fmt::format("Your own device: measured here{}{}; numbers that the driver does not report come from {}.",
                            facts.date.empty() ? "" : " on " + facts.date,
                            facts.torch.empty() ? "" : " with PyTorch " + facts.torch, lender->name);

  const std::string asked = "reported by the driver, as read by tools/profile_cuda.py";
  device.processors = Fact<int>{.value = facts.processors, .source = asked};
  if (facts.clock_mhz > 0) {
    device.boost_clock = Fact<Hertz>{.value = Hertz(facts.clock_mhz * mega), .source = asked};
    device.held_clock_factor.reset();
  }
  // AMD's driver names the L2, behind which lies the last level (Infinity Cache).
  if (facts.cache_bytes > 0 && facts.vendor != "AMD") {
    device.last_level_cache = Fact<Bytes>{.value = Bytes(facts.cache_bytes), .source = asked};
  }
  if (facts.power_watts > 0) device.power_limit = Fact<Watts>{.value = Watts(facts.power_watts), .source = asked};
  if (facts.memory_bytes > 0) {
    device.allocatable_memory = Fact<Bytes>{.value = Bytes(facts.memory_bytes), .source = asked};
    // The label on the box: what programs get, in whole GiB.
    if (!same) {
      device.memory = Fact<Bytes>{.value = Bytes(std::round(facts.memory_bytes / gibi) * giga),
                                  .source = "computed: what programs can allocate, in GiB",
                                  .assumed = true};
    }
  }
  if (same) return device;
  // Drivers name the clock of some memories at half its rate (HBM3 on AMD): no copy is faster than the memory.
  const double of_clock = 2 * facts.memory_clock_mhz * mega * facts.bus_bits / 8, copied = fastest_copy(request.sweep);
  if (of_clock > 0 && of_clock >= copied) {
    device.memory_bandwidth =
        Fact<BytesPerSecond>{.value = BytesPerSecond(of_clock),
                             .source = "computed: 2 x memory clock x bus width, as reported by the driver"};
  } else if (copied > 0) {
    device.memory_bandwidth = Fact<BytesPerSecond>{
        .value = BytesPerSecond(copied), .source = "the fastest copy of the sweep", .assumed = true};
  }
  scale_peaks(device, *lender);
  return device;
}

OwnDevice install_own_device(const Library& library, const OwnDeviceRequest& request) {
  if (library.own().empty()) {
    throw InputError({.source = "FORETOKEN_HOME",
                      .value = "no folder for your own devices",
                      .expected = "one of FORETOKEN_HOME, XDG_DATA_HOME or HOME set"});
  }
  const Library shipped = library.with_own({});
  check_own_name(shipped.hardware(), request.name);
  OwnDevice result;
  result.device = described_by_sweep(shipped.hardware(), request, result.sheet_of);
  const DriverFacts facts = read_driver_facts(request.sweep);

  const fs::path staging = library.own() / (".new_" + request.name);
  const fs::path device_file = fs::path("hardware") / "devices" / (request.name + ".json");
  const fs::path sweeps = fs::path("kernels") / "calibrations" / request.name;
  const fs::path power = fs::path("kernels") / "power" / (request.name + ".json");
  const fs::path rows = fs::path("measured") / request.name;
  try {
    fs::remove_all(staging);
    copy_rows(request.sweep, staging / rows);
    fs::create_directories(staging / device_file.parent_path());
    write_file(staging / device_file, device_file_text(result.device));
    const Library staged = shipped.with_own(staging);
    const std::string source = fmt::format("own sweep of {}", facts.title);
    FitOptions options{.source = source, .date = facts.date, .progress = request.progress};
    result.fit = fit_sweeps({.data = staging / rows}, staged.hardware(), options, shipped.calibration_folder(),
                            staging / "kernels" / "calibrations");
    if (request.progress) request.progress(fmt::format("power of {}", request.name));
    result.has_power =
        fit_own_power(staged, staged.hardware().device(request.name), staging / rows, facts, source, staging / power);
    result.replaced = fs::exists(library.own() / device_file);
    fs::remove(library.own() / power);
    fs::remove_all(library.own() / sweeps);
    for (const fs::path& part : {rows, sweeps, power, device_file}) put_in_place(staging / part, library.own() / part);
    fs::remove_all(staging);
  } catch (const fs::filesystem_error& error) {
    throw InputError({.source = library.own().string(),
                      .value = error.code().message(),
                      .expected = "a writable folder; set FORETOKEN_HOME to use another one"});
  } catch (...) {
    std::error_code ignored;
    fs::remove_all(staging, ignored);
    throw;
  }
  result.file = library.own() / device_file;
  return result;
}

}  // namespace foretoken
