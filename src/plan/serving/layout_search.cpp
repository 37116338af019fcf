#include "plan/serving/layout_search.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

namespace foretoken {
namespace {

// Capacity by short runs may be off by so much.
constexpr double quick_error = 1.1;
// Of so many times as many engines, capacity may be off by as much.
constexpr double replicas_error = 1.02;
// Between engines or devices by so much.
constexpr double quick_doubt = 1.4;
// What layouts of a kind reach of their bounds differs by as much.
constexpr double reached_doubt = 1.25;
constexpr int64_t least_reached = 3;
// Limits other than the usual ones make an engine no better than so many times.
constexpr double gain_of_limits = 1.3;
// Layouts of a group that are simulated at length: they hardly differ.
constexpr size_t most_finalists_of_group = 2;
constexpr int most_rounds_of_finalists = 4;

// Layouts whose bounds are about as far from what they reach.
std::string kind_of_layout(const ServingLayout& layout) {
  return fmt::format("{}/{}/{}{}", devices_text(layout), layout.pool.engine.engine, layout.decode.has_value(),
                     layout.pool.host_gib > 0 ? "/host" : "");
}

class LayoutSearch {
 public:
  // `to_beat`: what was found elsewhere.
  LayoutSearch(const ServingQuestion& question, PlanEvaluator& evaluator, const SearchLimits& limits,
               std::function<void(const std::string&)> tell, const SearchedPart& part,
               std::optional<LayoutScore> to_beat = {})
      : question_(question),
        evaluator_(evaluator),
        limits_(limits),
        tell_(std::move(tell)),
        part_(part),
        layouts_(part.space.layouts),
        to_beat_(to_beat) {}

  // `is_wanted`: else nothing is simulated.
  ServingSearchResult run(bool is_wanted) {
    result_.largest_gap = part_.space.largest_gap;
    result_.layouts = static_cast<int64_t>(layouts_.size());
    result_.ranked_by_slow_end = std::any_of(layouts_.begin(), layouts_.end(), [&](const ServingLayout& layout) {
      return question_.is_judged_by_slow_end(layout);
    });
    result_.stopped = !is_wanted;
    candidates_ = layout_candidates(question_, part_, result_);
    say_what_is_left();
    try {
      if (is_wanted) find_best_of_all();
    } catch (const SearchStopped&) {
      result_.stopped = true;
    }
    finish();
    return std::move(result_);
  }

 private:
  void find_best_of_all() {
    find_best();
    if (result_.ranked_by_slow_end && !anything_serves()) {
      result_.ranked_by_slow_end = false;
      find_best();
    }
    if (!limits_.closed_form) show_every_engine();
  }

  bool anything_serves() const {
    return std::any_of(candidates_.begin(), candidates_.end(),
                       [&](const LayoutCandidate& one) { return !!found(one); });
  }

  void find_best() {
    if (limits_.closed_form) {
      judge_best_of_each();
      return;
    }
    simulate_each_host_memory();
    if (question_.has_demand()) explore_families(limits_.quick / 2);
    for (int round = 0; round < most_rounds_of_finalists; ++round) {
      explore(true, limits_.quick * 2 / 3);
      explore(false, limits_.quick);
      const bool may_go_on = settle(Finalists::best);
      if (question_.rate) settle(Finalists::scaled);
      if (!may_go_on) return;
    }
    if (!serves_by(Effort::promised)) settle(Finalists::most_capable);
  }

  // The best of each kind by closed forms.
  void judge_best_of_each() {
    std::map<std::string, size_t> best;
    for (size_t i = 0; i < candidates_.size(); ++i) {
      const auto [place, is_first] = best.emplace(kind_of_layout(*candidates_[i].layout), i);
      if (!is_first && is_better_by_closed_form(candidates_[i], candidates_[place->second])) place->second = i;
    }
    std::vector<size_t> chosen;
    for (const auto& [kind, i] : best) chosen.push_back(i);
    evaluate(chosen, Effort::closed_form);
    result_.by_closed_form = true;
  }

