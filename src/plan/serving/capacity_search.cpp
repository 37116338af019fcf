#include "plan/serving/capacity_search.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace foretoken {

double highest_rate(const CapacitySearch& search, const std::function<bool(double rate)>& holds) {
  ensure(search.lowest > 0 && search.lowest <= search.highest && search.tolerance > 0, "a range of rates to search");
  const double start = std::clamp(search.start, search.lowest, search.highest);
  double good = 0, bad = 0;
  double step = search.first_step;  // grows: far away, an answer need not be enclosed finely
  if (holds(start)) {
    good = start;
    while (bad == 0) {
      if (good >= search.highest) return good;
      const double next = std::min(good * step, search.highest);
      (holds(next) ? good : bad) = next;
      step *= 1.2;
    }
  } else {
    bad = start;
    while (good == 0) {
      if (bad <= search.lowest) return 0;
      const double next = std::max(bad / step, search.lowest);
      (holds(next) ? good : bad) = next;
      step *= 1.2;
    }
  }
  while (bad / good > 1 + search.tolerance) {
    const double middle = std::sqrt(good * bad);
    (holds(middle) ? good : bad) = middle;
  }
  return good;
}

}  // namespace foretoken
