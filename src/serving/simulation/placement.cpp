#include "serving/simulation/placement.h"

#include <optional>
#include <utility>

#include "base/error.h"

namespace foretoken {

Placement::Placement(std::unique_ptr<RequestRouter> router, const std::deque<Replica>& replicas, size_t first,
                     size_t count)
    : router_(std::move(router)), replicas_(&replicas), first_(first), loads_(count), shown_(count, true) {
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
  if (!alike_ || hidden_ > 0) {
    offered_.clear();
    std::optional<size_t> able;
    for (size_t i = 0; i < loads_.size(); ++i) {
      if (!alike_ && (*replicas_)[first_ + i].rejection(request) != Rejection::none) continue;
      if (!able) able = first_ + i;
      if (shown_[i]) offered_.push_back(loads_[i]);
    }
    if (offered_.empty()) return able.value_or(first_);
    offered = offered_;
  }
  const size_t chosen = router_->choose(request, offered);
  ensure(chosen < offered.size(), "a router chooses a replica that it was offered");
  return static_cast<size_t>(offered[chosen].replica);
}

void Placement::show(size_t replica, bool shown) {
  const size_t index = replica - first_;
  if (shown_[index] == shown) return;
  shown_[index] = shown;
  hidden_ += shown ? -1 : 1;
}

void Placement::note(size_t replica) {
  loads_[replica - first_] = (*replicas_)[replica].load();
}

}  // namespace foretoken
