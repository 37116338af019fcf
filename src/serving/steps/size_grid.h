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
    // All are powers of two: divisions would take most of the time of a step.
    const int doubling = static_cast<int>(std::bit_width(static_cast<uint64_t>(whole))) - 1;
    const int of_steps = std::countr_zero(static_cast<uint64_t>(steps));
    const int step = doubling - of_steps;
    cell.lower = whole >> step << step;
    cell.upper = cell.lower + (int64_t{1} << step);
    cell.index = static_cast<uint64_t>(2 * steps + steps * (step - 1) + ((whole - (int64_t{1} << doubling)) >> step));
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
    constexpr size_t corners = size_t{1} << Axes;
    std::array<SizeCell, Axes> cells;
    std::array<double, corners> weights;
    std::array<uint64_t, corners> keys;
    weights[0] = 1;
    keys[0] = exact;
    for (size_t i = 0, known = 1; i < Axes; ++i, known *= 2) {
      cells[i] = size_cell(point[i], Steps);
      for (size_t corner = 0; corner < known; ++corner) {
        weights[known + corner] = weights[corner] * cells[i].share;
        weights[corner] *= 1 - cells[i].share;
        keys[known + corner] = keys[corner] << 8U | (cells[i].index + 1);
        keys[corner] = keys[corner] << 8U | cells[i].index;
      }
    }
    Estimate sum;
    for (size_t corner = 0; corner < corners; ++corner) {
      const double weight = weights[corner];
      const uint64_t key = keys[corner];
      if (weight == 0) continue;
      size_t slot = slot_of(key);
      if (keys_[slot] != key) {
        Node node;
        for (size_t i = 0; i < Axes; ++i) node[i] = (corner >> i & 1U) != 0 ? cells[i].upper : cells[i].lower;
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
