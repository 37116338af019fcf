#include "report/edge_report.h"

#include <fmt/format.h>

#include "base/csv.h"
#include "base/text.h"
#include "report/table.h"

namespace foretoken {

std::string edge_fit_text(const EdgeFit& fit) {
  Table table({{"kind", Table::Align::left}, {"rows"}, {"MAPE %"}, {"inside 90% interval"}, {"half width %"}});
  for (const auto& [kind, prices] : fit.predictor.kinds) {
    table.add({std::string(edge_kind_name(kind)), fmt::format("{}", prices.rows),
               fmt::format("{:.1f}", prices.cross_validated_mape),
               fmt::format("{:.0f}%", prices.cross_validated_coverage),
               fmt::format("{:.1f}", 100 * prices.half_width)});
  }
  const ErrorSummary all = summarize_errors(fit.left_out);
  return fmt::format(
      "{}, {} {}, {} thread(s)\n{}{} kernels, each predicted without its family of shapes: MAPE {:.2f}%, median "
      "{:.2f}%, {:.0f}% inside\n",
      fit.predictor.device, fit.predictor.runtime, fit.predictor.runtime_version, fit.predictor.threads, table.text(),
      all.n, all.mape, all.median_ape, all.coverage90);
}

Json edge_fit_json(const EdgeFit& fit) {
  Json kinds = Json::array();
  for (const auto& [kind, prices] : fit.predictor.kinds) {
    kinds.push(Json::object({{"kind", edge_kind_name(kind)},
                             {"rows", prices.rows},
                             {"mape", prices.cross_validated_mape},
                             {"coverage90", prices.cross_validated_coverage}}));
  }
  const ErrorSummary all = summarize_errors(fit.left_out);
  return Json::object({{"device", fit.predictor.device},
                       {"runtime", fit.predictor.runtime},
                       {"n", all.n},
                       {"mape", all.mape},
                       {"median_ape", all.median_ape},
                       {"p90_ape", all.p90_ape},
                       {"coverage90", all.coverage90},
                       {"kinds", std::move(kinds)}});
}

std::string scored_edge_header() {
  return "row,kind,params,measured_ms,predicted_ms,low_ms,high_ms,confidence,error_percent\n";
}

std::string scored_edge_row(const ScoredEdge& scored) {
  const Estimate& seconds = scored.predicted;
  return fmt::format("{},{},{},{},{},{},{},{},{}\n", scored.row, csv_cell(scored.name), csv_cell(scored.parameters),
                     number_text(scored.measured * 1e3), number_text(seconds.value * 1e3),
                     number_text(seconds.low * 1e3), number_text(seconds.high * 1e3), confidence_name(seconds.kind),
                     number_text(100 * (seconds.value / scored.measured - 1)));
}

}  // namespace foretoken