  // Closed forms do not know that requests wait for slots of adapters: the more of them the better.
  bool is_better_by_closed_form(const LayoutCandidate& one, const LayoutCandidate& other) const {
    const int64_t slots = one.layout->pool.max_loras, others = other.layout->pool.max_loras;
    const std::optional<LayoutScore> hope = best_hope(one), others_hope = best_hope(other);
    if (slots != others && hope) return slots > others;
    if (!hope && !others_hope) return usual_capacity(one) > usual_capacity(other);  // shown at its own maximum
    return hope > others_hope;
  }
  static double usual_capacity(const LayoutCandidate& one) {
    return one.most_requests_per_s * usually_reached(*one.layout, one.shape).usual;
  }

  // Whether a point is ranked: simulated at length, where a promised one serves what is asked. Where the search was
  // stopped before, by what there is.
  bool is_final(const PlanPoint& point) const {
    if (limits_.closed_form) return point.effort == Effort::closed_form;
    if (serves_by(Effort::promised)) return is_at_length(point.effort);
    return result_.stopped && (is_at_length(point.effort) || !serves_by(Effort::full));
  }
  bool serves_by(Effort effort) const {
    return std::any_of(candidates_.begin(), candidates_.end(), [&](const LayoutCandidate& one) {
      return one.point && one.point->effort == effort && found(one);
    });
  }

  void say(const std::string& text) const {
    if (tell_) tell_(text);
  }

  void say_what_is_left() const {
    std::set<std::string> groups;
    for (const LayoutCandidate& one : candidates_) groups.insert(one.group);
    say(fmt::format("{} layouts left by their bounds, {} kinds of engines", candidates_.size(), groups.size()));
  }

  double ranked(const PlanPoint& point) const { return ranked_capacity(question_, result_, point); }

  std::optional<LayoutScore> best_hope(const LayoutCandidate& one) const {
    const auto slow = slow_share_.find(devices_text(*one.layout));
    const bool by_slow_end = result_.ranked_by_slow_end && slow != slow_share_.end();
    const auto reached = reached_.find(kind_of_layout(*one.layout));
    double share = limits_.closed_form ? usually_reached(*one.layout, one.shape).usual : by_slow_end ? slow->second : 1;
    if (reached != reached_.end() && reached->second.layouts >= least_reached) {
      share = std::min(share, reached->second.most * one.shape.ttft_slack * reached_doubt);
    }
    return layout_score(question_, *one.layout, one.most_requests_per_s * share);
  }
  std::optional<LayoutScore> found(const LayoutCandidate& one) const {
    return one.point ? layout_score(question_, *one.layout, ranked(*one.point)) : std::nullopt;
  }

  // Not simulated yet and better than anything found, as far as bounds tell; the most promising first.
  std::vector<size_t> promising() const {
    std::optional<LayoutScore> best = to_beat_;
    for (const LayoutCandidate& one : candidates_) best = std::max(best, found(one));
    std::vector<size_t> chosen;
    std::vector<std::optional<LayoutScore>> hopes(candidates_.size());
    for (size_t i = 0; i < candidates_.size(); ++i) {
      if (candidates_[i].point) continue;
      hopes[i] = best_hope(candidates_[i]);
      if (hopes[i] && hopes[i] > best) chosen.push_back(i);
    }
    std::stable_sort(chosen.begin(), chosen.end(), [&](size_t a, size_t b) { return hopes[a] > hopes[b]; });
    return chosen;
  }

  // Simulates until `most` in all, one of each group or any. Any: those of the groups that were best come first.
  void explore(bool one_of_each_group, size_t most) {
    while (simulated_ < most) {
      std::vector<size_t> next = promising();
      if (one_of_each_group) {
        std::erase_if(next, [&](size_t i) { return !candidates_[i].stands_for_group; });
      } else {
        std::map<std::string, std::optional<LayoutScore>> best;
        for (const LayoutCandidate& one : candidates_) best[one.group] = std::max(best[one.group], found(one));
        std::vector<std::optional<LayoutScore>> of_group(candidates_.size());
        for (const size_t i : next) of_group[i] = best[candidates_[i].group];
        std::stable_sort(next.begin(), next.end(), [&](size_t a, size_t b) { return of_group[a] > of_group[b]; });
      }
      leave_for_later(next);
      if (question_.has_demand() && !anything_serves()) put_most_capable_between(next);
      next.resize(std::min({next.size(), limits_.round, most - simulated_}));
      if (next.empty()) return;
      evaluate(next, Effort::quick);
      simulated_ += next.size();
      say(fmt::format("{} layouts simulated", simulated_));
    }
  }

