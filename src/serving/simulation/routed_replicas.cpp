#include "serving/simulation/routed_replicas.h"

#include <algorithm>
#include <utility>

namespace foretoken {
namespace {

// So that members which need them find the replicas in place.
const std::deque<Replica>& filled(Engines& engines, RunObserver& observer) {
  engines.add_all(observer);
  return engines.replicas();
}

}  // namespace

RoutedReplicas::RoutedReplicas(const SimulationConfig& config, RequestEnds& ends, RunObserver& observer)
    : ends_(&ends),
      engines_(config, *this),
      placement_(router_kind(config.router).make(config.seed), filled(engines_, observer), 0, config.replicas.size()),
      ranks_of_one_server_(router_kind(config.router).within_server) {}

void RoutedReplicas::arrive(Request&& request, Picoseconds now, int64_t body) {
  const bool goes_along = body >= 0 && body == last_body_ && !ranks_of_one_server_;
  if (!goes_along) last_chosen_ = placement_.choose(request);
  last_body_ = body;
  engines_.replicas()[last_chosen_].arrive(std::move(request), now, body);
  note(last_chosen_);
}

bool RoutedReplicas::cancel(int64_t id) {
  std::deque<Replica>& replicas = engines_.replicas();
  for (size_t i = 0; i < replicas.size(); ++i) {
    if (!replicas[i].cancel(id)) continue;
    note(i);
    return true;
  }
  return false;
}

bool RoutedReplicas::forget_prefixes(Picoseconds now) {
  std::deque<Replica>& replicas = engines_.replicas();
  if (!std::all_of(replicas.begin(), replicas.end(), [](const Replica& replica) { return replica.idle(); })) {
    return false;
  }
  for (Replica& replica : replicas) replica.shut_down(now);
  for (size_t i = 0; i < replicas.size(); ++i) note(i);
  return true;
}

void RoutedReplicas::changed(size_t replica, Picoseconds /*now*/) {
  note(replica);
}

// Takes up what changed at a replica.
void RoutedReplicas::note(size_t index) {
  engines_.touch(index);
  placement_.note(index);
  for (const Replica::Ended& ended : engines_.replicas()[index].take_ended()) ended.tell(*ends_);
}

SimulationTotals RoutedReplicas::final_totals(Picoseconds /*now*/) {
  return engines_.final_totals();
}

}  // namespace foretoken
