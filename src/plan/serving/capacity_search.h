// The highest rate at which something holds, by as few trials as possible.
#pragma once

#include <functional>
#include <optional>

namespace foretoken {

// Near a capacity, late requests usually rise with this power of the rate.
constexpr double usual_power_of_late = 16;

struct CapacitySearch {
  double start = 1;          // first rate to try
  double lowest = 1e-3;      // below that there is none
  double highest = 1e12;     // never tried beyond
  double tolerance = 0.02;   // of the rate
  double first_step = 1.25;  // to the second rate where nothing tells better; smaller where `start` is a good guess
};

// What a trial at a rate tells.
struct TriedRate {
  bool holds = false;
  std::optional<double> reach = {};  // about so many times the rate would just hold; a guess
  // Of what may go wrong, how much does: up to 1 where it holds. Better than a guess: from how it rises with the rate,
  // a rate near enough to the answer is known without one beyond it.
  std::optional<double> used = {};
};

// One search, trial by trial. It is taken to hold up to some rate and not beyond; where that is not so, the answer is
// one of the rates at which it turns. Trials that tell how far they are from the answer are followed; else rates rise
// or fall by `first_step` and more until the answer is enclosed, which is then bisected.
class RateSearch {
 public:
  explicit RateSearch(const CapacitySearch& search);

  double next() const { return next_; }  // rate to try
  // The answer, or nothing where there is more to try. 0 where it does not even hold at the lowest rate.
  std::optional<double> after(const TriedRate& tried);

 private:
  struct Tried {
    double rate = 0;  // 0 = none yet
    std::optional<double> used = {};
  };
  double outwards(const TriedRate& tried);
  double outwards_by_used(double used) const;
  double between(const TriedRate& tried);
  std::optional<double> between_by_used() const;
  double slope() const;
  double least_slope_known() const;

  CapacitySearch search_;
  double within_, step_;
  double next_ = 0, last_width_ = 0;
  Tried good_, bad_, last_;
  std::optional<double> last_slope_;  // of what is used, between the last two rates
  int steps_ = 0;
};

double highest_rate(const CapacitySearch& search, const std::function<TriedRate(double rate)>& trial);
double highest_rate(const CapacitySearch& search, const std::function<bool(double rate)>& holds);

}  // namespace foretoken