  // One number of each kind of engines: there may be more numbers than can be simulated, and what one does tells much
  // of the others.
  void explore_families(size_t most) {
    std::set<std::string> known;
    while (simulated_ < most) {
      std::vector<size_t> next = promising();
      std::erase_if(next, [&](size_t i) { return !known.insert(candidates_[i].family).second; });
      next.resize(std::min({next.size(), limits_.round, most - simulated_}));
      if (next.empty()) return;
      known.clear();
      evaluate(next, Effort::quick);
      simulated_ += next.size();
      for (const LayoutCandidate& one : candidates_) {
        if (one.point) known.insert(one.family);
      }
      say(fmt::format("{} layouts simulated", simulated_));
    }
  }

  // While nothing serves the rate, every second one is the one with the highest bound: the cheapest may all be too
  // slow.
  void put_most_capable_between(std::vector<size_t>& chosen) const {
    std::vector<size_t> capable = chosen;
    std::stable_sort(capable.begin(), capable.end(), [&](size_t a, size_t b) {
      return candidates_[a].most_requests_per_s > candidates_[b].most_requests_per_s;
    });
    std::vector<size_t> both;
    std::set<size_t> seen;
    for (size_t i = 0; i < chosen.size(); ++i) {
      for (const size_t one : {chosen[i], capable[i]}) {
        if (seen.insert(one).second) both.push_back(one);
      }
    }
    chosen = std::move(both);
  }

  // Whoever asks for several sizes of host memory sees a layout of each, unless it is the same as one without.
  void simulate_each_host_memory() {
    if (question_.choices.host_gib.size() < 2) return;
    std::vector<size_t> chosen;
    for (const int64_t size : question_.choices.host_gib) {
      std::optional<size_t> best;
      bool is_known = false;
      for (size_t i = 0; i < candidates_.size(); ++i) {
        const LayoutCandidate& one = candidates_[i];
        if (one.layout->pool.host_gib != size) continue;
        is_known = is_known || one.point;
        if (!best || best_hope(one) > best_hope(candidates_[*best])) best = i;
      }
      if (best && !is_known && simulated_ + chosen.size() < limits_.quick) chosen.push_back(*best);
    }
    if (chosen.empty()) return;
    evaluate(chosen, Effort::quick);
    simulated_ += chosen.size();
  }

  void evaluate(const std::vector<size_t>& chosen, Effort effort) {
    std::vector<PlanPoint> points = evaluated(chosen, effort);
    for (size_t i = 0; i < chosen.size(); ++i) {
      learn_from(candidates_[chosen[i]], points[i]);
      candidates_[chosen[i]].point = std::move(points[i]);
    }
  }

  // A closed loop tells what a layout does under one load, not what it could do.
  void learn_from(const LayoutCandidate& from, const PlanPoint& point) {
    if (question_.in_flight) {
      if (point.capacity.value <= 0) learn_missed(from);
      return;
    }
    learn_slow_end(from, point);
    learn_reached(from, point.capacity.value);
    learn(from, point.capacity.value);
    learn_found(from, point);
  }

  // Fewer of the same engines have more requests in flight each.
  void learn_missed(const LayoutCandidate& from) {
    for (LayoutCandidate& one : candidates_) {
      if (one.kind == from.kind && multiple_of(*one.layout, *from.layout).most <= 1) one.most_requests_per_s = 0;
    }
  }

