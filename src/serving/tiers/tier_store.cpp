#include "serving/tiers/tier_store.h"

#include <algorithm>

#include "base/error.h"

namespace foretoken {

const TierEntry* TierStore::find(uint64_t key) const {
  const int32_t* found = by_key_.find(key);
  return found != nullptr ? &places_[static_cast<size_t>(*found)].entry : nullptr;
}

bool TierStore::touch(uint64_t key) {
  const int32_t* found = by_key_.find(key);
  if (found == nullptr) return false;
  if (*found == newest_) return true;
  unlink(*found);
  link_newest(*found);
  return true;
}

bool TierStore::put(const TierEntry& entry, std::vector<TierEntry>& dropped) {
  if (entry.tokens > capacity_ || by_key_.contains(entry.key)) return false;
  while (tokens_ > capacity_ - entry.tokens) {
    dropped.push_back(places_[static_cast<size_t>(oldest_)].entry);
    take_out(oldest_);
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
