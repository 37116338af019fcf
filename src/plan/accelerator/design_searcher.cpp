#include "plan/accelerator/design_searcher.h"

#include <algorithm>
#include <limits>

namespace foretoken {

std::vector<double> single_scores(std::span<const JudgedPoint> judged, double weight) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  struct Seen {
    double least = infinity, most = -infinity;
    double share(double value) const { return most > least ? (value - least) / (most - least) : 0; }
  };
  Seen first, second;
  const auto widen = [](Seen& seen, double value) {
    seen.least = std::min(seen.least, value);
    seen.most = std::max(seen.most, value);
  };
  for (const JudgedPoint& own : judged) {
    if (own.logs.size() < 2) continue;
    widen(first, own.logs[0]);
    widen(second, own.logs[1]);
  }
  std::vector<double> scores;
  for (const JudgedPoint& own : judged) {
    if (own.logs.size() < 2) {
      scores.push_back(own.logs.empty() ? infinity : own.logs[0]);
      continue;
    }
    constexpr double of_the_sum = 0.05;
    const double a = weight * first.share(own.logs[0]), b = (1 - weight) * second.share(own.logs[1]);
    scores.push_back(std::max(a, b) + of_the_sum * (a + b));
  }
  return scores;
}

}  // namespace foretoken
