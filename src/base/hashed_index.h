// Places by 64-bit keys, such as hashes of contents: one flat table, which is asked far more often than it grows.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace foretoken {

// Open addressing with linear probing; what is erased leaves no gap behind. Places are not negative. Has no order.
class HashedIndex {
 public:
  HashedIndex() : slots_(least_slots) {}

  // Null where there is none. Valid until the next put or erase.
  int32_t* find(uint64_t key) {
    Slot& slot = slots_[slot_of(key)];
    return slot.place != none ? &slot.place : nullptr;
  }
  const int32_t* find(uint64_t key) const { return const_cast<HashedIndex*>(this)->find(key); }
  bool contains(uint64_t key) const { return find(key) != nullptr; }
  size_t size() const { return size_; }
  // It is asked for soon: where several are, the processor can fetch them together.
  void bring_near(uint64_t key) const { __builtin_prefetch(&slots_[first_slot(key)]); }

  // The key's place, and whether it is new: one that is there already stays.
  std::pair<int32_t, bool> put(uint64_t key, int32_t place) {
    if (4 * (size_ + 1) > 3 * slots_.size()) grow();
    Slot& slot = slots_[slot_of(key)];
    if (slot.place != none) return {slot.place, false};
    slot = {.key = key, .place = place};
    ++size_;
    return {place, true};
  }

  void erase(uint64_t key) {
    size_t hole = slot_of(key);
    if (slots_[hole].place == none) return;
    --size_;
    // Those behind it move up as far as they may, so that a search that meets an empty slot is over.
    for (size_t i = next(hole); slots_[i].place != none; i = next(i)) {
      const size_t wanted = first_slot(slots_[i].key);
      const bool may_move = ((i - wanted) & (slots_.size() - 1)) >= ((i - hole) & (slots_.size() - 1));
      if (!may_move) continue;
      slots_[hole] = slots_[i];
      hole = i;
    }
    slots_[hole].place = none;
  }

 private:
  static constexpr int32_t none = -1;
  static constexpr size_t least_slots = 16;
  struct Slot {
    uint64_t key = 0;
    int32_t place = none;
  };

  // By the upper bits of a product, for keys that are small numbers too.
  size_t first_slot(uint64_t key) const {
    return static_cast<size_t>((key * 0x9e3779b97f4a7c15U) >> (64 - std::countr_zero(slots_.size())));
  }
  size_t next(size_t slot) const { return (slot + 1) & (slots_.size() - 1); }
  // Where it is, or would be put.
  size_t slot_of(uint64_t key) const {
    size_t slot = first_slot(key);
    while (slots_[slot].place != none && slots_[slot].key != key) slot = next(slot);
    return slot;
  }
  void grow() {
    std::vector<Slot> before(2 * slots_.size());
    before.swap(slots_);
    for (const Slot& one : before) {
      if (one.place != none) slots_[slot_of(one.key)] = one;
    }
  }

  std::vector<Slot> slots_;  // a power of two of them
  size_t size_ = 0;
};

}  // namespace foretoken