  std::vector<PlanPoint> evaluated(const std::vector<size_t>& chosen, Effort effort) {
    std::vector<ServingLayout> layouts;
    std::vector<PlanPoint> known;
    for (const size_t i : chosen) {
      layouts.push_back(*candidates_[i].layout);
      if (candidates_[i].point) known.push_back(*candidates_[i].point);
    }
    const bool all_are_known = known.size() == layouts.size();
    return all_are_known ? evaluator_.evaluate_further(known, effort) : evaluator_.evaluate(layouts, effort);
  }

  // Bounds are those of middle step times. Of devices that are ranked by the slow end, the first layouts tell what is
  // left of them there; others may do half as well again.
  void learn_slow_end(const LayoutCandidate& from, const PlanPoint& point) {
    constexpr double others = 1.5;
    if (!question_.is_judged_by_slow_end(*from.layout) || from.most_requests_per_s <= 0) return;
    const double share = std::min(1.0, others * point.capacity.low / from.most_requests_per_s);
    double& known = slow_share_[devices_text(*from.layout)];
    known = std::max(known, share);
  }

  // Bounds are too high by about as much for all layouts of an engine on a device. Of limits that hold a layout back,
  // the others tell nothing.
  void learn_reached(const LayoutCandidate& from, double capacity) {
    if (!from.stands_for_group || from.bound <= 0) return;
    for (LayoutCandidate& one : candidates_) {
      if (one.group == from.group)
        one.most_requests_per_s = std::min(one.most_requests_per_s, capacity * gain_of_limits);
    }
    // One that keeps no limit at any rate tells nothing of those that start faster.
    if (capacity <= 0) return;
    Reached& reached = reached_[kind_of_layout(*from.layout)];
    reached.most = std::max(reached.most, std::min(1.0, capacity / (from.bound * from.shape.ttft_slack)));
    ++reached.layouts;
  }

  // More replicas of an engine serve as many more requests: short runs are of one of them. Of two pools, in the same
  // proportion: prompts wait less where more engines share their queue.
  void learn(const LayoutCandidate& from, double capacity) {
    for (LayoutCandidate& one : candidates_) {
      if (one.kind != from.kind) continue;
      const Multiple times = multiple_of(*one.layout, *from.layout);
      if (times.least < times.most) continue;
      one.most_requests_per_s = std::min(one.most_requests_per_s, replicas_error * capacity * times.most);
    }
  }

  // Memory below the cache saves at most the prompts' tokens that some earlier request had computed and the cache lost:
  // capacity grows no more than what is computed shrinks.
  void learn_found(const LayoutCandidate& from, const PlanPoint& point) {
    const PlanRun* run = point.at_capacity();
    if (!from.plain_group.empty() || run == nullptr) return;
    for (LayoutCandidate& one : candidates_) {
      if (one.plain_group != from.group) continue;
      const bool is_same = one.layout->pool.max_num_seqs == from.layout->pool.max_num_seqs &&
                           one.layout->pool.max_num_batched_tokens == from.layout->pool.max_num_batched_tokens;
      const double most = point.capacity.value * run->computed_again * (is_same ? quick_error : gain_of_limits);
      one.most_requests_per_s = std::min(one.most_requests_per_s, most);
    }
  }

  // Layouts with host memory come after the same without it, which tells what it can gain.
  void leave_for_later(std::vector<size_t>& chosen) const {
    std::set<std::string> unknown;
    for (const LayoutCandidate& one : candidates_) {
      if (one.plain_group.empty() && one.stands_for_group && !one.point) unknown.insert(one.group);
    }
    std::vector<size_t> now = chosen;
    std::erase_if(now, [&](size_t i) { return unknown.contains(candidates_[i].plain_group); });
    if (!now.empty()) chosen = std::move(now);
  }

  // Short runs do not tell engines, devices and pools apart as well as limits of one of them: the best of each that
  // might still win come first. `sorted`: the best by short runs first.
  void best_of_each_first(std::vector<size_t>& sorted) const {
    if (sorted.empty()) return;
    const std::optional<LayoutScore> best = found(candidates_[sorted.front()]);
    std::set<std::string> seen;
    std::stable_partition(sorted.begin(), sorted.end(), [&](size_t i) {
      const LayoutCandidate& one = candidates_[i];
      const bool first = seen.insert(kind_of_layout(*one.layout)).second;
      return first && layout_score(question_, *one.layout, ranked(*one.point) * quick_doubt) > best;
    });
  }

