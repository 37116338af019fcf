#include "plan/serving/most_in_flight.h"

#include <algorithm>
#include <cmath>

#include "plan/serving/capacity_search.h"

namespace foretoken {
namespace {

// By Little's law, at the capacity of requests that arrive at a rate.
double usual_in_flight(const PlanPoint& known, const Traffic& traffic) {
  const PlanRun* run = known.at_capacity();
  if (run == nullptr || run->tokens_per_s_of_user <= 0) return 1;
  return std::max(1.0, run->rate * traffic.lengths().mean_output / run->tokens_per_s_of_user);
}

}  // namespace

int64_t most_in_flight(const ServingQuestion& question, const Traffic& traffic, const ServingFacts& facts,
                       const PlanPoint& known, const std::function<void()>& check_wanted) {
  constexpr CapacitySearch search{.lowest = 1, .highest = 1e6, .tolerance = 0.02};
  constexpr double a_little_less = 0.97;
  ServingQuestion closed = question;
  closed.rate.reset();
  EngineShelf shelf(closed, facts, traffic);
  // A search for the best layout goes on from short runs, to which all requests that are sent at first matter more.
  const auto keeps_limits = [&](int64_t in_flight, Effort effort) {
    closed.in_flight = in_flight;
    LayoutSimulator simulator(closed, traffic, shelf, check_wanted);
    const PlanPoint shortly = simulator.evaluate(known.layout, Effort::quick);
    if (shortly.capacity.value <= 0) return false;
    return simulator.evaluate(known.layout, effort).capacity.value > 0;
  };
  CapacitySearch near = search;
  near.start = usual_in_flight(known, traffic);
  const double found =
      highest_rate(near, [&](double load) { return keeps_limits(whole_in_flight(load), Effort::full); });
  int64_t most = found > 0 ? whole_in_flight(found) : 0;
  // One stretch of requests may flatter the layout.
  while (most > 0 && !keeps_limits(most, Effort::promised)) {
    most = std::min(most - 1, static_cast<int64_t>(std::floor(static_cast<double>(most) * a_little_less)));
  }
  return most;
}

}  // namespace foretoken
