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
    : engines_(step_by_step(std::move(config)), observer) {}

void OnlineRun::advance(Picoseconds now) {
  ensure(now >= engines_.now(), "time never goes back");
  while (engines_.next_event() < now) engines_.advance();
  engines_.take_ended();  // the observer knows
}

void OnlineRun::submit(Request&& request, Picoseconds now, int64_t body) {
  advance(now);
  request.arrival = now;
  engines_.arrive(std::move(request), now, body);
}

bool OnlineRun::cancel(int64_t id, Picoseconds now) {
  advance(now);
  return engines_.cancel(id);
}

bool OnlineRun::forget_prefixes(Picoseconds now) {
  advance(now);
  return engines_.forget_prefixes();
}

}  // namespace foretoken