  // Leaves out what short runs put too far behind to win, and more of a group than tell anything new. Short runs may
  // flatter a layout: once some were simulated at length, those are what the others are compared with.
  void keep_contenders(std::vector<size_t>& chosen) const {
    std::optional<LayoutScore> best = to_beat_;
    std::map<std::string, size_t> of_group;
    const bool has_promise = serves_by(Effort::promised);
    for (const LayoutCandidate& one : candidates_) {
      if (!one.point || !is_at_length(one.point->effort)) continue;
      if (!has_promise || one.point->effort == Effort::promised) best = std::max(best, found(one));
      ++of_group[one.plain_group.empty() ? one.group : one.plain_group];
    }
    if (!best) {
      for (const size_t i : chosen) best = std::max(best, found(candidates_[i]));
    }
    std::erase_if(chosen, [&](size_t i) {
      const LayoutCandidate& one = candidates_[i];
      const double hoped = ranked(*one.point) * quick_error * quick_error;
      // The same engine with memory below its cache and without is of one group: such runs take long.
      size_t& finalists = of_group[one.plain_group.empty() ? one.group : one.plain_group];
      return layout_score(question_, *one.layout, hoped) < best || ++finalists > most_finalists_of_group;
    });
  }

  // Those of short runs; as many of the same engines as serve the rate by what others of them did at length; at last,
  // where all of these turned out too slow, what serves most.
  enum class Finalists : uint8_t { best, scaled, most_capable };

  // Simulates the best at length. True where none of them serves what is asked and there may be others that do.
  bool settle(Finalists which) {
    size_t left = limits_.full, promises = limits_.full;
    while (true) {
      const std::vector<size_t> next = which == Finalists::scaled && left > 0
                                           ? cheapest_by_scaling()
                                           : finalists(left, which == Finalists::most_capable);
      if (!next.empty()) {
        say(fmt::format("the best {} at length", next.size()));
        evaluate(next, Effort::full);
        left -= next.size();
        const bool is_given_up = which != Finalists::scaled || left == 0;
        if (is_given_up && !serves_by(Effort::full) && !serves_by(Effort::promised)) return true;
        continue;
      }
      // Others may come near once less is promised of the best.
      if (promises == 0 || !promise_next()) break;
      --promises;
    }
    return had_finalists_ && !serves_by(Effort::promised);
  }

  // What is promised is judged by many more requests, which takes long: only of the best, and of rivals that may be
  // better once they are judged alike. False where none is left.
  bool promise_next() {
    const std::optional<size_t> next = to_promise();
    if (!next) return false;
    had_finalists_ = true;
    LayoutCandidate& one = candidates_[*next];
    say("what the best is sure to sustain");
    const double estimated = ranked(*one.point);
    evaluate({*next}, Effort::promised);
    kept_by_promises_ = std::max(kept_by_promises_.value_or(0), ranked(*one.point) / estimated);
    return true;
  }

  // Nothing where the best is promised. Others are expected to keep as much of their estimates as those before.
  std::optional<size_t> to_promise() const {
    std::optional<LayoutScore> promised = to_beat_;
    for (const LayoutCandidate& one : candidates_) {
      if (one.point && one.point->effort == Effort::promised) promised = std::max(promised, found(one));
    }
    std::vector<size_t> rivals;
    for (size_t i = 0; i < candidates_.size(); ++i) {
      const LayoutCandidate& one = candidates_[i];
      if (!one.point || one.point->effort != Effort::full || !found(one)) continue;
      const auto expected = layout_score(question_, *one.layout, ranked(*one.point) * kept_by_promises_.value_or(1));
      if (!promised || expected > promised) rivals.push_back(i);
    }
    if (rivals.empty()) return std::nullopt;
    const auto best_rival = std::max_element(rivals.begin(), rivals.end(), [&](size_t a, size_t b) {
      return found(candidates_[a]) < found(candidates_[b]);
    });
    return simplest_of_ties(rivals, *best_rival);
  }

