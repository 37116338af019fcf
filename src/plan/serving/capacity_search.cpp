#include "plan/serving/capacity_search.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/portable_math.h"

namespace foretoken {
namespace {

// Powers of the rate with which what is used rises: where nothing tells, mostly at least, usually, at most.
constexpr double flat_slope = 0.5, least_slope = 8, usual_slope = usual_power_of_late, most_slope = 40;

// Far away, steps are no longer than that.
constexpr double longest_step = 1.5;

// How much is used at `width` times the tolerance below the answer.
double used_below(double within, double width, double slope = least_slope) {
  return portable_exp(-width * slope * portable_log(within));
}

}  // namespace

RateSearch::RateSearch(const CapacitySearch& search)
    : search_(search),
      within_(1 + search.tolerance),
      step_(search.first_step),
      next_(std::clamp(search.start, search.lowest, search.highest)) {
  ensure(search.lowest > 0 && search.lowest <= search.highest && search.tolerance > 0, "a range of rates to search");
}

std::optional<double> RateSearch::after(const TriedRate& tried) {
  (tried.holds ? good_ : bad_) = {.rate = next_, .used = tried.used};
  if (tried.holds && next_ >= search_.highest) return next_;
  if (!tried.holds && next_ <= search_.lowest) return 0;
  if (tried.used && last_.used && *tried.used > 0 && *last_.used > 0) {
    last_slope_ = portable_log(*tried.used / *last_.used) / portable_log(next_ / last_.rate);
  }
  last_ = {.rate = next_, .used = tried.used};
  if (tried.holds && tried.used && *tried.used >= used_below(within_, 1, least_slope_known())) return next_;
  if (good_.rate > 0 && bad_.rate > 0) {
    if (bad_.rate / good_.rate <= within_) return good_.rate;
    next_ = between(tried);
  } else {
    const double by = outwards(tried);
    next_ = std::clamp(tried.holds ? good_.rate * by : bad_.rate / by, search_.lowest, search_.highest);
    step_ *= 1.2;  // far away, an answer need not be enclosed finely
  }
  return std::nullopt;
}

// A little beyond the guess, so that it is enclosed; guesses that were too near before are no longer trusted.
double RateSearch::outwards(const TriedRate& tried) {
  if (tried.used && *tried.used > 0) return outwards_by_used(*tried.used);
  if (!tried.reach) return step_;
  const double least = ++steps_ > 1 ? std::max(within_, std::sqrt(step_)) : within_;
  return std::max(least, (tried.holds ? *tried.reach : 1 / *tried.reach) * std::sqrt(within_));
}

// To where a trial that holds would end the search.
double RateSearch::outwards_by_used(double used) const {
  const double ratio = std::abs(portable_log(used_below(within_, 0.5) / used));
  return std::clamp(portable_exp(ratio / slope()), within_, longest_step);
}

// Latencies may hardly rise with the rate, so that much less than all is used far from the answer.
double RateSearch::least_slope_known() const {
  return std::clamp(last_slope_.value_or(flat_slope), flat_slope, least_slope);
}

double RateSearch::slope() const {
  return std::clamp(last_slope_.value_or(usual_slope), least_slope / 2, most_slope);
}

// The guess, as long as guesses are at least as good as halves. At the tolerance from one end, a trial may end it all.
double RateSearch::between(const TriedRate& tried) {
  const double good = good_.rate, bad = bad_.rate;
  const double middle = std::sqrt(good * bad);
  const double width = bad / good;
  const bool shrinks = last_width_ == 0 || (width - 1) <= 0.5 * (last_width_ - 1);
  last_width_ = width;
  if (!shrinks || width <= within_ * within_) return middle;
  std::optional<double> guess = between_by_used();
  if (!guess && tried.holds && tried.used && *tried.used > 0) guess = good * outwards_by_used(*tried.used);
  if (!guess && tried.reach) guess = (tried.holds ? good : bad) * *tried.reach;
  return guess ? std::clamp(*guess, good * within_, bad / within_) : middle;
}

std::optional<double> RateSearch::between_by_used() const {
  if (!good_.used || !bad_.used || *good_.used <= 0 || *bad_.used <= *good_.used) return std::nullopt;
  const double share = portable_log(used_below(within_, 0.5) / *good_.used) / portable_log(*bad_.used / *good_.used);
  return good_.rate * portable_exp(std::clamp(share, 0.0, 1.0) * portable_log(bad_.rate / good_.rate));
}

double highest_rate(const CapacitySearch& search, const std::function<TriedRate(double rate)>& trial) {
  RateSearch rates(search);
  while (true) {
    if (const std::optional<double> found = rates.after(trial(rates.next()))) return *found;
  }
}

double highest_rate(const CapacitySearch& search, const std::function<bool(double rate)>& holds) {
  return highest_rate(search, [&](double rate) { return TriedRate{.holds = holds(rate)}; });
}

}  // namespace foretoken
