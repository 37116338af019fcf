#include "accelerator/pim/device.h"

#include "base/error.h"
#include "base/json.h"
#include "base/portable_math.h"
#include "hardware/fact_reader.h"

namespace foretoken {
namespace {

constexpr JsonLimits pim_device_limits{.max_bytes = size_t{1} << 20};
constexpr Range<double> milliseconds_allowed{0, 1e6};
constexpr Range<double> percent_allowed{0, 1000};

std::vector<PimTransferLaw::Rate> pim_rates_in(const JsonView& list) {
  std::vector<PimTransferLaw::Rate> rates;
  if (list.items().empty()) list.fail("a rate for at least one number of DPUs");
  for (const JsonView& entry : list.items()) {
    entry.allow_only({"dpus", "gb_per_s"});
    const double least = rates.empty() ? 1 : rates.back().dpus + 1;
    rates.push_back({.dpus = entry.at("dpus").number({least, 1e6}),
                     .rate = BytesPerSecond(entry.at("gb_per_s").number({1e-6, 1e6}) * giga)});
  }
  return rates;
}

PimTransferLaw pim_transfer_law_in(const JsonView& entry) {
  entry.allow_only({"call_ms", "per_dpu_ms", "rates", "error_percent", "source"});
  return {.call = milliseconds(entry.at("call_ms").number(milliseconds_allowed)),
          .per_dpu = milliseconds(entry.at("per_dpu_ms").number(milliseconds_allowed)),
          .rates = pim_rates_in(entry.at("rates")),
          .relative_error = entry.at("error_percent").number(percent_allowed) / 100,
          .source = read_text(entry.at("source"))};
}

PimMeasured pim_measured_in(const JsonView& entry) {
  entry.allow_only({"elements_per_dpu", "dpus"});
  const auto pair = [&](const char* key) {
    auto sides = entry.at(key).items();
    if (sides.size() != 2) entry.at(key).fail("[least, most]");
    return sides;
  };
  const auto elements = pair("elements_per_dpu"), dpus = pair("dpus");
  PimMeasured measured{.least_elements = elements[0].number({0, 1e15}), .least_dpus = dpus[0].integer({1, 1'000'000})};
  measured.most_elements = elements[1].number({measured.least_elements, 1e15});
  measured.most_dpus = dpus[1].integer({measured.least_dpus, 1'000'000});
  return measured;
}

PimProgram pim_program_in(const JsonView& entry) {
  entry.allow_only({"instructions_per_element", "setup_ms", "error_percent", "source", "assumed", "measured"});
  const auto assumed = entry.find("assumed"), measured = entry.find("measured");
  if ((assumed && assumed->boolean()) == measured.has_value()) {
    entry.fail("either \"assumed\": true, or \"measured\" with the runs that the program was fitted to");
  }
  return {.instructions_per_element = entry.at("instructions_per_element").number({1e-3, 1e9}),
          .setup = milliseconds(entry.at("setup_ms").number(milliseconds_allowed)),
          .relative_error = entry.at("error_percent").number(percent_allowed) / 100,
          .source = read_text(entry.at("source")),
          .measured = measured ? std::optional(pim_measured_in(*measured)) : std::nullopt};
}

PimDevice pim_device_in(const JsonView& file) {
  file.allow_only({"name", "title", "clock_mhz", "most_tasklets", "cycles_per_tasklet", "memory_mib",
                   "read_setup_cycles", "write_setup_cycles", "cycles_per_byte", "most_dpus", "host_cache_mib",
                   "transfers", "programs"});
  constexpr FactBounds setup{"cycles", 0, 1e6};
  PimDevice device{
      .name = read_text(file.at("name")),
      .title = read_text(file.at("title")),
      .clock = read_fact_as<Hertz>(file.at("clock_mhz"), {"MHz", 1, 100'000}, mega),
      .most_tasklets = read_fact_as<int64_t>(file.at("most_tasklets"), {"threads", 1, 65536, true}),
      .cycles_per_tasklet = read_fact_as<int64_t>(file.at("cycles_per_tasklet"), {"cycles", 1, 1000, true}),
      .memory = read_fact_as<Bytes>(file.at("memory_mib"), {"MiB", 0.01, 1e6}, mebi),
      .read_setup_cycles = read_fact(file.at("read_setup_cycles"), setup),
      .write_setup_cycles = read_fact(file.at("write_setup_cycles"), setup),
      .cycles_per_byte = read_fact(file.at("cycles_per_byte"), {"cycles per byte", 1e-6, 1000}),
      .most_dpus = read_fact_as<int64_t>(file.at("most_dpus"), {"DPUs", 1, 1e6, true}),
      .host_cache = read_fact_as<Bytes>(file.at("host_cache_mib"), {"MiB", 0, 1e6}, mebi)};
  const JsonView transfers = file.at("transfers");
  const std::vector<std::string> known(pim_transfer_kind_names.begin(), pim_transfer_kind_names.end());
  reject_unknown_keys(transfers, known);
  for (size_t kind = 0; kind < known.size(); ++kind) {
    device.transfers[kind] = pim_transfer_law_in(transfers.at(known[kind]));
  }
  for (const auto& [name, entry] : file.at("programs").members()) device.programs[name] = pim_program_in(entry);
  return device;
}

}  // namespace

BytesPerSecond PimTransferLaw::rate(double dpus) const {
  ensure(!rates.empty(), "a law of transfers has rates");
  if (dpus <= rates.front().dpus) return rates.front().rate;
  for (size_t i = 1; i < rates.size(); ++i) {
    const Rate& below = rates[i - 1];
    const Rate& above = rates[i];
    if (dpus > above.dpus) continue;
    const double share = portable_log(dpus / below.dpus) / portable_log(above.dpus / below.dpus);
    return below.rate * portable_pow(above.rate / below.rate, share);
  }
  return rates.back().rate;
}

Seconds PimTransferLaw::seconds(double dpus, Bytes bytes, double calls) const {
  return calls * (call + per_dpu * dpus) + bytes / rate(dpus);
}

PimDevice read_pim_device(const std::filesystem::path& path) {
  const Json document = read_json_file(path, pim_device_limits);
  return pim_device_in(JsonView(document, path.string()));
}

PimDevice parse_pim_device(std::string_view text, const std::string& source) {
  const Json document = parse_json(text, source, pim_device_limits);
  return pim_device_in(JsonView(document, source));
}

}  // namespace foretoken
