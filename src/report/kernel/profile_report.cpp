#include "report/kernel/profile_report.h"

#include <fmt/format.h>

#include "base/counted.h"
#include "base/text.h"
#include "report/parts/table.h"

namespace foretoken {
namespace {

double share(double part, double whole) {
  return whole > 0 ? part / whole : 0;
}

}  // namespace

std::string profile_text(const ProfileSummary& summary, const std::string& source) {
  std::string text = wrap_lines(
      fmt::format("{}: {}{}, {} of device work in {}; no kernel ran for {} ({:.0f}%). Launching took {} on the host.",
                  source, counted(summary.kernels, "kernel"), summary.graph ? " with a CUDA graph" : "",
                  duration_text(summary.device_us * 1e-6), duration_text(summary.span_us * 1e-6),
                  duration_text(summary.gaps_us * 1e-6), 100 * share(summary.gaps_us, summary.span_us),
                  duration_text(summary.launching_us * 1e-6)),
      page_width(), 2);
  if (summary.without_operator > 0) {
    text += fmt::format("  {} no operator in the trace\n", summary.without_operator == 1
                                                               ? "1 kernel has"
                                                               : counted(summary.without_operator, "kernel") + " have");
  }
  Table table({{"kernels", Table::Align::left}, {"count"}, {"time"}, {"share"}, {"host per launch"}});
  for (const ProfiledClass& one : summary.classes) {
    table.add({one.name, fmt::format("{}", one.kernels), duration_text(one.device_us * 1e-6),
               fmt::format("{:.1f}%", 100 * share(one.device_us, summary.device_us)),
               one.host_us > 0 ? duration_text(one.host_us * 1e-6) : "-"});
  }
  text += "\n" + table.text();
  if (summary.streams.size() < 2) return text;
  Table streams({{"stream", Table::Align::left}, {"kernels"}, {"time"}, {"of the span"}, {"alone"}});
  for (const ProfiledStream& one : summary.streams) {
    streams.add({fmt::format("{}", one.stream), fmt::format("{}", one.kernels), duration_text(one.device_us * 1e-6),
                 fmt::format("{:.1f}%", 100 * share(one.device_us, summary.span_us)),
                 duration_text(one.alone_us * 1e-6)});
  }
  return text + "\n" + streams.text();
}

Json profile_json(const ProfileSummary& summary, const std::string& source) {
  Json classes = Json::array();
  for (const ProfiledClass& one : summary.classes) {
    classes.push(Json::object({{"name", one.name},
                               {"kernels", one.kernels},
                               {"device_seconds", one.device_us * 1e-6},
                               {"host_seconds_per_launch", one.host_us * 1e-6}}));
  }
  Json streams = Json::array();
  for (const ProfiledStream& one : summary.streams) {
    streams.push(Json::object({{"stream", one.stream},
                               {"kernels", one.kernels},
                               {"device_seconds", one.device_us * 1e-6},
                               {"alone_seconds", one.alone_us * 1e-6}}));
  }
  return Json::object({{"source", source},
                       {"kernels", summary.kernels},
                       {"kernels_without_operator", summary.without_operator},
                       {"cuda_graph", summary.graph},
                       {"device_seconds", summary.device_us * 1e-6},
                       {"span_seconds", summary.span_us * 1e-6},
                       {"gap_seconds", summary.gaps_us * 1e-6},
                       {"launching_seconds", summary.launching_us * 1e-6},
                       {"classes", std::move(classes)},
                       {"streams", std::move(streams)}});
}

}  // namespace foretoken
