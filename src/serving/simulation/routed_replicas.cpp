#include "serving/simulation/routed_replicas.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "serving/simulation/replica_set.h"

namespace foretoken {

RoutedReplicas::RoutedReplicas(const SimulationConfig& config, RunObserver& observer)
    : tiers_(config.kv_tiers ? std::make_optional<KvTiers>(*config.kv_tiers) : std::nullopt),
      events_(config.replicas.size()),
      replicas_(make_replicas(config, observer, tiers_ ? &*tiers_ : nullptr)),
      placement_(router_kind(config.router).make(config.seed), replicas_, 0, replicas_.size()),
      ranks_of_one_server_(router_kind(config.router).within_server) {}

void RoutedReplicas::advance() {
  ensure(events_.when() >= now_, "time never goes back");
  now_ = events_.when();
  const size_t replica = events_.replica();
  replicas_[replica].advance(now_);
  note(replica);
}

void RoutedReplicas::arrive(Request&& request, Picoseconds when, int64_t body) {
  ensure(when >= now_ && when <= events_.when(), "requests arrive in order of time");
  now_ = when;
  const bool goes_along = body >= 0 && body == last_body_ && !ranks_of_one_server_;
  if (!goes_along) last_chosen_ = placement_.choose(request);
  last_body_ = body;
  replicas_[last_chosen_].arrive(std::move(request), now_, body);
  note(last_chosen_);
}

bool RoutedReplicas::cancel(int64_t id) {
  for (size_t i = 0; i < replicas_.size(); ++i) {
    if (!replicas_[i].cancel(id)) continue;
    note(i);
    return true;
  }
  return false;
}

bool RoutedReplicas::forget_prefixes() {
  for (const Replica& replica : replicas_) {
    if (!replica.idle()) return false;
  }
  for (Replica& replica : replicas_) replica.shut_down(now_);
  for (size_t i = 0; i < replicas_.size(); ++i) note(i);
  return true;
}

// Takes up what changed at a replica.
void RoutedReplicas::note(size_t index) {
  Replica& replica = replicas_[index];
  events_.set(index, replica.next_event().value_or(end_of_time));
  placement_.note(index);
  for (const Replica::Ended& ended : replica.take_ended()) ended_.push_back(ended);
}

std::vector<Replica::Ended> RoutedReplicas::take_ended() {
  return std::exchange(ended_, {});
}

SimulationTotals RoutedReplicas::final_totals() const {
  SimulationTotals totals = totals_of(replicas_);
  if (tiers_) totals.kv_tiers = tiers_->final_usage();
  return totals;
}

}  // namespace foretoken
