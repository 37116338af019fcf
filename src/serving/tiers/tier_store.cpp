#include "serving/tiers/tier_store.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/look_ahead.h"

namespace foretoken {

const TierEntry* TierStore::find(uint64_t key) const {
  const int32_t* found = by_key_.find(key);
  return found != nullptr ? &places_[static_cast<size_t>(*found)].entry : nullptr;
}

bool TierStore::touch(uint64_t key) {
  const int32_t* found = by_key_.find(key);
  if (found == nullptr) return false;
  touch_place(*found);
  return true;
}

void TierStore::touch_place(int32_t index) {
  if (index == newest_) return;
  unlink(index);
  link_newest(index);
}

void TierStore::bring_near(std::span<const uint64_t> keys) const {
  for (const uint64_t key : keys) by_key_.bring_near(key);
  for (const uint64_t key : keys) {
    if (const int32_t* found = by_key_.find(key)) __builtin_prefetch(&places_[static_cast<size_t>(*found)]);
  }
}

void TierStore::touch_last_first(std::span<const uint64_t> keys) {
  std::array<int32_t, looked_up_together> found;
  while (!keys.empty()) {
    const std::span<const uint64_t> last = keys.last(std::min(looked_up_together, keys.size()));
    keys = keys.first(keys.size() - last.size());
    bring_near(last);
    for (size_t i = 0; i < last.size(); ++i) {
      const int32_t* place = by_key_.find(last[i]);
      found[i] = place != nullptr ? *place : none;
      if (place == nullptr) continue;
      for (const int32_t beside :
           {places_[static_cast<size_t>(*place)].older, places_[static_cast<size_t>(*place)].newer}) {
        if (beside != none) __builtin_prefetch(&places_[static_cast<size_t>(beside)]);
      }
    }
    for (size_t i = last.size(); i-- > 0;) {
      if (found[i] != none) touch_place(found[i]);
    }
  }
}

// Of a full store, for the next that comes: the oldest goes, and then the one after it.
void TierStore::bring_oldest_near() const {
  if (oldest_ == none) return;
  const Place& oldest = places_[static_cast<size_t>(oldest_)];
  by_key_.bring_near(oldest.entry.key);
  if (oldest.newer != none) __builtin_prefetch(&places_[static_cast<size_t>(oldest.newer)]);
}

bool TierStore::put(const TierEntry& entry, std::vector<TierEntry>& dropped) {
  if (entry.tokens > capacity_ || by_key_.contains(entry.key)) return false;
  while (tokens_ > capacity_ - entry.tokens) {
    dropped.push_back(places_[static_cast<size_t>(oldest_)].entry);
    take_out(oldest_);
    bring_oldest_near();
  }
  if (spare_.empty()) {
    spare_.push_back(static_cast<int32_t>(places_.size()));
    places_.emplace_back();
  }
  const int32_t index = spare_.back();
  spare_.pop_back();
  places_[static_cast<size_t>(index)].entry = entry;
  link_newest(index);
  by_key_.put(entry.key, index);
  tokens_ += entry.tokens;
  most_tokens_ = std::max(most_tokens_, tokens_);
  ensure(tokens_ <= capacity_, "a tier holds no more than its size");
  return true;
}

void TierStore::remove(uint64_t key) {
  if (const int32_t* found = by_key_.find(key)) take_out(*found);
}

void TierStore::take_out(int32_t index) {
  const TierEntry& entry = places_[static_cast<size_t>(index)].entry;
  tokens_ -= entry.tokens;
  by_key_.erase(entry.key);
  unlink(index);
  spare_.push_back(index);
}

void TierStore::unlink(int32_t index) {
  const Place& place = places_[static_cast<size_t>(index)];
  (place.older == none ? oldest_ : places_[static_cast<size_t>(place.older)].newer) = place.newer;
  (place.newer == none ? newest_ : places_[static_cast<size_t>(place.newer)].older) = place.older;
}

void TierStore::link_newest(int32_t index) {
  Place& place = places_[static_cast<size_t>(index)];
  place.older = newest_;
  place.newer = none;
  (newest_ == none ? oldest_ : places_[static_cast<size_t>(newest_)].newer) = index;
  newest_ = index;
}

}  // namespace foretoken
