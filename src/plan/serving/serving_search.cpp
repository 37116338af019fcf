#include "plan/serving/serving_search.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

namespace foretoken {
namespace {

// Searches every device by itself, so that what is found of one does not depend on the others, and layouts on two kinds
// of devices after them.
class SearchOfParts {
 public:
  SearchOfParts(const ServingQuestion& question, PlanEvaluator& evaluator, const SearchLimits& limits,
                const std::function<void(const std::string&)>& tell, const std::function<void()>& check_wanted)
      : question_(question), evaluator_(evaluator), limits_(limits), tell_(tell), check_wanted_(check_wanted) {}

  ServingSearchResult run() {
    make_parts();
    without_rate_ = question_;
    without_rate_.rate.reset();
    without_rate_.objective = PlanObjective::capacity;
    ServingSearchResult all, lower;
    bool has_lower = false;
    for (const SearchedPart& part : parts_) {
      std::optional<LayoutScore> to_beat;
      if (part.hardware == nullptr) {
        rank(question_, all);
        if (all.winner() != nullptr) to_beat = score(question_, all, *all.winner());
      }
      ServingSearchResult found = search(question_, part, all.stopped, to_beat);
      const bool wants_lower = found.ranking.empty() && question_.rate && !found.stopped && part.hardware != nullptr;
      if (wants_lower) {
        say("no layout serves the rate; searching for the highest rate of this device", part);
        ServingSearchResult most = search(without_rate_, part, false, {});
        found.stopped = most.stopped;
        adopt_what_serves(found, most);
        add(lower, std::move(most));
        has_lower = true;
      }
      add(all, std::move(found));
    }
    if (all.stopped && all.points.empty()) throw SearchStopped();
    rank(question_, all);
    if (has_lower) {
      rank(without_rate_, lower);
      all.without_rate = std::make_shared<ServingSearchResult>(std::move(lower));
    }
    draw_curve(all);
    keep_runs_of_curve(all);
    all.frontier = frontier_of(question_, all.points);
    return all;
  }

 private:
  void say(const std::string& text, const SearchedPart& part) const {
    if (!tell_) return;
    tell_(parts_.size() == 1 ? text : fmt::format("{}: {}", name_of(part), text));
  }
  static std::string name_of(const SearchedPart& part) {
    return part.hardware != nullptr ? part.hardware->device.name : "two kinds of devices";
  }

  void make_parts() {
    check_budget(question_);
    std::vector<ServingLayout> layouts;
    const auto add_part = [&](SearchedPart part) {
      layouts.insert(layouts.end(), part.space.layouts.begin(), part.space.layouts.end());
      parts_.push_back(std::move(part));
    };
    for (const HardwareChoice& hardware : question_.hardware) {
      ServingQuestion alone = question_;
      alone.hardware = {hardware};
      add_part({.hardware = &hardware, .space = layout_space(alone, check_wanted_), .judgements = {}});
    }
    if (question_.choices.mixed_pools && question_.hardware.size() > 1) {
      LayoutSpace space = layout_space(question_, check_wanted_);
      std::erase_if(space.layouts, [](const ServingLayout& layout) { return !layout.is_mixed(); });
      add_part({.hardware = nullptr, .space = std::move(space), .judgements = {}});
    }
    if (tell_) tell_(fmt::format("{} layouts", layouts.size()));
    const std::vector<LayoutJudgement> judgements = evaluator_.judge(layouts);
    auto next = judgements.begin();
    for (SearchedPart& part : parts_) {
      const auto end = next + static_cast<std::ptrdiff_t>(part.space.layouts.size());
      part.judgements.assign(next, end);
      next = end;
    }
  }

  ServingSearchResult search(const ServingQuestion& question, const SearchedPart& part, bool is_stopped,
                             std::optional<LayoutScore> to_beat) {
    const auto tell = [this, &part](const std::string& text) { say(text, part); };
    return search_part(question, evaluator_, limits_, tell, part, {.to_beat = to_beat, .is_stopped = is_stopped});
  }

  std::optional<LayoutScore> score(const ServingQuestion& question, const ServingSearchResult& result,
                                   const PlanPoint& point) const {
    return layout_score(question, point.layout, ranked_capacity(question, result, point));
  }

  // Short runs may rule out what runs at length show to serve the rate.
  void adopt_what_serves(ServingSearchResult& found, const ServingSearchResult& most) const {
    for (const size_t i : most.ranking) {
      const PlanPoint& point = most.points[i];
      if (!score(question_, found, point)) continue;
      const auto same = std::find_if(found.points.begin(), found.points.end(),
                                     [&](const PlanPoint& one) { return one.layout == point.layout; });
      if (same == found.points.end()) {
        found.ranking.push_back(found.points.size());
        found.points.push_back(point);
      } else {
        found.ranking.push_back(static_cast<size_t>(same - found.points.begin()));
        *same = point;
      }
    }
  }