  // Of the finalists that capacities cannot tell from the best.
  size_t simplest_of_ties(const std::vector<size_t>& finalists, size_t best) const {
    const auto least = tie_score(question_, *candidates_[best].layout, ranked(*candidates_[best].point));
    std::vector<size_t> tied;
    for (const size_t i : finalists) {
      if (i == best || found(candidates_[i]) >= least) tied.push_back(i);
    }
    std::vector<const PlanPoint*> points;
    points.reserve(tied.size());
    for (const size_t i : tied) points.push_back(&*candidates_[i].point);
    return tied[preferred_of_ties(question_, points).front()];
  }

  // Of the layouts that were not simulated at length, the best that serves the rate if its engines do as much as the
  // same ones did in other numbers; nothing where none is expected to, or to be better than what is promised.
  std::vector<size_t> cheapest_by_scaling() const {
    if (to_promise()) return {};
    std::optional<LayoutScore> promised = to_beat_, best;
    std::vector<const LayoutCandidate*> at_length;
    for (const LayoutCandidate& one : candidates_) {
      if (!one.point || !is_at_length(one.point->effort)) continue;
      at_length.push_back(&one);
      if (one.point->effort == Effort::promised) promised = std::max(promised, found(one));
    }
    // Not worth such runs where it only serves more than is asked for.
    if (promised) promised->second = std::numeric_limits<double>::infinity();
    std::vector<size_t> chosen;
    for (size_t i = 0; i < candidates_.size(); ++i) {
      const LayoutCandidate& one = candidates_[i];
      if (one.point && is_at_length(one.point->effort)) continue;
      const std::optional<LayoutScore> expected =
          layout_score(question_, *one.layout, capacity_by_scaling(one, at_length));
      if (expected <= std::max(best, promised)) continue;
      best = expected;
      chosen = {i};
    }
    return chosen;
  }

  // 0 where none of its kind was simulated at length.
  double capacity_by_scaling(const LayoutCandidate& one, const std::vector<const LayoutCandidate*>& at_length) const {
    double most = 0;
    for (const LayoutCandidate* known : at_length) {
      if (known->kind != one.kind) continue;
      const double kept = known->point->effort == Effort::promised ? 1 : kept_by_promises_.value_or(usually_promised);
      most = std::max(most, ranked(*known->point) * kept * multiple_of(*one.layout, *known->layout).least);
    }
    return most;
  }

  // The most promising of those that were simulated shortly.
  std::vector<size_t> finalists(size_t most, bool most_capable) const {
    std::vector<size_t> next;
    for (size_t i = 0; i < candidates_.size(); ++i) {
      const LayoutCandidate& one = candidates_[i];
      if (one.point && one.point->effort == Effort::quick && found(one)) next.push_back(i);
    }
    std::stable_sort(next.begin(), next.end(), [&](size_t a, size_t b) {
      if (most_capable) return ranked(*candidates_[a].point) > ranked(*candidates_[b].point);
      return found(candidates_[a]) > found(candidates_[b]);
    });
    if (!most_capable) best_of_each_first(next);
    keep_contenders(next);
    next.resize(std::min(next.size(), most));
    return next;
  }

  // Every engine has a layout with its interval in the answer, if any starts: one that is sure to lose is shown by how
  // much. Where the rate is too high for it, others are tried that may serve it, by turns the most
  // promising and the most capable one.
  void show_every_engine() {
    constexpr int most_rounds = 6;
    for (int round = 1; round <= most_rounds; ++round) {
      std::vector<size_t> chosen;
      for (const TriedEngine& tried : result_.tried) {
        const std::optional<size_t> one = to_show(tried, round % 2 == 0);
        if (one) chosen.push_back(*one);
      }
      if (chosen.empty()) return;
      evaluate(chosen, Effort::ranged);
    }
    // Enough was tried: what is best of each has its interval.
    std::vector<size_t> without;
    for (const TriedEngine& tried : result_.tried) {
      const std::optional<size_t> best = best_shown(tried);
      if (best && candidates_[*best].point->effort == Effort::quick) without.push_back(*best);
    }
    if (!without.empty()) evaluate(without, Effort::ranged);
  }

