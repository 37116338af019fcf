#include "plan/serving/capacity_search.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace foretoken {
namespace {

// The answer lies between a rate that holds and one that does not.
class Enclosure {
 public:
  explicit Enclosure(const CapacitySearch& search)
      : search_(search), within_(1 + search.tolerance), step_(search.first_step) {}

  double next() const { return next_; }
  void begin() { next_ = std::clamp(search_.start, search_.lowest, search_.highest); }

  // Nothing where there is more to try.
  std::optional<double> after(const TriedRate& tried) {
    (tried.holds ? good_ : bad_) = next_;
    if (tried.holds && next_ >= search_.highest) return next_;
    if (!tried.holds && next_ <= search_.lowest) return 0;
    if (good_ > 0 && bad_ > 0) {
      if (bad_ / good_ <= within_) return good_;
      next_ = between(tried);
    } else {
      next_ = std::clamp(tried.holds ? good_ * outwards(tried.reach) : bad_ / outwards(inverse(tried.reach)),
                         search_.lowest, search_.highest);
      step_ *= 1.2;  // far away, an answer need not be enclosed finely
    }
    return std::nullopt;
  }

 private:
  static std::optional<double> inverse(std::optional<double> reach) {
    return reach ? std::optional(1 / *reach) : std::nullopt;
  }

  // A little beyond the guess, so that it is enclosed; guesses that were too near before are no longer trusted.
  double outwards(std::optional<double> reach) {
    if (!reach) return step_;
    const double least = ++steps_ > 1 ? std::max(within_, std::sqrt(step_)) : within_;
    return std::max(least, *reach * std::sqrt(within_));
  }

  // The guess, as long as guesses are at least as good as halves. At the tolerance from one end, a trial may end it
  // all.
  double between(const TriedRate& tried) {
    const double middle = std::sqrt(good_ * bad_);
    const double width = bad_ / good_;
    const bool shrinks = last_width_ == 0 || (width - 1) <= 0.5 * (last_width_ - 1);
    last_width_ = width;
    if (!tried.reach || !shrinks || width <= within_ * within_) return middle;
    const double guess = (tried.holds ? good_ : bad_) * *tried.reach;
    return std::clamp(guess, good_ * within_, bad_ / within_);
  }

  const CapacitySearch& search_;
  double within_, step_;
  double next_ = 0, good_ = 0, bad_ = 0, last_width_ = 0;
  int steps_ = 0;
};

}  // namespace

double highest_rate(const CapacitySearch& search, const std::function<TriedRate(double rate)>& trial) {
  ensure(search.lowest > 0 && search.lowest <= search.highest && search.tolerance > 0, "a range of rates to search");
  Enclosure enclosure(search);
  enclosure.begin();
  while (true) {
    if (const std::optional<double> found = enclosure.after(trial(enclosure.next()))) return *found;
  }
}

double highest_rate(const CapacitySearch& search, const std::function<bool(double rate)>& holds) {
  return highest_rate(search, [&](double rate) { return TriedRate{.holds = holds(rate)}; });
}

}  // namespace foretoken
