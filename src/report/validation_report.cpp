#include "report/validation_report.h"

#include <map>

#include <fmt/format.h>

#include "base/csv.h"
#include "base/text.h"
#include "report/table.h"

namespace foretoken {
namespace {

std::vector<std::string> cells(const std::string& name, const ErrorSummary& errors, double seconds_per_1000_rows) {
  return {name,
          fmt::format("{}", errors.n),
          fmt::format("{:.1f}", errors.mape),
          fmt::format("{:.1f}", errors.median_ape),
          fmt::format("{:.1f}", errors.p90_ape),
          fmt::format("{:+.1f}", errors.bias),
          fmt::format("{:.3f}", errors.spearman),
          fmt::format("{:.1f}", errors.coverage90),
          fmt::format("{:.2g}", seconds_per_1000_rows)};
}

Json errors_json(const ErrorSummary& errors, double seconds_per_1000_rows) {
  return Json::object({{"n", errors.n},
                       {"mape", errors.mape},
                       {"median_ape", errors.median_ape},
                       {"p90_ape", errors.p90_ape},
                       {"bias", errors.bias},
                       {"spearman", errors.spearman},
                       {"coverage90", errors.coverage90},
                       {"seconds_per_1000_rows", seconds_per_1000_rows}});
}

}  // namespace

std::string validation_text(const KernelValidation& validation) {
  Table table({{"group", Table::Align::left},
               {"n"},
               {"mape %"},
               {"median %"},
               {"p90 %"},
               {"bias %"},
               {"spearman"},
               {"cover90"},
               {"s/1000"}});
  for (const ValidationGroup& group : validation.groups)
    table.add(cells(group.name, group.errors, group.seconds_per_1000_rows));
  table.add_rule();
  table.add(cells("overall", validation.overall, validation.seconds_per_1000_rows));
  std::string text = table.text();

  std::map<std::string, size_t> reasons;
  for (const SkippedRows& skipped : validation.skipped) ++reasons[skipped.why];
  if (!reasons.empty())
    text += fmt::format("\nskipped {} (each with its row under --json):\n", validation.skipped.size());
  for (const auto& [why, count] : reasons) text += wrap_lines(fmt::format("  {} x {}", count, why), 100, 4);
  for (const std::string& note : validation.notes) text += wrap_lines(fmt::format("note: {}", note), 100, 2);
  return text;
}

Json validation_json(const KernelValidation& validation, const std::string& layer) {
  Json groups = Json::array();
  for (const ValidationGroup& group : validation.groups) {
    Json entry = Json::object({{"name", group.name}});
    const Json errors = errors_json(group.errors, group.seconds_per_1000_rows);
    for (const auto& [key, value] : errors.members()) entry.set(key, value);
    groups.push(std::move(entry));
  }
  Json skipped = Json::array();
  for (const SkippedRows& row : validation.skipped) {
    skipped.push(Json::object({{"file", row.file}, {"row", row.row > 0 ? Json(row.row) : Json()}, {"why", row.why}}));
  }
  Json notes = Json::array();
  for (const std::string& note : validation.notes) notes.push(note);
  return Json::object({{"layer", layer},
                       {"overall", errors_json(validation.overall, validation.seconds_per_1000_rows)},
                       {"groups", groups},
                       {"skipped", skipped},
                       {"notes", notes}});
}

std::string scored_kernel_header() {
  return "file,row,device,family,group,measured_us,predicted_us,low_us,high_us,confidence,error_percent\n";
}

std::string scored_kernel_row(const ScoredKernel& scored) {
  const Estimate& seconds = scored.predicted.seconds;
  const double predicted_us = seconds.value * 1e6;
  return fmt::format("{},{},{},{},{},{},{},{},{},{},{}\n", csv_cell(scored.file), scored.row, csv_cell(scored.device),
                     scored.family, csv_cell(scored.group), number_text(scored.measured_us), number_text(predicted_us),
                     number_text(seconds.low * 1e6), number_text(seconds.high * 1e6), confidence_name(seconds.kind),
                     number_text(100 * (predicted_us / scored.measured_us - 1)));
}

}  // namespace foretoken