  // The simulated layout that the engine's row shows.
  std::optional<size_t> best_shown(const TriedEngine& tried) const {
    std::optional<size_t> best;
    for (size_t i = 0; i < candidates_.size(); ++i) {
      const LayoutCandidate& one = candidates_[i];
      if (one.layout->pool.engine.engine != tried.engine || !one.point || one.point->capacity.value <= 0) continue;
      if (!best || shown_rank(i) > shown_rank(*best)) best = i;
    }
    return best;
  }

  // What is to be simulated next so that the engine's best is known; nothing where it is.
  std::optional<size_t> to_show(const TriedEngine& tried, bool most_capable) const {
    const std::optional<size_t> best = best_shown(tried);
    std::optional<size_t> hope;
    const auto is_more_hopeful = [&](size_t a, size_t b) {
      const LayoutCandidate &one = candidates_[a], &other = candidates_[b];
      return most_capable ? one.most_requests_per_s > other.most_requests_per_s : best_hope(one) > best_hope(other);
    };
    for (size_t i = 0; i < candidates_.size(); ++i) {
      const LayoutCandidate& one = candidates_[i];
      if (one.layout->pool.engine.engine != tried.engine) continue;
      if (!one.point && (!hope || is_more_hopeful(i, *hope))) hope = i;
    }
    const bool serves = best && found(candidates_[*best]);
    if (!serves && hope && (!best || best_hope(candidates_[*hope]))) return hope;
    return best && candidates_[*best].point->effort == Effort::quick ? best : std::nullopt;
  }

  // Short runs flatter some layouts: what was simulated at length comes first.
  std::tuple<bool, bool, std::optional<LayoutScore>, double> shown_rank(size_t i) const {
    const PlanPoint& point = *candidates_[i].point;
    const std::optional<LayoutScore> own = found(candidates_[i]);
    return {own.has_value(), is_at_length(point.effort), own, point.capacity.value};
  }

  void finish() {
    std::optional<LayoutScore> best = to_beat_;
    for (const LayoutCandidate& one : candidates_) {
      if (one.point && is_final(*one.point)) best = std::max(best, found(one));
    }
    for (const LayoutCandidate& one : candidates_) {
      TriedEngine* tried = tried_with(result_, *one.layout);
      if (one.point) {
        if (is_final(*one.point) && found(one)) result_.ranking.push_back(result_.points.size());
        result_.points.push_back(*one.point);
        if (tried != nullptr && !limits_.closed_form) ++tried->simulated;
      } else {
        const std::optional<LayoutScore> hope = best_hope(one);
        ++(hope && hope > best ? result_.unexplored : result_.beaten);
      }
    }
  }

  const ServingQuestion& question_;
  PlanEvaluator& evaluator_;
  SearchLimits limits_;
  std::function<void(const std::string&)> tell_;
  const SearchedPart& part_;
  const std::vector<ServingLayout>& layouts_;
  std::optional<LayoutScore> to_beat_;
  bool had_finalists_ = false;  // some that serve what is asked as far as they were estimated
  // Of what finalists were estimated to sustain: the most that one was promised.
  std::optional<double> kept_by_promises_;
  std::vector<LayoutCandidate> candidates_;
  size_t simulated_ = 0;
  struct Reached {
    double most = 0;  // of a bound and the time that limits leave for it, by a simulated layout
    int64_t layouts = 0;
  };
  std::map<std::string, Reached> reached_;    // by kind_of_layout
  std::map<std::string, double> slow_share_;  // by devices: of a bound, what a layout may reach at its slow end
  ServingSearchResult result_;
};

}  // namespace

ServingSearchResult search_part(const ServingQuestion& question, PlanEvaluator& evaluator, const SearchLimits& limits,
                                const std::function<void(const std::string&)>& tell, const SearchedPart& part,
                                const SearchState& state) {
  return LayoutSearch(question, evaluator, limits, tell, part, state.to_beat).run(!state.is_stopped);
}

}  // namespace foretoken
