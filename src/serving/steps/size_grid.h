// Values of an expensive function of sizes, worked out on a grid when they are first needed and interpolated linearly.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/estimate.h"

namespace foretoken {

// Every size up to twice `steps`, then so many equal steps to each doubling. With 4: 0, 1, ..., 8, 10, 12, 14, 16, 20,
// ...
struct SizeCell {
  int64_t lower = 0, upper = 1;  // neighbours in the grid
  uint64_t index = 0;            // of `lower`; `upper` has the next
  double share = 0;              // of the way from lower to upper
};

// `steps` is a power of two.
inline SizeCell size_cell(double size, int64_t steps) {
  const auto whole = static_cast<int64_t>(size);
  SizeCell cell{.lower = whole, .upper = whole + 1, .index = static_cast<uint64_t>(whole)};
  if (whole >= 2 * steps) {
    const auto doubling = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(whole)));
    const auto doublings = std::countr_zero(static_cast<uint64_t>(doubling / (2 * steps)));
    const int64_t step = doubling / steps;
    cell.lower = whole / step * step;
    cell.upper = cell.lower + step;
    cell.index = static_cast<uint64_t>(2 * steps + steps * doublings + (whole - doubling) / step);
  }
  cell.share = (size - static_cast<double>(cell.lower)) / static_cast<double>(cell.upper - cell.lower);
  return cell;
}

// A function of `Axes` sizes below 2^31 and of one number more that is never interpolated.
template <size_t Axes, int64_t Steps>
class SizeGrid {
 public:
  using Point = std::array<double, Axes>;
  using Node = std::array<int64_t, Axes>;

  // `at_node` gives the value at whole sizes.
  template <class AtNode>
  Estimate at(uint64_t exact, const Point& point, const AtNode& at_node) {
    std::array<SizeCell, Axes> cells;
    for (size_t i = 0; i < Axes; ++i) cells[i] = size_cell(point[i], Steps);
    Estimate sum;
    for (size_t corner = 0; corner < size_t{1} << Axes; ++corner) {
      double weight = 1;
      uint64_t key = exact;
      Node node;
      for (size_t i = 0; i < Axes; ++i) {
        const bool upper = (corner >> i & 1U) != 0;
        weight *= upper ? cells[i].share : 1 - cells[i].share;
        key = key << 8U | (cells[i].index + (upper ? 1 : 0));
        node[i] = upper ? cells[i].upper : cells[i].lower;
      }
      if (weight == 0) continue;
      size_t slot = slot_of(key);
      if (keys_[slot] != key) {
        insert(key, at_node(node));
        slot = slot_of(key);
      }
      const Estimate& value = values_[slot];
      sum.value += weight * value.value;
      sum.low += weight * value.low;
      sum.high += weight * value.high;
      sum.kind = std::max(sum.kind, value.kind);
    }
    return sum;
  }

 private:
  // Open addressing: a step asks for up to 32 nodes, and a std::unordered_map would take most of its time.
  static constexpr uint64_t empty = ~uint64_t{0};

  size_t slot_of(uint64_t key) const {
    size_t slot = (key * 0x9e3779b97f4a7c15U) >> 32U & (keys_.size() - 1);
    while (keys_[slot] != key && keys_[slot] != empty) slot = (slot + 1) & (keys_.size() - 1);
    return slot;
  }

  void insert(uint64_t key, const Estimate& value) {
    if (2 * ++filled_ > keys_.size()) {
      std::vector<uint64_t> keys(2 * keys_.size(), empty);
      std::vector<Estimate> values(keys.size());
      keys.swap(keys_);
      values.swap(values_);
      for (size_t i = 0; i < keys.size(); ++i) {
        if (keys[i] != empty) place(keys[i], values[i]);
      }
    }
    place(key, value);
  }

  void place(uint64_t key, const Estimate& value) {
    const size_t slot = slot_of(key);
    keys_[slot] = key;
    values_[slot] = value;
  }

  std::vector<uint64_t> keys_ = std::vector<uint64_t>(64, empty);
  std::vector<Estimate> values_ = std::vector<Estimate>(64);
  size_t filled_ = 0;
};

}  // namespace foretoken
