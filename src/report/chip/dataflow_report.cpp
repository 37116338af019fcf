#include "report/chip/dataflow_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/counted.h"
#include "report/chip/accelerator_report.h"
#include "report/parts/table.h"

namespace foretoken {
namespace {

constexpr double picojoules_per_nanojoule = 1e3;

std::string energy_text(double nanojoules) {
  return picojoule_text(nanojoules * picojoules_per_nanojoule);
}

std::string limit_or_none(int64_t limit, std::string_view unit) {
  return limit == unlimited_hardware ? "no limit" : fmt::format("{} {}", limit, unit);
}

std::string hardware_text(const DataflowReport& report) {
  const DataflowHardware& hardware = report.hardware;
  return fmt::format("{} elements; L1 {}, L2 {}; network {}, memory {} ({} reading)\n", hardware.num_pes,
                     limit_or_none(hardware.l1_bytes, "B"), limit_or_none(hardware.l2_bytes, "B"),
                     limit_or_none(hardware.noc_bandwidth, "a cycle"),
                     limit_or_none(hardware.offchip_bandwidth, "a cycle"),
                     report.reading == DataflowReading::maestro ? "MAESTRO's" : "physical");
}

// A need of bytes, marked where there is less.
std::string need_text(int64_t bytes, int64_t there) {
  return fmt::format("{}{}", bytes, bytes > there ? "!" : "");
}

std::vector<std::string> cost_cells(const TriedDataflow& tried, const DataflowHardware& hardware) {
  if (!tried.has_cost()) return {"-", "-", "-", "-", "-", "-"};
  const DataflowCost& cost = tried.cost;
  return {fmt::format("{}", cost.runtime_cycles),       fmt::format("{:.1f}", cost.average_pes),
          need_text(cost.l1_bytes, hardware.l1_bytes),  need_text(cost.l2_bytes, hardware.l2_bytes),
          fmt::format("{}", cost.noc_bandwidth_needed), energy_text(dataflow_energy_nanojoules(cost))};
}

std::vector<Table::Column> cost_columns(std::vector<Table::Column> before) {
  for (const char* title : {"cycles", "elements", "L1 B", "L2 B", "network/cycle", "energy"}) {
    before.push_back({.title = title});
  }
  return before;
}

void add_row(Table& table, std::vector<std::string> cells, const TriedDataflow& tried,
             const DataflowHardware& hardware) {
  for (std::string& cell : cost_cells(tried, hardware)) cells.push_back(std::move(cell));
  table.add(std::move(cells));
}

// Over all layers that a dataflow can run.
struct DataflowTotals {
  double cycles = 0, nanojoules = 0, macs = 0;
  int64_t left_out = 0;
};

void add_layer(DataflowTotals& totals, const TriedDataflow& tried, int64_t count) {
  const auto times = static_cast<double>(count);
  if (!tried.has_cost()) {
    totals.left_out += count;
    return;
  }
  totals.cycles += times * static_cast<double>(tried.cost.runtime_cycles);
  totals.nanojoules += times * dataflow_energy_nanojoules(tried.cost);
  totals.macs += times * static_cast<double>(tried.cost.macs);
}

DataflowTotals totals_of_taken(const DataflowReport& report) {
  DataflowTotals totals;
  for (const DataflowReport::Row& row : report.rows) add_layer(totals, row.taken(), row.count);
  return totals;
}

std::string ranking_text(const DataflowReport::Row& row, const DataflowHardware& hardware) {
  Table table(cost_columns({{.title = "dataflow", .align = Table::Align::left}}));
  std::string reasons;
  for (const TriedDataflow& tried : row.tried) {
    add_row(table, {tried.name}, tried, hardware);
    if (!tried.why_not.empty()) reasons += fmt::format("{} does not fit: {}\n", tried.name, tried.why_not);
  }
  return fmt::format("\n{}, best first:\n", row.layer.name) + table.text() + reasons;
}

// What a network would take if every layer ran under the same dataflow.
std::string one_for_all_text(const DataflowReport& report) {
  std::map<std::string, DataflowTotals> totals;
  std::map<std::string, int64_t> not_fitting;
  for (const DataflowReport::Row& row : report.rows) {
    for (const TriedDataflow& tried : row.tried) {
      add_layer(totals[tried.name], tried, row.count);
      not_fitting[tried.name] += tried.why_not.empty() ? 0 : row.count;
    }
  }
  Table table({{.title = "one dataflow for all", .align = Table::Align::left},
               {.title = "cycles"},
               {.title = "energy"},
               {.title = "layers that do not fit"}});
  for (const auto& [name, own] : totals) {
    const bool runs_all = own.left_out == 0;
    table.add({name, runs_all ? fmt::format("{:.0f}", own.cycles) : "-", runs_all ? energy_text(own.nanojoules) : "-",
               fmt::format("{}", not_fitting[name])});
  }
  return "\n" + table.text();
}

// Without a cost the same keys are null.
Json cost_json(const TriedDataflow& tried) {
  const DataflowCost& cost = tried.cost;
  const auto known = [&](Json value) { return tried.has_cost() ? value : Json(); };
  const auto accesses = [](const TensorAccesses& tensor) {
    return Json::object({{"l1_reads", tensor.l1_read},
                         {"l1_writes", tensor.l1_write},
                         {"l2_reads", tensor.l2_read},
                         {"l2_writes", tensor.l2_write}});
  };
  return Json::object({{"dataflow", tried.name},
                       {"why_not", tried.why_not.empty() ? Json() : Json(tried.why_not)},
                       {"cycles", known(cost.runtime_cycles)},
                       {"macs", known(cost.macs)},
                       {"macs_per_cycle", tried.has_cost() ? Json(cost.macs_per_cycle()) : Json()},
                       {"average_pes", known(cost.average_pes)},
                       {"l1_bytes", known(cost.l1_bytes)},
                       {"l2_bytes", known(cost.l2_bytes)},
                       {"noc_bandwidth_needed", known(cost.noc_bandwidth_needed)},
                       {"offchip_bandwidth_needed", known(cost.offchip_bandwidth_needed)},
                       {"energy_pj", known(dataflow_energy_nanojoules(cost) * picojoules_per_nanojoule)},
                       {"input", known(accesses(cost.input))},
                       {"filter", known(accesses(cost.filter))},
                       {"output", known(accesses(cost.output))}});
}

Json limit_json(int64_t limit) {
  return limit == unlimited_hardware ? Json() : Json(limit);
}

}  // namespace

std::string dataflow_text(const DataflowReport& report) {
  Table table(cost_columns({{.title = "layer", .align = Table::Align::left},
                            {.title = "times"},
                            {.title = "type", .align = Table::Align::left},
                            {.title = "dataflow", .align = Table::Align::left}}));
  std::string reasons;
  bool several = false;
  for (const DataflowReport::Row& row : report.rows) {
    add_row(
        table,
        {row.layer.name, fmt::format("{}", row.count), std::string(layer_type_name(row.layer.type)), row.taken().name},
        row.taken(), report.hardware);
    if (!row.taken().why_not.empty()) {
      reasons += fmt::format("{} does not fit: {}\n", row.layer.name, row.taken().why_not);
    }
    several = several || row.tried.size() > 1;
  }
  const DataflowTotals totals = totals_of_taken(report);
  std::string text = hardware_text(report) + "\n" + table.text() + reasons;
  text += fmt::format("\nTotal: {:.0f} cycles, {:.1f} multiplications per cycle, {}\n", totals.cycles,
                      totals.macs / std::max(1.0, totals.cycles), energy_text(totals.nanojoules));
  if (totals.left_out > 0) text += fmt::format("Not included: {}\n", counted(totals.left_out, "layer"));
  if (several) {
    text += report.rows.size() == 1 ? ranking_text(report.rows.front(), report.hardware) : one_for_all_text(report);
  }
  return wrap_lines(text, page_width(), 2);
}

Json dataflow_json(const DataflowReport& report) {
  Json rows = Json::array();
  for (const DataflowReport::Row& row : report.rows) {
    Json json =
        Json::object({{"layer", row.layer.name}, {"count", row.count}, {"type", layer_type_name(row.layer.type)}});
    const Json cost = cost_json(row.taken());
    for (const auto& [key, value] : cost.members()) json.set(key, value);
    if (row.tried.size() > 1) {
      Json ranking = Json::array();
      for (const TriedDataflow& tried : row.tried) ranking.push(cost_json(tried));
      json.set("ranking", std::move(ranking));
    }
    rows.push(std::move(json));
  }
  const DataflowHardware& hardware = report.hardware;
  const DataflowTotals totals = totals_of_taken(report);
  return Json::object({{"reading", report.reading == DataflowReading::maestro ? "maestro" : "physical"},
                       {"hardware", Json::object({{"pes", hardware.num_pes},
                                                  {"l1_bytes", limit_json(hardware.l1_bytes)},
                                                  {"l2_bytes", limit_json(hardware.l2_bytes)},
                                                  {"noc_bandwidth", limit_json(hardware.noc_bandwidth)},
                                                  {"noc_latency_cycles", hardware.noc_latency_cycles},
                                                  {"offchip_bandwidth", limit_json(hardware.offchip_bandwidth)}})},
                       {"layers", std::move(rows)},
                       {"total", Json::object({{"cycles", totals.cycles},
                                               {"macs", totals.macs},
                                               {"energy_pj", totals.nanojoules * picojoules_per_nanojoule},
                                               {"layers_left_out", totals.left_out}})}});
}

}  // namespace foretoken
