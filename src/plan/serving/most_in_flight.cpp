#include "plan/serving/most_in_flight.h"

#include <algorithm>
#include <map>

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
  ServingQuestion closed = question;
  closed.rate.reset();
  EngineShelf shelf(closed, facts, traffic);
  const auto keeps_limits = [&](int64_t in_flight, Effort effort) {
    closed.in_flight = in_flight;
    LayoutSimulator simulator(closed, traffic, shelf, check_wanted);
    // A search for the best layout goes on from these.
    const PlanPoint shortly = simulator.evaluate(known.layout, Effort::quick);
    if (shortly.capacity.value <= 0) return false;
    return effort == Effort::quick || simulator.evaluate(known.layout, effort).capacity.value > 0;
  };
  // One stretch of the requests tells where to begin: it may flatter the layout, or wrong it.
  const auto most_by = [&](Effort effort, double start) -> double {
    CapacitySearch near = search;
    near.start = start;
    if (effort == Effort::promised) near.first_step = 1 + 1.5 * search.tolerance;
    std::map<int64_t, bool> judged;  // neighbouring loads are the same whole number
    return highest_rate(near, [&](double load) {
      const int64_t in_flight = whole_in_flight(load);
      const auto found = judged.find(in_flight);
      return found != judged.end() ? found->second
                                   : judged.emplace(in_flight, keeps_limits(in_flight, effort)).first->second;
    });
  };
  const double by_one_stretch = most_by(Effort::quick, usual_in_flight(known, traffic));
  if (by_one_stretch <= 0) return 0;
  const double most = most_by(Effort::promised, by_one_stretch);
  return most > 0 ? whole_in_flight(most) : 0;
}

}  // namespace foretoken
