#include "report/network/collective_report.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "report/parts/json_parts.h"
#include "report/parts/table.h"

namespace foretoken {
namespace {

std::string_view routing_name(LinkRouting routing) {
  return link_routing_names[static_cast<size_t>(routing)];
}

std::string_view fidelity_name(Fidelity fidelity) {
  return fidelity_names[static_cast<size_t>(fidelity)];
}

std::string speed_text(double bytes_per_second) {
  return fmt::format("{:.1f}", bytes_per_second / giga);
}

std::string header_text(const CollectiveReport& report) {
  std::string text = fmt::format("{} on {}, {}", collective_kind_name(report.kind), report.machine, report.group);
  if (report.concurrent > 1) text += fmt::format(", {} identical groups at once", report.concurrent);
  if (report.options.fidelity == Fidelity::flow)
    text += fmt::format("; flow simulation, {} routing", routing_name(report.options.routing));
  return wrap_lines(text, page_width(), 2);
}

std::string table_text(const CollectiveReport& report) {
  Table table({{"size"},
               {"time"},
               {"low"},
               {"high"},
               {"alg GB/s"},
               {"bus GB/s"},
               {"algorithm", Table::Align::left},
               {"source", Table::Align::left}});
  for (const CollectiveRow& row : report.rows) {
    const CollectiveEstimate& estimate = row.estimate;
    table.add({message_size_text(row.bytes), duration_text(estimate.seconds.value), duration_text(estimate.seconds.low),
               duration_text(estimate.seconds.high), speed_text(estimate.algorithm_bandwidth),
               speed_text(estimate.bus_bandwidth), candidate_text(estimate.choice.chosen), estimate.source});
  }
  return table.text(page_width());
}

// Once for each stretch of sizes with the same choice.
std::string why_text(const CollectiveReport& report) {
  std::string text;
  for (size_t first = 0; first < report.rows.size();) {
    const std::string chosen = candidate_text(report.rows[first].estimate.choice.chosen);
    size_t last = first;
    while (last + 1 < report.rows.size() && candidate_text(report.rows[last + 1].estimate.choice.chosen) == chosen)
      ++last;
    const std::string sizes = first == last ? message_size_text(report.rows[first].bytes)
                                            : fmt::format("{} to {}", message_size_text(report.rows[first].bytes),
                                                          message_size_text(report.rows[last].bytes));
    const Choice& choice = report.rows[last].estimate.choice;
    const ClosedForm& form = choice.time;
    std::string parts;
    if (!form.busiest.empty()) {
      parts = fmt::format("; by formula {} of latency and {} of transfer, limited at {} by the {}",
                          duration_text((form.start + form.latency).value()), duration_text(form.wire.value()),
                          message_size_text(report.rows[last].bytes), form.busiest);
    }
    text += wrap_lines(fmt::format("{}: {}, {}{}", sizes, chosen, choice.why, parts), page_width(), 4);
    first = last + 1;
  }
  return text;
}

std::string links_text(const CollectiveReport& report) {
  constexpr size_t shown = 12;
  const CollectiveRow& row = report.rows.back();
  if (row.estimate.links.empty()) return {};
  Table table({{"from", Table::Align::left}, {"to", Table::Align::left}, {"GB/s"}, {"carried"}, {"use"}});
  const size_t count = std::min(shown, row.estimate.links.size());
  for (size_t l = 0; l < count; ++l) {
    const LinkReport& link = row.estimate.links[l];
    table.add({link.from, link.to, speed_text(link.bandwidth.value()), bytes_text(link.bytes),
               fmt::format("{:.0f}%", 100 * link.use)});
  }
  return fmt::format("\nthe busiest {} of {} links in use at {}\n", count, row.estimate.links.size(),
                     message_size_text(row.bytes)) +
         table.text(page_width());
}

Json links_json(const std::vector<LinkReport>& links) {
  Json list = Json::array();
  for (const LinkReport& link : links) {
    list.push(Json::object({{"from", link.from},
                            {"to", link.to},
                            {"bandwidth_bytes_per_second", link.bandwidth.value()},
                            {"bytes", link.bytes},
                            {"use", link.use}}));
  }
  return list;
}

}  // namespace

std::string message_size_text(double bytes) {
  constexpr std::string_view units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  while (bytes >= kibi && unit + 1 < std::size(units)) bytes /= kibi, ++unit;
  return fmt::format("{:.4g} {}", bytes, units[unit]);
}

std::string collective_text(const CollectiveReport& report) {
  std::string text = header_text(report) + table_text(report) + why_text(report);
  text += wrap_lines("source: " + report.rows.back().estimate.basis, page_width(), 4);
  return text + links_text(report);
}

Json collective_json(const CollectiveReport& report) {
  Json rows = Json::array();
  for (const CollectiveRow& row : report.rows) {
    const CollectiveEstimate& estimate = row.estimate;
    const ClosedForm& form = estimate.choice.time;
    Json entry = Json::object({{"bytes", row.bytes},
                               {"seconds", to_json(estimate.seconds)},
                               {"algorithm_bandwidth_bytes_per_second", estimate.algorithm_bandwidth},
                               {"bus_bandwidth_bytes_per_second", estimate.bus_bandwidth},
                               {"algorithm", estimate.choice.chosen.algorithm->name},
                               {"protocol", protocol_name(estimate.choice.chosen.protocol)},
                               {"why", estimate.choice.why},
                               {"formula", Json::object({{"start_seconds", form.start.value()},
                                                         {"latency_seconds", form.latency.value()},
                                                         {"wire_seconds", form.wire.value()},
                                                         {"busiest", form.busiest}})},
                               {"source", estimate.source},
                               {"basis", estimate.basis}});
    if (report.options.reports_links) entry.set("links", links_json(estimate.links));
    rows.push(std::move(entry));
  }
  return Json::object({{"op", collective_kind_name(report.kind)},
                       {"machine", report.machine},
                       {"group", report.group},
                       {"ranks", report.ranks},
                       {"fidelity", fidelity_name(report.options.fidelity)},
                       {"routing", routing_name(report.options.routing)},
                       {"concurrent", report.concurrent},
                       {"rows", std::move(rows)}});
}

}  // namespace foretoken
