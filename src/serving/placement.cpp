#include "serving/placement.h"

#include <utility>

#include "base/error.h"

namespace foretoken {

Placement::Placement(std::unique_ptr<RequestRouter> router, const std::deque<Replica>& replicas, size_t first,
                     size_t count)
    : router_(std::move(router)), replicas_(&replicas), first_(first), loads_(count) {
  ensure(count > 0 && first + count <= replicas.size(), "a pool has a replica");
  for (size_t i = first; i < first + count; ++i) {
    note(i);
    alike_ = alike_ && replicas[i].limits() == replicas[first].limits();
  }
}

size_t Placement::choose(const Request& request) {
  if (loads_.size() == 1) return first_;
  if (!request.follows) last_ = choose_new(request);
  return last_;
}

size_t Placement::choose_new(const Request& request) {
  if (alike_ && (*replicas_)[first_].rejection(request) != Rejection::none) return first_;
  std::span<const ReplicaLoad> offered = loads_;
  if (!alike_) {
    offered_.clear();
    for (const ReplicaLoad& load : loads_) {
      const Replica& replica = (*replicas_)[static_cast<size_t>(load.replica)];
      if (replica.rejection(request) == Rejection::none) offered_.push_back(load);
    }
    if (offered_.empty()) return first_;
    offered = offered_;
  }
  const size_t chosen = router_->choose(request, offered);
  ensure(chosen < offered.size(), "a router chooses a replica that it was offered");
  return static_cast<size_t>(offered[chosen].replica);
}

void Placement::note(size_t replica) {
  loads_[replica - first_] = (*replicas_)[replica].load();
}

}  // namespace foretoken
