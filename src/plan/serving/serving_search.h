// The best layouts for a question: all are judged by closed forms, the promising ones simulated shortly, the best few
// at length.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "plan/serving/plan_evaluator.h"

namespace foretoken {

struct SearchLimits {
  size_t quick = 96;         // most layouts to simulate shortly
  size_t full = 6;           // most to simulate at length, unless none of them serves the rate
  bool closed_form = false;  // none of that: the best layout of each kind by closed forms
  size_t round = 8;          // simulated before the next are chosen; the same for any number of threads
};

// What the speed of a user is traded for.
enum class FrontierMeasure : uint8_t {
  work,   // most output tokens/s of a device
  cost,   // least USD for an output token, where prices are known
  energy  // least joules for an output token, where power is known
};
inline constexpr size_t frontier_measures = 3;

// A run such that none is faster for a user and better in every one of the measures that it is best in.
struct FrontierRun {
  size_t point = 0, run = 0;  // places in ServingSearchResult::points and its runs
  double tokens_per_s_of_user = 0;
  double tokens_per_s_of_device = 0;
  std::array<bool, frontier_measures> best_in = {};  // by FrontierMeasure: at this speed or a higher one
};

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
  std::vector<PlanPoint> points;            // simulated, in the order of the layouts; the longest run of each
  std::vector<size_t> ranking;              // of `points` at full effort that serve what is asked: best first
  std::vector<FrontierRun> frontier;        // most tokens/s of a user first
  std::vector<PlanRun> curve;               // of the winner, by short runs (Effort::curve); lowest rate first
  std::vector<FastestAlone> fastest_alone;  // of each limit; empty where no layout starts
  std::vector<TriedEngine> tried;           // every device on offer with every engine, in the question's order
  // Devices known by their sheets alone were ranked by the slow end of their intervals. False where there are none, and
  // where nothing else serves what is asked.
  bool ranked_by_slow_end = false;
  // Where no layout serves the rate that is asked for: what the devices can do at all.
  std::shared_ptr<const ServingSearchResult> without_rate;

  const PlanPoint* winner() const { return ranking.empty() ? nullptr : &points[ranking.front()]; }
};

// Whether a layout serves what is asked, and how good it is: higher is better.
struct LayoutScore {
  double first = 0, second = 0;
  auto operator<=>(const LayoutScore&) const = default;
};
// Nothing where it does not serve the rate asked for.
std::optional<LayoutScore> layout_score(const ServingQuestion& question, const ServingLayout& layout,
                                        double requests_per_s);

// What a layout is ranked by: its capacity, or the slow end of it.
double ranked_capacity(const ServingQuestion& question, const ServingSearchResult& result, const PlanPoint& point);

// USD for a million output tokens; nothing where the price is not known.
std::optional<double> usd_per_million_tokens(const ServingQuestion& question, const ServingLayout& layout,
                                             const PlanRun& run);
// The same with the interval of its capacity: faster or slower steps need fewer or more such engines. Nothing where the
// point has no interval.
std::optional<Headline> usd_per_million_interval(const ServingQuestion& question, const PlanPoint& point);
// The run that a layout is shown by: at the rate asked for where it serves that, else at capacity; null = there is
// none.
const PlanRun* shown_run(const ServingQuestion& question, const PlanPoint& point);

// The knee of latency against rate: of these runs that keep the limits, the one with the highest rate times speed for a
// user (Kleinrock's power, ICC 1979: throughput over time). Null where fewer than three keep them.
const PlanRun* knee_of(std::span<const PlanRun> curve);

// Deterministic. Layouts whose scores are as near as bisection can tell are ranked by their cost, then those without
// host memory below their caches first, then by their speed for a user. `tell` hears what is being done; `check_wanted`
// is called often. Where the evaluator or that throws SearchStopped, the answer is made of what was simulated until
// then; where nothing was, it is thrown here too.
ServingSearchResult search_serving_layouts(const ServingQuestion& question, PlanEvaluator& evaluator,
                                           const SearchLimits& limits = {},
                                           const std::function<void(const std::string&)>& tell = {},
                                           const std::function<void()>& check_wanted = {});

// Layouts of the ranking that cannot be told apart from the winner: at the good end of their intervals they are at
// least as good as the winner is at the bad end of its own.
std::vector<size_t> indistinguishable(const ServingQuestion& question, const ServingSearchResult& result);

}  // namespace foretoken
