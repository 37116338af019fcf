// Where the words of a layer lie, and the order in which SCALE-Sim fetches them when it is given a bandwidth.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "accelerator/systolic/array.h"
#include "accelerator/systolic/compute.h"

namespace foretoken {

class OperandAddresses {
 public:
  explicit OperandAddresses(const SystolicLayer& layer);

  int64_t input_addresses() const { return input_addresses_; }
  int64_t weight_addresses() const { return depth_ * filters_; }

  // Input of output position `m` at place `k` of its window; -1 = past the edge of the input.
  int64_t input_address(int64_t m, int64_t k) const {
    const Place& window = windows_[static_cast<size_t>(m)];
    const Place& place = places_[static_cast<size_t>(k)];
    if (window.row + place.row >= height_ || window.column + place.column >= width_) return -1;
    return window.address + place.address;
  }
  int64_t weight_address(int64_t k, int64_t n) const { return n * depth_ + k; }

 private:
  struct Place {
    int64_t row = 0;
    int64_t column = 0;
    int64_t address = 0;
  };
  int64_t height_;
  int64_t width_;
  int64_t depth_;
  int64_t filters_;
  int64_t input_addresses_;
  std::vector<Place> windows_;  // per output position: its window's corner
  std::vector<Place> places_;   // per place of a window: from that corner
};

using PrefetchOrder = std::function<std::vector<int64_t>()>;

// Addresses, -1 for a lane without work. Streamed operands come along the diagonals in which the array takes them,
// held ones row by row.
std::vector<int64_t> input_prefetch_order(const SystolicArray& array, const SystolicProjection& shape,
                                          const OperandAddresses& operands);
std::vector<int64_t> weight_prefetch_order(const SystolicArray& array, const SystolicProjection& shape,
                                           const OperandAddresses& operands);

}  // namespace foretoken