  static void add(ServingSearchResult& all, ServingSearchResult part) {
    const size_t before = all.points.size();
    all.layouts += part.layouts;
    all.by_closed_form = all.by_closed_form || part.by_closed_form;
    all.largest_gap = std::max(all.largest_gap, part.largest_gap);
    for (size_t i = 0; i < prune_reasons; ++i) all.pruned[i] += part.pruned[i];
    all.merged += part.merged;
    all.beaten += part.beaten;
    all.unexplored += part.unexplored;
    all.stopped = all.stopped || part.stopped;
    for (const size_t i : part.ranking) all.ranking.push_back(before + i);
    if (!part.ranked_by_slow_end) {
      for (const PlanPoint& point : part.points) all.ranked_by_middle.insert(devices_text(point.layout));
    }
    all.ranked_by_slow_end = all.ranked_by_slow_end || part.ranked_by_slow_end;
    std::move(part.points.begin(), part.points.end(), std::back_inserter(all.points));
    std::move(part.tried.begin(), part.tried.end(), std::back_inserter(all.tried));
    if (all.fastest_alone.empty()) all.fastest_alone = part.fastest_alone;
    for (size_t i = 0; i < part.fastest_alone.size(); ++i) {
      if (part.fastest_alone[i].ms < all.fastest_alone[i].ms) all.fastest_alone[i] = part.fastest_alone[i];
    }
  }

  void rank(const ServingQuestion& question, ServingSearchResult& result) const {
    std::sort(result.ranking.begin(), result.ranking.end());  // as if there had been one search
    std::stable_sort(result.ranking.begin(), result.ranking.end(), [&](size_t a, size_t b) {
      const bool doubtful = serves_by_middle_alone(question, result, result.points[a].layout);
      if (doubtful != serves_by_middle_alone(question, result, result.points[b].layout)) return !doubtful;
      const bool promised = is_promised(result, a);
      if (promised != is_promised(result, b)) return promised;
      return score(question, result, result.points[a]) > score(question, result, result.points[b]);
    });
    settle_ties(question, result);
  }

  static bool is_promised(const ServingSearchResult& result, size_t i) {
    return result.points[i].effort == Effort::promised;
  }

  // Those that capacities cannot tell from the first.
  void settle_ties(const ServingQuestion& question, ServingSearchResult& result) const {
    std::vector<size_t>& ranking = result.ranking;
    if (ranking.empty()) return;
    const PlanPoint& winner = *result.winner();
    const auto least = tie_score(question, winner.layout, ranked_capacity(question, result, winner));
    const bool doubtful = serves_by_middle_alone(question, result, winner.layout),
               promised = is_promised(result, ranking.front());
    const auto end = std::find_if(ranking.begin(), ranking.end(), [&](size_t i) {
      return serves_by_middle_alone(question, result, result.points[i].layout) != doubtful ||
             is_promised(result, i) != promised || score(question, result, result.points[i]) < least;
    });
    const std::vector<size_t> tied(ranking.begin(), end);
    std::vector<const PlanPoint*> points;
    points.reserve(tied.size());
    for (const size_t i : tied) points.push_back(&result.points[i]);
    auto place = ranking.begin();
    for (const size_t i : preferred_of_ties(question, points)) *place++ = tied[i];
  }

  void draw_curve(ServingSearchResult& result) const {
    if (limits_.closed_form || result.stopped || result.ranking.empty()) return;
    try {
      const auto curve_by = [&](Effort effort) {
        return evaluator_.evaluate_further({result.winner(), 1}, effort).front().runs;
      };
      if (question_.in_flight) {
        // Short runs of a closed loop begin and end with fewer in flight: they say too little of throughput.
        result.curve = curve_by(Effort::long_curve);
        return;
      }
      result.curve = curve_by(Effort::curve);
    } catch (const SearchStopped&) {
      result.stopped = true;  // the answer is there but for its curve
    }
  }

  // The curve's runs are runs of the winner like all others, so that the frontier does not contradict them. Above its
  // capacity, short runs say nothing.
  static void keep_runs_of_curve(ServingSearchResult& result) {
    if (result.curve.empty()) return;
    PlanPoint& winner = result.points[result.ranking.front()];
    for (const PlanRun& run : result.curve) {
      if (run.attained && run.rate < winner.capacity.value && winner.at_rate(run.rate) == nullptr) {
        winner.runs.push_back(run);
      }
    }
    std::sort(winner.runs.begin(), winner.runs.end(),
              [](const PlanRun& a, const PlanRun& b) { return a.rate < b.rate; });
  }

  const ServingQuestion& question_;
  PlanEvaluator& evaluator_;
  const SearchLimits& limits_;
  const std::function<void(const std::string&)>& tell_;
  const std::function<void()>& check_wanted_;
  ServingQuestion without_rate_;
  std::vector<SearchedPart> parts_;
};

}  // namespace

ServingSearchResult search_serving_layouts(const ServingQuestion& question, PlanEvaluator& evaluator,
                                           const SearchLimits& limits,
                                           const std::function<void(const std::string&)>& tell,
                                           const std::function<void()>& check_wanted) {
  return SearchOfParts(question, evaluator, limits, tell, check_wanted).run();
}

}  // namespace foretoken
