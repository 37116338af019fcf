#include "compose/edge/transposes.h"

#include <algorithm>
#include <numeric>

namespace foretoken {

TransposeOrder transpose_order(const OnnxNodeView& node) {
  TransposeOrder order;
  if (node.node().operation != "Transpose") return order;
  order.dims = node.dims(0);
  std::vector<int64_t> reversed(order.dims.size());
  std::iota(reversed.rbegin(), reversed.rend(), 0);
  order.axes = node.list_attribute("perm", std::move(reversed));
  const auto is_axis = [&](int64_t axis) { return axis >= 0 && axis < static_cast<int64_t>(order.dims.size()); };
  // Sizes that are only assumed need not have the order's rank.
  if (order.axes.size() != order.dims.size() || !std::all_of(order.axes.begin(), order.axes.end(), is_axis))
    order.axes.clear();
  return order;
}

bool swaps_last_axes(const TransposeOrder& order) {
  const size_t rank = order.axes.size();
  if (rank < 2) return false;
  std::vector<int64_t> swapped(rank);
  std::iota(swapped.begin(), swapped.end(), 0);
  std::swap(swapped[rank - 1], swapped[rank - 2]);
  return order.axes == swapped;
}

bool moves_first_axis(const TransposeOrder& order) {
  const size_t rank = order.axes.size();
  if (rank < 3) return false;
  const auto last = static_cast<int64_t>(rank) - 1;
  const bool ends_alike = (order.axes[rank - 2] == 0 && order.axes[rank - 1] == last) ||
                          (order.axes[rank - 2] == last && order.axes[rank - 1] == 0);
  for (size_t i = 0; i + 2 < rank; ++i) {
    if (order.axes[i] != static_cast<int64_t>(i) + 1) return false;
  }
  return ends_alike;
}

bool keeps_elements_in_order(const TransposeOrder& order) {
  int64_t last = -1;
  for (const int64_t axis : order.axes) {
    if (order.dims[static_cast<size_t>(axis)] == 1) continue;
    if (axis < last) return false;
    last = axis;
  }
  return true;
}

bool moves_last_axis(const TransposeOrder& order) {
  return !order.axes.empty() && order.axes.back() + 1 != static_cast<int64_t>(order.axes.size());
}

}  // namespace foretoken
