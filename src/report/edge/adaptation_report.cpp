#include "report/edge/adaptation_report.h"

#include <fmt/format.h>

#include "base/counted.h"
#include "base/csv.h"
#include "base/text.h"
#include "report/parts/json_parts.h"
#include "report/parts/table.h"

namespace foretoken {
namespace {

constexpr size_t most_predictions_shown = 20;  // predictions in the text; files and JSON have all

std::string architecture_table(const ArchitectureSpace& space,
                               const std::vector<AdaptationReport::Architecture>& architectures, size_t shown) {
  std::vector<Table::Column> columns;
  for (const std::string_view name : space.columns) columns.push_back({std::string(name), Table::Align::left});
  const bool timed = !architectures.empty() && architectures.front().milliseconds.has_value();
  if (timed) {
    columns.push_back({"latency"});
    columns.push_back({"90% interval"});
  }
  Table table(columns);
  for (size_t a = 0; a < std::min(shown, architectures.size()); ++a) {
    std::vector<std::string> cells = architectures[a].cells;
    if (timed) {
      const Estimate& estimate = *architectures[a].milliseconds;
      cells.push_back(fmt::format("{:.3g} ms", estimate.value));
      cells.push_back(fmt::format("{:.3g} to {:.3g}", estimate.low, estimate.high));
    }
    table.add(std::move(cells));
  }
  return table.text();
}

Json cells_json(const ArchitectureSpace& space, const std::vector<std::string>& cells) {
  Json json = Json::object();
  for (size_t c = 0; c < cells.size(); ++c) json.set(std::string(space.columns[c]), cells[c]);
  return json;
}

Json architectures_json(const ArchitectureSpace& space,
                        const std::vector<AdaptationReport::Architecture>& architectures) {
  Json list = Json::array();
  for (const AdaptationReport::Architecture& one : architectures) {
    list.push(Json::object({{"architecture", cells_json(space, one.cells)},
                            {"milliseconds", one.milliseconds ? to_json(*one.milliseconds) : Json()}}));
  }
  return list;
}

}  // namespace

std::string adaptation_text(const AdaptationReport& report) {
  std::string text = fmt::format("{}: {}\n", report.space->name, counted(report.timings, "timing"));
  for (const AdaptationReport::FailedTiming& failed : report.failed) {
    text += fmt::format("left out as failed: row {}, {} at {} ms\n", failed.row, fmt::join(failed.cells, " "),
                        number_text(failed.milliseconds));
  }
  if (report.own_mape)
    text += fmt::format("error when each timing is predicted from the others: {:.1f}%\n", *report.own_mape);
  if (!report.resembles.empty()) {
    text += "resembles";
    for (const AdaptedDevice::Resemblance& one : report.resembles)
      text += fmt::format(" {} {:.0f}%", one.name, 100 * one.share);
    text += "\n";
  }
  if (!report.predicted.empty()) {
    text += "\n" + architecture_table(*report.space, report.predicted, most_predictions_shown);
    if (report.predicted.size() > most_predictions_shown)
      text += fmt::format("... and {} more: {{out}} FILE.csv or {{json}} has all\n",
                          report.predicted.size() - most_predictions_shown);
  }
  if (!report.measure_next.empty()) {
    text += "\nMeasure these next, the most useful first\n" +
            architecture_table(*report.space, report.measure_next, report.measure_next.size());
  }
  return wrap_lines(text, page_width(), 2);
}

Json adaptation_json(const AdaptationReport& report) {
  Json failed = Json::array();
  for (const AdaptationReport::FailedTiming& one : report.failed) {
    failed.push(Json::object({{"row", one.row},
                              {"architecture", cells_json(*report.space, one.cells)},
                              {"milliseconds", one.milliseconds}}));
  }
  Json resembles = Json::array();
  for (const AdaptedDevice::Resemblance& one : report.resembles)
    resembles.push(Json::object({{"name", one.name}, {"share", one.share}}));
  return Json::object({{"space", report.space->name},
                       {"timings", report.timings},
                       {"own_mape", report.own_mape ? Json(*report.own_mape) : Json()},
                       {"failed_timings", std::move(failed)},
                       {"resembles", std::move(resembles)},
                       {"predicted", architectures_json(*report.space, report.predicted)},
                       {"measure_next", architectures_json(*report.space, report.measure_next)}});
}

std::string adaptation_csv(const AdaptationReport& report) {
  std::string text;
  for (const std::string_view name : report.space->columns) text += std::string(name) + ",";
  text += "predicted_ms,low_ms,high_ms\n";
  for (const AdaptationReport::Architecture& one : report.predicted) {
    for (const std::string& cell : one.cells) text += csv_cell(cell) + ",";
    text += fmt::format("{},{},{}\n", number_text(one.milliseconds->value), number_text(one.milliseconds->low),
                        number_text(one.milliseconds->high));
  }
  return text;
}

}  // namespace foretoken
