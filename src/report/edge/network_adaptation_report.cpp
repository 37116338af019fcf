#include "report/edge/network_adaptation_report.h"

#include <fmt/format.h>

#include "base/counted.h"
#include "base/csv.h"
#include "base/text.h"
#include "report/parts/json_parts.h"
#include "report/parts/table.h"

namespace foretoken {
namespace {

constexpr double ms = 1e3;

// As a reader of the table knows them.
std::string_view family_reading(EdgeFamily family) {
  switch (family) {
    case EdgeFamily::convolution:
      return "convolutions";
    case EdgeFamily::depthwise:
      return "depthwise convolutions";
    case EdgeFamily::product:
      return "matrix products";
    case EdgeFamily::tensor:
      return "other operators";
    case EdgeFamily::setup:
      return "starting a convolution or product";
    case EdgeFamily::dispatch:
      return "starting another operator";
    case EdgeFamily::call:
      return "calling the runtime";
  }
  return "";
}

// Families of kernels; the others are the runtime's own time, whose share is small in any large network.
std::vector<EdgeFamily> untimed_kernels(const AdaptedEdge& adapted) {
  std::vector<EdgeFamily> families = adapted.untimed();
  std::erase_if(families, [](EdgeFamily family) { return family >= EdgeFamily::setup; });
  return families;
}

}  // namespace

std::string network_adaptation_text(const NetworkAdaptationReport& report) {
  std::string text = fmt::format("{}; prior: {}\n", counted(report.timings, "timing"), report.known_device);
  if (report.own_mape)
    text += fmt::format("error when each timing is predicted from the others: {:.1f}%\n", *report.own_mape);
  text +=
      fmt::format("the runtime joins operators as the prior's does: {:.0f}% likely\n\n", 100 * report.adapted.joins());
  Table levels({{"time of", Table::Align::left}, {"over the prior's"}, {"90% interval"}});
  for (size_t f = 0; f < edge_families; ++f) {
    const auto family = static_cast<EdgeFamily>(f);
    const Estimate level = report.adapted.level(family);
    levels.add({std::string(family_reading(family)), fmt::format("{:.3g}", level.value),
                fmt::format("{:.3g} to {:.3g}", level.low, level.high)});
  }
  text += levels.text();
  std::vector<std::string_view> names;
  for (const EdgeFamily family : untimed_kernels(report.adapted)) names.push_back(family_reading(family));
  if (!names.empty()) {
    text += wrap_lines(
        fmt::format("note: in every timing, less than {:.0f}% of the time goes to {}. Their levels are assumed, and "
                    "networks that consist of them have wide intervals, marked extrapolated. Time such a network or "
                    "kernel to narrow the intervals\n",
                    100 * least_timed_share, fmt::join(names, " or ")),
        page_width(), 2);
  }
  if (report.predicted.empty()) return text;
  Table table({{"network", Table::Align::left}, {"latency"}, {"90% interval"}, {"confidence", Table::Align::left}});
  for (const NetworkAdaptationReport::Network& one : report.predicted) {
    table.add({one.name, fmt::format("{:.3g} ms", ms * one.seconds.value),
               fmt::format("{:.3g} to {:.3g}", ms * one.seconds.low, ms * one.seconds.high),
               std::string(confidence_name(one.seconds.kind))});
  }
  return text + "\n" + table.text();
}

Json network_adaptation_json(const NetworkAdaptationReport& report) {
  Json levels = Json::object();
  for (size_t f = 0; f < edge_families; ++f) {
    const auto family = static_cast<EdgeFamily>(f);
    levels.set(std::string(edge_family_name(family)), to_json(report.adapted.level(family)));
  }
  Json untimed = Json::array();
  for (const EdgeFamily family : untimed_kernels(report.adapted)) untimed.push(edge_family_name(family));
  Json predicted = Json::array();
  for (const NetworkAdaptationReport::Network& one : report.predicted)
    predicted.push(Json::object({{"network", one.name}, {"milliseconds", to_json(scaled(one.seconds, ms))}}));
  return Json::object({{"known_device", report.known_device},
                       {"timings", report.timings},
                       {"own_mape", report.own_mape ? Json(*report.own_mape) : Json()},
                       {"joins", report.adapted.joins()},
                       {"levels", std::move(levels)},
                       {"untimed", std::move(untimed)},
                       {"predicted", std::move(predicted)}});
}

std::string network_adaptation_csv(const NetworkAdaptationReport& report) {
  std::string text = "network,predicted_ms,low_ms,high_ms\n";
  for (const NetworkAdaptationReport::Network& one : report.predicted) {
    text += fmt::format("{},{},{},{}\n", csv_cell(one.name), number_text(ms * one.seconds.value),
                        number_text(ms * one.seconds.low), number_text(ms * one.seconds.high));
  }
  return text;
}

}  // namespace foretoken
