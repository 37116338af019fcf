#include "serving/fleet/lifecycle.h"

#include "base/error.h"

namespace foretoken {
namespace {

double device_seconds(int64_t devices, Picoseconds from, Picoseconds to) {
  return static_cast<double>(devices) * to_seconds(to - from).value();
}

}  // namespace

Lifecycle::Lifecycle(const std::vector<FleetMember>& members) {
  for (const FleetMember& member : members) replicas_.push_back({.devices = member.devices});
  sizes_.push_back({});
}

void Lifecycle::change(size_t replica, ReplicaState to, Picoseconds now) {
  One& one = replicas_[replica];
  ensure(now >= one.since, "a replica's states follow each other in time");
  const bool was_held = one.state != ReplicaState::off, is_held = to != ReplicaState::off;
  if (sizes_.back().from != now) {
    FleetSize next = sizes_.back();
    next.from = now;
    sizes_.push_back(next);
  }
  FleetSize& size = sizes_.back();
  size.serving += (to == ReplicaState::serving ? 1 : 0) - (one.state == ReplicaState::serving ? 1 : 0);
  size.held += (is_held ? 1 : 0) - (was_held ? 1 : 0);
  if (!was_held) one.held_since = now;
  if (was_held && !is_held) gpu_seconds_ += device_seconds(one.devices, one.held_since, now);
  one.state = to;
  one.since = now;
}

double Lifecycle::gpu_seconds(Picoseconds now) const {
  double sum = gpu_seconds_;
  for (const One& one : replicas_) {
    if (one.state != ReplicaState::off) sum += device_seconds(one.devices, one.held_since, now);
  }
  return sum;
}

}  // namespace foretoken
