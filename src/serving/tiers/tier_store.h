// What one tier holds: blocks by content, the least recently used dropped first.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/hashed_index.h"
#include "base/simulated_time.h"

namespace foretoken {

// A block of a prompt, or the whole cache of a sequence that was swapped out.
struct TierEntry {
  uint64_t key = 0;
  int64_t tokens = 0;
  Picoseconds ready = 0;  // all of it has arrived here
  bool awaited = false;   // while it is on its way: who wants it waits. Else what is still being written is not found

  bool can_be_read(Picoseconds now) const { return ready <= now || awaited; }
};

class TierStore {
 public:
  explicit TierStore(int64_t capacity_tokens) : capacity_(capacity_tokens) {}

  const TierEntry* find(uint64_t key) const;
  // It was used just now. False where it is not held.
  bool touch(uint64_t key);
  // The same of each that is held, the last first.
  void touch_last_first(std::span<const uint64_t> keys);
  // They are looked for next: they lie anywhere in memory, and the processor fetches them together.
  void bring_near(std::span<const uint64_t> keys) const;
  // Holds it as the most recently used; `dropped` gets what had to go, in that order. False where it could never fit or
  // is held already.
  bool put(const TierEntry& entry, std::vector<TierEntry>& dropped);
  void remove(uint64_t key);

  int64_t tokens() const { return tokens_; }
  int64_t most_tokens() const { return most_tokens_; }

 private:
  static constexpr int32_t none = -1;
  struct Place {
    TierEntry entry;
    int32_t older = none, newer = none;
  };

  void unlink(int32_t index);
  void link_newest(int32_t index);
  void take_out(int32_t index);
  void touch_place(int32_t index);
  void bring_oldest_near() const;

  int64_t capacity_;
  int64_t tokens_ = 0, most_tokens_ = 0;
  std::vector<Place> places_;
  std::vector<int32_t> spare_;
  int32_t oldest_ = none, newest_ = none;
  HashedIndex by_key_;
};

}  // namespace foretoken
