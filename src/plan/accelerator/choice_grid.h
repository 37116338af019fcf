// Places of a search: one choice of every knob, by number.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <vector>

#include "base/random.h"

namespace foretoken {

using DesignPoint = std::vector<int>;  // by knob: which of its values

struct ChoiceGrid {
  std::vector<int> choices;                         // by knob: how many values
  std::function<bool(const DesignPoint&)> allowed;  // within limits that need no search of mappings

  double size() const;                   // points, allowed or not
  DesignPoint at(int64_t number) const;  // 0 to size - 1; the first knob turns slowest
};

// Hands out points of a grid, allowed ones only and none twice. The grid outlives it.
class FreshPoints {
 public:
  FreshPoints(const ChoiceGrid& grid, RandomStream stream) : grid_(grid), stream_(stream) {}

  // Whether the point is allowed and was not taken before; it is taken now.
  bool take(const DesignPoint& point);
  bool is_fresh(const DesignPoint& point) const;  // as take, but takes nothing
  void mark(const DesignPoint& point) { taken_.insert(point); }
  // Any, each equally likely; nothing when none is left, or in a large grid none was found in many draws. Not taken.
  std::optional<DesignPoint> draw();
  std::vector<DesignPoint> take_any(size_t count);  // drawn and taken; fewer when no more were found

  RandomStream& stream() { return stream_; }
  const ChoiceGrid& grid() const { return grid_; }

 private:
  const ChoiceGrid& grid_;
  RandomStream stream_;
  std::set<DesignPoint> taken_;
};

}  // namespace foretoken
