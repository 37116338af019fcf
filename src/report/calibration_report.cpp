#include "report/calibration_report.h"

#include <fmt/format.h>

#include "report/table.h"

namespace foretoken {

std::string calibration_summary_text(const CalibrationSummary& summary) {
  Table table({{"form", Table::Align::left},
               {"device", Table::Align::left},
               {"rows"},
               {"mape %, generation withheld"},
               {"mape %, fifth held out"}});
  const auto percent = [](double mape) { return mape > 0 ? fmt::format("{:.1f}", mape) : std::string("-"); };
  for (const auto& entry : summary.entries) {
    table.add({entry.form, entry.device, fmt::format("{}", entry.rows), percent(entry.withheld_mape),
               percent(entry.held_out_mape)});
  }
  return table.text();
}

Json calibration_summary_json(const CalibrationSummary& summary) {
  Json entries = Json::array();
  const auto number = [](double mape) { return mape > 0 ? Json(mape) : Json(); };
  for (const auto& entry : summary.entries) {
    entries.push(Json::object({{"form", entry.form},
                               {"device", entry.device},
                               {"rows", entry.rows},
                               {"withheld_mape", number(entry.withheld_mape)},
                               {"held_out_mape", number(entry.held_out_mape)}}));
  }
  return Json::object({{"files", summary.files}, {"entries", entries}});
}

}  // namespace foretoken
