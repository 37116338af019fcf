// What a search over serving layouts found, and how layouts compare.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "plan/serving/frontier.h"
#include "plan/serving/plan_evaluator.h"

namespace foretoken {

// The least that a request alone takes of what a limit is about, and by which layout.
struct FastestAlone {
  double ms = 0;
  ServingLayout layout;
};

// What became of the layouts of one engine on one device; layouts on two kinds of devices are in none of these.
struct TriedEngine {
  std::string device, engine;
  int64_t layouts = 0;
  std::array<int64_t, prune_reasons> pruned = {};  // by PruneReason
  int64_t simulated = 0;
  // Of those that cannot sustain the rate: the highest bound, and whose it is.
  double most_requests_per_s = 0;
  std::optional<ServingLayout> most_capable;
  std::vector<double> alone_ms;  // of each limit: the least that a request alone takes; empty where none starts
};

bool is_of(const ServingLayout& layout, const TriedEngine& tried);

struct ServingSearchResult {
  int64_t layouts = 0;
  bool by_closed_form = false;                     // nothing was simulated
  double largest_gap = 0;                          // LayoutSpace::largest_gap
  std::array<int64_t, prune_reasons> pruned = {};  // by PruneReason
  int64_t merged = 0;      // not simulated: they differ from others only in limits that no run reaches
  int64_t beaten = 0;      // not simulated: bounds, and what such layouts reach of theirs, leave no hope to be the best
  int64_t unexplored = 0;  // not simulated although their bounds are better: the search ended before
  bool stopped =
      false;  // by whoever asked: ranked by what was simulated until then, shortly where nothing was at length
  std::vector<PlanPoint> points;  // simulated; the longest run of each
  // Of `points` at length that serve what is asked: those with a promised capacity first, the best of each first.
  std::vector<size_t> ranking;
  std::vector<FrontierRun> frontier;        // most tokens/s of a user first
  std::vector<PlanRun> curve;               // of the winner; lowest rate first
  std::vector<FastestAlone> fastest_alone;  // of each limit; empty where no layout starts
  std::vector<TriedEngine> tried;           // every device on offer with every engine, in the question's order
  // Devices known by their sheets were ranked by the slow end of their intervals.
  bool ranked_by_slow_end = false;
  // Devices (devices_text) that serve nothing at the slow end: ranked by the middle, those of sheets after all others.
  std::set<std::string> ranked_by_middle = {};
  // Of the devices that do not serve the rate that is asked for: what they can do at all.
  std::shared_ptr<const ServingSearchResult> without_rate;

  const PlanPoint* winner() const { return ranking.empty() ? nullptr : &points[ranking.front()]; }
};

// What serves only by the middle of an interval that rests on a sheet comes after everything else.
bool serves_by_middle_alone(const ServingQuestion& question, const ServingSearchResult& result,
                            const ServingLayout& layout);

// Whether a layout serves what is asked, and how good it is: higher is better.
struct LayoutScore {
  bool is_priced = true;  // false where money decides and nobody knows what it costs: after all that have a price
  double first = 0, second = 0;
  auto operator<=>(const LayoutScore&) const = default;
};
// Nothing where it does not serve the rate asked for.
std::optional<LayoutScore> layout_score(const ServingQuestion& question, const ServingLayout& layout,
                                        double requests_per_s);

// What the winner's score may be lowered to by the tolerance of capacities (2%): layouts that reach it are tied with
// it.
std::optional<LayoutScore> tie_score(const ServingQuestion& question, const ServingLayout& winner,
                                     double requests_per_s);
// Places of tied points, the one to run first: the cheaper, then that with fewer GPUs; then those that are as fast for
// a user as any of them (within 5%), and of these the simplest to run: the fewest kinds of parallelism and of changed
// defaults, and the narrowest groups.
std::vector<size_t> preferred_of_ties(const ServingQuestion& question, std::span<const PlanPoint* const> tied);

// What a layout is ranked by: its capacity, or the slow end of it.
double ranked_capacity(const ServingQuestion& question, const ServingSearchResult& result, const PlanPoint& point);

// USD for a million output tokens with the interval of its capacity: faster or slower steps need fewer or more such
// engines; infinity where the layout sustains nothing at the slow end. Nothing where the point has no interval.
std::optional<Headline> usd_per_million_interval(const ServingQuestion& question, const PlanPoint& point);
// The run that a layout is shown by: at the rate asked for where it serves that, else at capacity; null = there is
// none.
const PlanRun* shown_run(const ServingQuestion& question, const PlanPoint& point);

// By so much, short runs may put the capacity elsewhere than long ones.
inline constexpr double short_run_error = 0.08;

// The knee of latency against rate: of these runs that keep the limits, the one with the highest rate times speed for a
// user (Kleinrock's power, ICC 1979: throughput over time). Null where fewer than three keep them.
const PlanRun* knee_of(std::span<const PlanRun> curve);

// The layout that serves most requests within the limits, whatever rate is asked for; null = none keeps them.
const PlanPoint* most_capable(const ServingSearchResult& result);

// Layouts of the ranking that cannot be told apart from the winner. On the same devices, step times go the same way for
// both, so that the ends of their intervals are compared with each other: tied are those that at one of the ends, or in
// the middle, are as good within what the search may be off by. On other devices: those that at the good end of their
// intervals are at least as good as the winner is at the bad end of its own.
std::vector<size_t> indistinguishable(const ServingQuestion& question, const ServingSearchResult& result);

}  // namespace foretoken
