// Values of an expensive function of sizes, worked out on a grid when they are first needed and interpolated linearly.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "base/estimate.h"

namespace foretoken {

// Sizes 0 to 8, then four equal steps to each doubling: 10, 12, 14, 16, 20, 24, ...
struct SizeCell {
  int64_t lower = 0, upper = 1;  // neighbours in the grid
  uint64_t index = 0;            // of `lower`; `upper` has the next
  double share = 0;              // of the way from lower to upper
};

inline SizeCell size_cell(double size) {
  const auto whole = static_cast<int64_t>(size);
  SizeCell cell{.lower = whole, .upper = whole + 1, .index = static_cast<uint64_t>(whole)};
  if (whole >= 8) {
    const auto octave = static_cast<int>(std::bit_width(static_cast<uint64_t>(whole))) - 1;
    const int64_t step = int64_t{1} << (octave - 2);
    cell.lower = whole / step * step;
    cell.upper = cell.lower + step;
    cell.index = static_cast<uint64_t>(8 + 4 * (octave - 3) + (whole - (int64_t{1} << octave)) / step);
  }
  cell.share = (size - static_cast<double>(cell.lower)) / static_cast<double>(cell.upper - cell.lower);
  return cell;
}

// A function of `Axes` sizes below 2^31 and of one number more that is never interpolated.
template <size_t Axes>
class SizeGrid {
 public:
  using Point = std::array<double, Axes>;
  using Node = std::array<int64_t, Axes>;

  // `at_node` gives the value at whole sizes.
  template <class AtNode>
  Estimate at(uint64_t exact, const Point& point, const AtNode& at_node) {
    std::array<SizeCell, Axes> cells;
    for (size_t i = 0; i < Axes; ++i) cells[i] = size_cell(point[i]);
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
      auto found = values_.find(key);
      if (found == values_.end()) found = values_.emplace(key, at_node(node)).first;
      const Estimate& value = found->second;
      sum.value += weight * value.value;
      sum.low += weight * value.low;
      sum.high += weight * value.high;
      sum.kind = std::max(sum.kind, value.kind);
    }
    return sum;
  }

 private:
  std::unordered_map<uint64_t, Estimate> values_;  // never iterated
};

}  // namespace foretoken
