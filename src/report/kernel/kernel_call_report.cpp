#include "report/kernel/kernel_call_report.h"

#include <fmt/format.h>

#include "base/text.h"
#include "base/units.h"
#include "network/transfer/collective.h"
#include "report/network/collective_report.h"
#include "report/parts/json_parts.h"
#include "report/parts/table.h"

namespace foretoken {
namespace {

bool has_experts(const CommunicationCall& call) {
  return call.bytes <= 0;
}

struct Bandwidths {
  double algorithm = 0, bus = 0;  // bytes/s, as nccl-tests counts them
};

Bandwidths bandwidths_of(const KernelCallRow& row) {
  const CollectiveShape shape{.kind = CollectiveKind::all_reduce, .ranks = row.call.ranks, .bytes = row.call.bytes};
  const Seconds time(row.seconds.value);
  return {.algorithm = row.call.bytes / time.value(), .bus = (wire_bytes(shape) / time).value()};
}

}  // namespace

std::string kernel_call_text(const KernelCallReport& report) {
  const bool by_tokens = has_experts(report.rows.front().call);
  std::string header =
      fmt::format("{} by {} on {}, {} ranks", report.operation, report.kernel, report.machine, report.ranks);
  if (report.nodes > 1) header += fmt::format(" in {} nodes", report.nodes);
  if (!report.note.empty()) header += fmt::format("; {}", report.note);
  std::vector<Table::Column> columns = {{by_tokens ? "tokens a rank" : "size"}, {"time"}, {"low"}, {"high"}};
  if (!by_tokens) columns.insert(columns.end(), {{"alg GB/s"}, {"bus GB/s"}});
  columns.push_back({"source", Table::Align::left});
  Table table(columns);
  for (const KernelCallRow& row : report.rows) {
    std::vector<std::string> cells = {
        by_tokens ? fmt::format("{}", row.call.expert.tokens) : message_size_text(row.call.bytes),
        duration_text(row.seconds.value), duration_text(row.seconds.low), duration_text(row.seconds.high)};
    if (!by_tokens) {
      const Bandwidths speed = bandwidths_of(row);
      cells.push_back(fmt::format("{:.1f}", speed.algorithm / giga));
      cells.push_back(fmt::format("{:.1f}", speed.bus / giga));
    }
    cells.push_back(row.source);
    table.add(std::move(cells));
  }
  return wrap_lines(header, page_width(), 2) + table.text(page_width()) +
         wrap_lines("source: " + report.rows.back().basis, page_width(), 4);
}

Json kernel_call_json(const KernelCallReport& report) {
  Json rows = Json::array();
  for (const KernelCallRow& row : report.rows) {
    Json entry = Json::object();
    if (has_experts(row.call)) {
      const ExpertTraffic& expert = row.call.expert;
      entry.set("tokens", expert.tokens);
      entry.set("hidden", expert.hidden);
      entry.set("top_k", expert.top_k);
      entry.set("experts", expert.experts);
      entry.set("sms", expert.processors);
      entry.set("bytes_per_value", expert.bytes_per_value);
    } else {
      const Bandwidths speed = bandwidths_of(row);
      entry.set("bytes", row.call.bytes);
      entry.set("algorithm_bandwidth_bytes_per_second", speed.algorithm);
      entry.set("bus_bandwidth_bytes_per_second", speed.bus);
    }
    entry.set("seconds", to_json(row.seconds));
    entry.set("source", row.source);
    entry.set("basis", row.basis);
    rows.push(std::move(entry));
  }
  return Json::object({{"op", report.operation},
                       {"kernel", report.kernel},
                       {"machine", report.machine},
                       {"ranks", report.ranks},
                       {"nodes", report.nodes},
                       {"note", report.note},
                       {"rows", std::move(rows)}});
}

}  // namespace foretoken
