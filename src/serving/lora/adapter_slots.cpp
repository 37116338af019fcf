#include "serving/lora/adapter_slots.h"

#include <algorithm>

namespace foretoken {

AdapterSlots::AdapterSlots(int64_t most, std::span<Sequence* const> running) : most_(static_cast<size_t>(most)) {
  if (most_ == 0) return;
  for (const Sequence* sequence : running) take(sequence->request.adapter);
}

bool AdapterSlots::has_room(int32_t adapter) const {
  if (most_ == 0 || adapter < 0 || taken_.size() < most_) return true;
  return std::find(taken_.begin(), taken_.end(), adapter) != taken_.end();
}

void AdapterSlots::take(int32_t adapter) {
  if (most_ == 0 || adapter < 0) return;
  if (std::find(taken_.begin(), taken_.end(), adapter) == taken_.end()) taken_.push_back(adapter);
}

}  // namespace foretoken
