#include "plan/accelerator/choice_grid.h"

namespace foretoken {

double ChoiceGrid::size() const {
  double points = 1;
  for (const int count : choices) points *= count;
  return points;
}

DesignPoint ChoiceGrid::at(int64_t number) const {
  DesignPoint point(choices.size());
  for (size_t k = choices.size(); k-- > 0;) {
    point[k] = static_cast<int>(number % choices[k]);
    number /= choices[k];
  }
  return point;
}

bool FreshPoints::is_fresh(const DesignPoint& point) const {
  return !taken_.contains(point) && grid_.allowed(point);
}

bool FreshPoints::take(const DesignPoint& point) {
  if (!is_fresh(point)) return false;
  taken_.insert(point);
  return true;
}

std::optional<DesignPoint> FreshPoints::draw() {
  constexpr int most_draws = 200;
  DesignPoint point(grid_.choices.size());
  for (int i = 0; i < most_draws; ++i) {
    for (size_t k = 0; k < point.size(); ++k) point[k] = static_cast<int>(stream_.below(grid_.choices[k]));
    if (is_fresh(point)) return point;
  }
  // Few are left, or few are allowed: the next one from any place on.
  constexpr double most_walked = 1 << 16;
  if (grid_.size() > most_walked) return std::nullopt;
  const auto size = static_cast<int64_t>(grid_.size());
  const auto start = static_cast<int64_t>(stream_.below(size));
  for (int64_t i = 0; i < size; ++i) {
    point = grid_.at((start + i) % size);
    if (is_fresh(point)) return point;
  }
  return std::nullopt;
}

std::vector<DesignPoint> FreshPoints::take_any(size_t count) {
  std::vector<DesignPoint> points;
  while (points.size() < count) {
    const auto point = draw();
    if (!point) break;
    mark(*point);
    points.push_back(*point);
  }
  return points;
}

}  // namespace foretoken
