#include "serving/online/online_run.h"

#include <utility>

#include "base/error.h"

namespace foretoken {
namespace {

SimulationConfig step_by_step(SimulationConfig config) {
  ensure(!config.kv_tiers && !config.fleet && !config.disaggregation && !config.colocation,
         "an online run has replicas behind a router and nothing else");
  config.repeat_decodes = false;
  return config;
}

}  // namespace

OnlineRun::OnlineRun(SimulationConfig config, RunObserver& observer)
    : config_(step_by_step(std::move(config))), site_(config_, nobody_, observer) {}

void OnlineRun::advance(Picoseconds now) {
  ensure(now >= now_, "time never goes back");
  for (Picoseconds next = next_event(); next < now; next = next_event()) site_.engines().advance(next);
  now_ = now;
}

void OnlineRun::submit(Request&& request, Picoseconds now, int64_t body) {
  advance(now);
  request.arrival = now;
  site_.arrive(std::move(request), now, body);
}

bool OnlineRun::cancel(int64_t id, Picoseconds now) {
  advance(now);
  return site_.cancel(id);
}

bool OnlineRun::forget_prefixes(Picoseconds now) {
  advance(now);
  return site_.forget_prefixes(now);
}

}  // namespace foretoken
