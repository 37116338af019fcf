#include "app/cli/commands/serve/serve_watch.h"

#include <fmt/format.h>

#include "app/cli/commands/serve/explained_request.h"

namespace foretoken {

void ShownProgress::request_ended(const RequestRecord& /*record*/) {
  if (++ended_ % each_ == 0) show_progress(fmt::format("{} requests served", ended_));
}

ServeWatch::ServeWatch(const ServeFlags& flags, const std::vector<ReplicaGroup>& groups,
                       const ServingRunRequest& request, bool metered)
    : files(flags.results),
      models(groups.size(), &RequestRecord::replica),
      life(explained_request(flags, request)),
      ttft_goals(groups.front().config.options.ttft_goals),
      prompts(flags.pools.given() && !flags.html.empty()) {
  int32_t first = 0;
  for (const ReplicaGroup& group : groups) {
    const auto end = first + static_cast<int32_t>(group.count);
    mixes.emplace_back(first, end);
    first = end;
  }
  if (metered) meter.emplace(energy_meter(groups));
}

std::vector<RunObserver*> ServeWatch::observers(const ServeFlags& flags) {
  std::vector<RunObserver*> all = files.observers();
  all.insert(all.end(), {&progress, &arrivals, &priorities, &ttft_goals});
  if (flags.colocation.given()) all.push_back(&models);
  if (flags.replica.lora.enabled) all.push_back(&adapters);
  if (flags.explains()) all.push_back(&life);
  if (flags.load.thinking.given()) all.push_back(&thinking);
  if (flags.breakdown || !flags.html.empty()) {
    for (StepMix& mix : mixes) all.push_back(&mix);
  }
  if (!flags.html.empty()) all.insert(all.end(), {&curves, &slowest, &prompts});
  if (meter) all.push_back(&*meter);
  return all;
}

}  // namespace foretoken
