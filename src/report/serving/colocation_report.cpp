#include "report/serving/colocation_report.h"
#include "report/parts/latency_json.h"

#include <fmt/format.h>

#include "base/text.h"
#include "report/parts/table.h"
#include "report/serving/serving_report.h"

namespace foretoken {
namespace {

double tokens_per_second(const ColocationReport& report, const ColocationReport::Engine& engine) {
  return report.duration_s > 0 ? static_cast<double>(engine.latencies.output_tokens) / report.duration_s : 0;
}

}  // namespace

std::string colocation_text(const ColocationReport& report) {
  Table table({{"model", Table::Align::left},
               {"requests"},
               {"TTFT (ms)"},
               {"TPOT (ms)"},
               {"output tok/s"},
               {"slowdown"},
               {"switches"},
               {"KV blocks"}});
  double moved = 0;
  for (const ColocationReport::Engine& engine : report.engines) {
    table.add({engine.model, fmt::format("{}", engine.latencies.completed),
               fmt::format("{:.2f}", engine.latencies.ttft.mean_ms),
               fmt::format("{:.2f}", engine.latencies.tpot.mean_ms),
               fmt::format("{:.1f}", tokens_per_second(report, engine)), fmt::format("{:.2f}", engine.use.slowdown()),
               fmt::format("{}", engine.use.switches), fmt::format("{}", engine.kv_blocks)});
    moved += engine.use.moved_bytes;
  }
  std::string text =
      fmt::format("By model, on one shared device ({}); means\n{}", sharing_name(report.sharing), table.text());
  if (moved > 0) text += fmt::format("Weights moved: {}\n", bytes_text(moved));
  return text;
}

Json colocation_json(const ColocationReport& report) {
  Json engines = Json::array();
  for (const ColocationReport::Engine& engine : report.engines) {
    Json json = Json::object({{"model", engine.model},
                              {"completed", engine.latencies.completed},
                              {"output_tokens", engine.latencies.output_tokens},
                              {"output_throughput", tokens_per_second(report, engine)},
                              {"slowdown", engine.use.slowdown()},
                              {"steps_alone_s", engine.use.alone_s},
                              {"steps_shared_s", engine.use.busy_s},
                              {"switches", engine.use.switches},
                              {"moved_bytes", engine.use.moved_bytes},
                              {"kv_blocks", engine.kv_blocks}});
    set_latencies(json, "ttft", engine.latencies.ttft, report.percentiles);
    set_latencies(json, "tpot", engine.latencies.tpot, report.percentiles);
    set_latencies(json, "e2el", engine.latencies.e2el, report.percentiles);
    engines.push(std::move(json));
  }
  return Json::object({{"sharing", std::string(sharing_name(report.sharing))}, {"engines", std::move(engines)}});
}

}  // namespace foretoken
