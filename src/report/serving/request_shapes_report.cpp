#include "report/serving/request_shapes_report.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/counted.h"
#include "base/text.h"
#include "report/parts/latency_json.h"
#include "report/parts/table.h"
#include "serving/results/metrics.h"

namespace foretoken {
namespace {

// Where the highest of them stands.
size_t highest(const std::vector<double>& percentiles) {
  return static_cast<size_t>(std::max_element(percentiles.begin(), percentiles.end()) - percentiles.begin());
}

}  // namespace

std::string stages_text(std::span<const StageUse> stages, double duration_s, const std::vector<double>& percentiles) {
  const size_t at = highest(percentiles);
  Table table({{"stage"},
               {"servers"},
               {"requests"},
               {"mean batch"},
               {"mean wait (ms)"},
               {fmt::format("P{} wait (ms)", number_text(percentiles[at]))},
               {"service (ms)"},
               {"busy"}});
  for (const StageUse& stage : stages) {
    const LatencySummary wait = latency_summary(stage.wait, percentiles);
    table.add({stage.name, fmt::format("{}", stage.servers), fmt::format("{}", stage.service.count()),
               fmt::format("{:.2f}", stage.mean_batch()), fmt::format("{:.2f}", wait.mean_ms),
               fmt::format("{:.2f}", wait.percentiles_ms[at]),
               fmt::format("{:.2f}", 1e3 * stage.service.mean_seconds()),
               fmt::format("{:.0f}%", 100 * stage.utilisation(duration_s))});
  }
  return "Before the engines (part of TTFT)\n" + table.text();
}

Json stages_json(std::span<const StageUse> stages, double duration_s, const std::vector<double>& percentiles) {
  Json all = Json::array();
  for (const StageUse& stage : stages) {
    Json json = Json::object({{"name", stage.name},
                              {"servers", stage.servers},
                              {"requests", stage.service.count()},
                              {"batches", stage.batches},
                              {"mean_batch", stage.mean_batch()},
                              {"utilisation", stage.utilisation(duration_s)}});
    set_latencies(json, "wait", latency_summary(stage.wait, percentiles), percentiles);
    set_latencies(json, "service", latency_summary(stage.service, percentiles), percentiles);
    all.push(std::move(json));
  }
  return all;
}

std::string thinking_text(const ThinkingSummary& thinking, const std::vector<double>& percentiles) {
  const size_t at = highest(percentiles);
  const double mean =
      thinking.requests > 0 ? static_cast<double>(thinking.tokens) / static_cast<double>(thinking.requests) : 0;
  return fmt::format(
      "Thinking: {}, {:.0f} tokens on average; {} ended before their answer began\nTime to the first token of "
      "the answer (ms): mean {:.2f}, median {:.2f}, P{} {:.2f}\n",
      counted(thinking.requests, "request"), mean, thinking.cut, thinking.answer.mean_ms, thinking.answer.median_ms,
      number_text(percentiles[at]), thinking.answer.percentiles_ms[at]);
}

Json thinking_json(const ThinkingSummary& thinking, const std::vector<double>& percentiles) {
  Json json = Json::object({{"requests", thinking.requests}, {"tokens", thinking.tokens}, {"cut", thinking.cut}});
  set_latencies(json, "ttfat", thinking.answer, percentiles);
  return json;
}

}  // namespace foretoken
