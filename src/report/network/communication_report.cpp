#include "report/network/communication_report.h"

#include <fmt/format.h>

#include "base/csv.h"
#include "base/text.h"
#include "report/parts/table.h"

namespace foretoken {
namespace {

std::string mape_and_cover(const ErrorSummary& errors) {
  return errors.n > 0 ? fmt::format("{:.1f} ({:.0f})", errors.mape, errors.coverage90) : std::string("-");
}

Json errors_json(const ErrorSummary& errors) {
  if (errors.n == 0) return {};
  return Json::object({{"n", errors.n},
                       {"mape", errors.mape},
                       {"median_ape", errors.median_ape},
                       {"p90_ape", errors.p90_ape},
                       {"bias", errors.bias},
                       {"coverage90", errors.coverage90}});
}

constexpr std::string_view error_columns = "measured_us,predicted_us,low_us,high_us,confidence,error_percent";

std::string error_cells(double measured_seconds, const Estimate& predicted) {
  return fmt::format("{},{},{},{},{},{}", number_text(measured_seconds * 1e6), number_text(predicted.value * 1e6),
                     number_text(predicted.low * 1e6), number_text(predicted.high * 1e6),
                     confidence_name(predicted.kind), number_text(100 * (predicted.value / measured_seconds - 1)));
}

}  // namespace

std::string communication_fit_text(const CommunicationFitSummary& summary) {
  Table table({{"law", Table::Align::left},
               {"system", Table::Align::left},
               {"rows"},
               {"sizes"},
               {"sibling"},
               {"generation"},
               {"with a latency"}});
  for (const auto& entry : summary.entries) {
    table.add({entry.law, entry.system, fmt::format("{}", entry.rows), mape_and_cover(entry.held_out),
               mape_and_cover(entry.sibling), mape_and_cover(entry.withheld), mape_and_cover(entry.told)});
  }
  return table.text() +
         "mape % (share inside 90% intervals made without the rows).\n"
         "sizes: own sweep, every fourth size held out in turn; sibling: the system held out and predicted\n"
         "with a sweep of its generation; generation: the whole generation held out; with a latency: the\n"
         "same, but one small all-reduce is given and not scored. The last two leave out PCIe with more than\n"
         "two devices.\n";
}

Json communication_fit_json(const CommunicationFitSummary& summary) {
  Json entries = Json::array();
  for (const auto& entry : summary.entries) {
    entries.push(Json::object({{"law", entry.law},
                               {"system", entry.system},
                               {"rows", entry.rows},
                               {"held_out", errors_json(entry.held_out)},
                               {"sibling", errors_json(entry.sibling)},
                               {"withheld", errors_json(entry.withheld)},
                               {"told", errors_json(entry.told)}}));
  }
  return Json::object({{"entries", entries}});
}

std::string scored_communication_header() {
  return fmt::format("file,row,system,group,operation,variant,ranks,size,tier,{}\n", error_columns);
}

std::string scored_communication_row(const ScoredCommunication& scored) {
  const CommunicationRow& row = *scored.row;
  return fmt::format("{},{},{},{},{},{},{},{},{},{}\n", csv_cell(row.file), row.row, csv_cell(row.system),
                     csv_cell(row.group), csv_cell(row.call.operation), csv_cell(row.call.variant), row.call.ranks,
                     number_text(swept_size(row.call)), tier_name(scored.predicted.tier),
                     error_cells(row.seconds, scored.predicted.seconds));
}

std::string scored_between_nodes_header() {
  return fmt::format("row,source,cluster,nodes,gpus_per_node,collective,bytes,role,algorithm,protocol,{}\n",
                     error_columns);
}

std::string scored_between_nodes_row(const ScoredBetweenNodes& scored) {
  const BetweenNodesRow& row = *scored.row;
  const AlgorithmAndProtocol& chosen = scored.predicted->choice.chosen;
  return fmt::format("{},{},{},{},{},{},{},{},{},{},{}\n", row.row, csv_cell(row.source), csv_cell(row.cluster),
                     row.nodes, row.gpus_per_node, csv_cell(row.collective), number_text(row.bytes), csv_cell(row.role),
                     chosen.algorithm->name, protocol_name(chosen.protocol),
                     error_cells(row.measured_seconds, scored.predicted->seconds));
}

std::string scored_astra_header() {
  return "row,measured_ns,predicted_ns,low_ns,high_ns,confidence,error_percent\n";
}

std::string scored_astra_row(const ScoredAstraRun& scored) {
  const double error = static_cast<double>(scored.predicted_ns) / static_cast<double>(scored.measured_ns) - 1;
  return fmt::format("{},{},{},{},{},exact,{}\n", scored.row, scored.measured_ns, scored.predicted_ns,
                     scored.predicted_ns, scored.predicted_ns, number_text(100 * error));
}

}  // namespace foretoken
