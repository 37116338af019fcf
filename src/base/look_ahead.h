// Lookups of many keys in tables larger than a processor's caches: the entries of the next few are brought near
// together, so that their waits overlap.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace foretoken {

// Few, because entries behind a key that is missing are brought near in vain.
inline constexpr size_t looked_up_together = 16;

// Before the key at `place` is looked up, of keys that are looked up in order: `bring_near` gets the group that begins
// there, and is not called inside one.
template <class BringNear>
void bring_group_near(std::span<const uint64_t> keys, size_t place, const BringNear& bring_near) {
  if (place % looked_up_together != 0) return;
  bring_near(keys.subspan(place, std::min(looked_up_together, keys.size() - place)));
}

}  // namespace foretoken
