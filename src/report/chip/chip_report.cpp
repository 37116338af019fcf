#include "report/chip/chip_report.h"

#include <fmt/format.h>

#include "base/counted.h"
#include "base/text.h"
#include "report/parts/table.h"

namespace foretoken {
namespace {

std::string megabyte_text(Bytes bytes) {
  const double size = bytes.value() / mega;
  return size < 1000 ? fmt::format("{:.3g}", size) : fmt::format("{:.0f}", size);
}

std::string milliwatt_text(Watts power) {
  return fmt::format("{:.0f}", power.value() * kilo);
}

double percent_of(double part, double whole) {
  return 100 * part / whole;
}

std::string mapping_text(const RowStationaryMapping& mapping) {
  return fmt::format("m {}, n {}, e {}, p {}, q {}, r {}, t {}", mapping.buffered_filters, mapping.images,
                     mapping.strip_rows, mapping.filters_per_pe, mapping.channels_per_pe, mapping.sets_over_channels,
                     mapping.sets_over_filters);
}

std::string bound_sentence(const RowStationaryResult& result) {
  const RowStationaryCycles& cycles = result.cycles;
  switch (result.bound) {
    case RowStationaryBound::mac:
      return fmt::format("multiplies in {:.0f}% of the cycles", percent_of(cycles.mac, cycles.total()));
    case RowStationaryBound::array_feeding:
      return fmt::format("waits for inputs and partial sums in {:.0f}% of the cycles, fills and drains in {:.0f}%",
                         percent_of(cycles.feed, cycles.total()), percent_of(cycles.ramp, cycles.total()));
    case RowStationaryBound::dram:
      return fmt::format("waits for DRAM in {:.0f}% of the time",
                         percent_of((result.total - result.processing).value(), result.total.value()));
  }
  return "";
}

struct RowStationaryTotals {
  double macs = 0;
  int64_t left_out = 0;
  Seconds processing, total;
  Bytes buffer, dram;
  Joules energy;
};

RowStationaryTotals totals_of(const RowStationaryReport& report) {
  RowStationaryTotals totals;
  for (const RowStationaryReport::Row& row : report.rows) {
    const auto count = static_cast<double>(row.count);
    if (!row.result) {
      totals.left_out += row.count;
      continue;
    }
    totals.macs += row.layer.macs() * count;
    totals.processing += row.result->processing * count;
    totals.total += row.result->total * count;
    totals.buffer += row.result->buffer.total() * count;
    totals.dram += row.result->dram.total() * count;
    totals.energy += row.result->energy.total() * count;
  }
  return totals;
}

std::string_view nvdla_bound(const NvdlaTime& time) {
  return time.mac >= time.dram ? "mac" : "dram";
}

std::string nvdla_sentence(const NvdlaReport::Row& row) {
  if (row.time.mac >= row.time.dram) {
    const double share = percent_of(row.layer.convolution.macs(), row.time.counted_macs);
    return fmt::format("multipliers, {:.{}f}% busy", share, share < 1 ? 1 : 0);
  }
  if (row.time.input_reads > 1) return fmt::format("DRAM, inputs read {:.0f} times", row.time.input_reads);
  return "DRAM, everything read once";
}

Seconds nvdla_total(const NvdlaReport& report) {
  std::vector<NvdlaLayer> layers;
  for (const NvdlaReport::Row& row : report.rows) layers.push_back(row.layer);
  return nvdla_network_time(report.configuration, layers);
}

}  // namespace

std::string row_stationary_text(const RowStationaryReport& report) {
  Table table({{.title = "layer", .align = Table::Align::left},
               {.title = "times"},
               {.title = "processing"},
               {.title = "total"},
               {.title = "PEs"},
               {.title = "buffer MB"},
               {.title = "DRAM MB"},
               {.title = "mW"},
               {.title = "bound by", .align = Table::Align::left}});
  std::string sentences;
  for (const RowStationaryReport::Row& row : report.rows) {
    if (!row.result) {
      sentences += fmt::format("{} cannot run: {}\n", row.layer.name, row.why_not);
      continue;
    }
    const RowStationaryResult& result = *row.result;
    table.add({row.layer.name, fmt::format("{}", row.count), duration_text(result.processing.value()),
               duration_text(result.total.value()), fmt::format("{}", result.active_pes),
               megabyte_text(result.buffer.total()), megabyte_text(result.dram.total()), milliwatt_text(result.power()),
               std::string(row_stationary_bound_name(result.bound))});
    sentences += fmt::format("{} ({}): {}\n", row.layer.name, mapping_text(result.mapping), bound_sentence(result));
  }
  const RowStationaryTotals totals = totals_of(report);
  std::string text = fmt::format("{}\n\n", report.chip.title) + table.text();
  text += fmt::format("\nTotal: {} of processing, {} in all, {:.3g} GMAC/s; buffer {} MB, DRAM {} MB, {} mW\n",
                      duration_text(totals.processing.value()), duration_text(totals.total.value()),
                      totals.macs / totals.total.value() / giga, megabyte_text(totals.buffer),
                      megabyte_text(totals.dram), milliwatt_text(totals.energy / totals.total));
  if (totals.left_out > 0) text += fmt::format("Not included: {}\n", counted(totals.left_out, "layer"));
  return wrap_lines(text + "\n" + sentences, page_width(), 2);
}

Json row_stationary_json(const RowStationaryReport& report) {
  Json rows = Json::array();
  for (const RowStationaryReport::Row& row : report.rows) {
    Json json = Json::object({{"layer", row.layer.name},
                              {"count", row.count},
                              {"why_not", row.result ? Json() : Json(row.why_not)},
                              {"macs", row.layer.macs()},
                              {"input_zero_share", row.layer.ifmap_zero_share}});
    const RowStationaryResult result = row.result.value_or(RowStationaryResult());
    const auto set = [&](const char* key, Json value) { json.set(key, row.result ? std::move(value) : Json()); };
    const auto traffic = [](const RowStationaryTraffic& own) {
      return Json::object({{"inputs_bytes", own.ifmap.value()},
                           {"filters_bytes", own.filter.value()},
                           {"outputs_bytes", own.psum.value()}});
    };
    set("processing_seconds", result.processing.value());
    set("total_seconds", result.total.value());
    set("active_pes", result.active_pes);
    set("passes", result.passes);
    set("mac_cycles", result.cycles.mac);
    set("feed_cycles", result.cycles.feed);
    set("ramp_cycles", result.cycles.ramp);
    set("buffer_bytes", result.buffer.total().value());
    set("dram_bytes", result.dram.total().value());
    set("energy_joules", result.energy.total().value());
    set("power_watts", row.result ? result.power().value() : 0);
    set("bound", row_stationary_bound_name(result.bound));
    set("why", row.result ? bound_sentence(result) : "");
    set("buffer", traffic(result.buffer));
    set("dram", traffic(result.dram));
    const RowStationaryMapping& mapping = result.mapping;
    set("mapping", Json::object({{"m", mapping.buffered_filters},
                                 {"n", mapping.images},
                                 {"e", mapping.strip_rows},
                                 {"columns", mapping.slice_columns},
                                 {"p", mapping.filters_per_pe},
                                 {"q", mapping.channels_per_pe},
                                 {"r", mapping.sets_over_channels},
                                 {"t", mapping.sets_over_filters}}));
    rows.push(std::move(json));
  }
  const RowStationaryTotals totals = totals_of(report);
  return Json::object({{"chip", report.chip.name},
                       {"layers", std::move(rows)},
                       {"total", Json::object({{"macs", totals.macs},
                                               {"processing_seconds", totals.processing.value()},
                                               {"total_seconds", totals.total.value()},
                                               {"buffer_bytes", totals.buffer.value()},
                                               {"dram_bytes", totals.dram.value()},
                                               {"energy_joules", totals.energy.value()},
                                               {"power_watts", (totals.energy / totals.total).value()},
                                               {"layers_left_out", totals.left_out}})}});
}

std::string nvdla_text(const NvdlaReport& report) {
  Table table({{.title = "layer", .align = Table::Align::left},
               {.title = "times"},
               {.title = "multiply"},
               {.title = "DRAM"},
               {.title = "time"},
               {.title = "DRAM MB"},
               {.title = "bound by", .align = Table::Align::left}});
  for (const NvdlaReport::Row& row : report.rows) {
    table.add({row.layer.convolution.name, fmt::format("{}", row.layer.repeats), duration_text(row.time.mac.value()),
               duration_text(row.time.dram.value()), duration_text(row.time.total().value()),
               megabyte_text(row.time.traffic), nvdla_sentence(row)});
  }
  const NvdlaConfiguration& own = report.configuration;
  const Seconds total = nvdla_total(report);
  return fmt::format("NVDLA, {} int8 multipliers at {:.0f} MHz, buffer {:.0f} KiB, DRAM {:.3g} GB/s\n\n", own.macs,
                     own.clock.value() / mega, own.convolution_buffer.value() / kibi, own.dram.value() / giga) +
         table.text() +
         fmt::format("\nTotal: {}, {:.4g} per second\n", duration_text(total.value()), 1 / total.value()) +
         "busy: channels and filters are processed in groups of 16\nread again: once for every further quarter of the "
         "buffer that the weights fill\n";
}

Json nvdla_json(const NvdlaReport& report) {
  Json rows = Json::array();
  for (const NvdlaReport::Row& row : report.rows) {
    rows.push(Json::object({{"layer", row.layer.convolution.name},
                            {"count", row.layer.repeats},
                            {"macs", row.layer.convolution.macs()},
                            {"counted_macs", row.time.counted_macs},
                            {"mac_seconds", row.time.mac.value()},
                            {"dram_seconds", row.time.dram.value()},
                            {"total_seconds", row.time.total().value()},
                            {"dram_bytes", row.time.traffic.value()},
                            {"input_reads", row.time.input_reads},
                            {"bound", nvdla_bound(row.time)},
                            {"why", nvdla_sentence(row)}}));
  }
  const NvdlaConfiguration& own = report.configuration;
  const Seconds total = nvdla_total(report);
  return Json::object(
      {{"chip", "nvdla"},
       {"macs_per_cycle", own.macs},
       {"buffer_bytes", own.convolution_buffer.value()},
       {"dram_bytes_per_second", own.dram.value()},
       {"clock_hz", own.clock.value()},
       {"layers", std::move(rows)},
       {"total", Json::object({{"total_seconds", total.value()}, {"runs_per_second", 1 / total.value()}})}});
}

}  // namespace foretoken
