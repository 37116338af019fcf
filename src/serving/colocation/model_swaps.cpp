#include "serving/colocation/model_swaps.h"

#include <algorithm>
#include <utility>

namespace foretoken {

ModelSwaps::ModelSwaps(const Colocation& colocation)
    : settings_(colocation),
      longest_wait_(to_picoseconds(colocation.longest_wait)),
      waiting_(colocation.engines.size()) {}

void ModelSwaps::arrive(Request&& request, Picoseconds now) {
  const auto model = static_cast<size_t>(request.model);
  waiting_[model].push_back({.request = std::move(request), .since = now});
}

std::deque<Request> ModelSwaps::take_ready() {
  std::deque<Request> ready;
  if (swapped_at_ || draining_) return ready;
  for (Waiting& one : waiting_[awake_]) ready.push_back(std::move(one.request));
  waiting_[awake_].clear();
  return ready;
}

std::optional<size_t> ModelSwaps::longest_waiting() const {
  std::optional<size_t> longest;
  for (size_t i = 0; i < waiting_.size(); ++i) {
    if (i == awake_ || waiting_[i].empty()) continue;
    if (!longest || waiting_[i].front().since < waiting_[*longest].front().since) longest = i;
  }
  return longest;
}

std::optional<size_t> ModelSwaps::update(Picoseconds now, int64_t outstanding) {
  if (swapped_at_) {
    // Requests that waited for it come first, however long others have.
    if (*swapped_at_ <= now) swapped_at_.reset();
    return std::nullopt;
  }
  const std::optional<size_t> next = longest_waiting();
  if (!next) return std::nullopt;
  if (now - waiting_[*next].front().since >= longest_wait_) draining_ = true;
  const bool idle = outstanding == 0 && (draining_ || waiting_[awake_].empty());
  if (!idle) return std::nullopt;
  const size_t asleep = std::exchange(awake_, *next);
  draining_ = false;
  const Seconds moving = settings_.engines[asleep].sleep + settings_.engines[awake_].wake;
  if (const Picoseconds time = to_picoseconds(moving); time > 0) swapped_at_ = later(now, time);
  return asleep;
}

Picoseconds ModelSwaps::next_event() const {
  if (swapped_at_) return *swapped_at_;
  if (draining_) return end_of_time;
  const std::optional<size_t> next = longest_waiting();
  return next ? later(waiting_[*next].front().since, longest_wait_) : end_of_time;
}

int64_t ModelSwaps::waiting() const {
  int64_t sum = 0;
  for (const std::deque<Waiting>& queue : waiting_) sum += static_cast<int64_t>(queue.size());
  return sum;
}

}  // namespace foretoken
