#include "accelerator/mapper/enumeration.h"

#include <algorithm>
#include <bit>
#include <map>

#include "accelerator/element_width.h"
#include "accelerator/tile.h"

namespace foretoken {
namespace {

class Enumerator {
 public:
  Enumerator(const MappingSpace& space, const MappingScorer& scorer, const EnumerationOptions& options,
             const SearchClock& clock)
      : space_(space), scorer_(scorer), evaluator_(scorer.evaluator()), options_(options), clock_(clock) {}

  // Whether the space is small enough.
  bool prepare() {
    double points = 1;
    uint32_t with_loops = 0;
    for (int d = 0; d < space_.dimensions; ++d) {
      if (space_.uneven[d] && !space_.open_slots[d].empty() && space_.size[d] > 1) return false;
      factors_.emplace_back();
      if (!list_factors(d)) return false;
      points *= static_cast<double>(factors_.back().size());
      if (space_.size[d] > 1) with_loops |= 1U << d;
    }
    for (int i = 0; i < space_.levels; ++i) {
      points *= static_cast<double>(orders_of(i, with_loops).size());
      points *= static_cast<double>(1U << std::popcount(space_.may_keep[i] & ~space_.must_keep[i]));
      if (points > static_cast<double>(options_.most_tries)) return false;
    }
    return true;
  }

  Enumeration run() {
    own_.point = space_.outermost();
    choose_bounds(0);
    return std::move(result_);
  }

 private:
  bool list_factors(int dimension) {
    int64_t left = space_.size[dimension];
    for (int s = 0; s < std::ssize(space_.slots); ++s) {
      left /= std::max<int64_t>(1, space_.fixed[space_.slot_index(s, dimension)]);
    }
    std::vector<int64_t> bounds;
    extend_factors(dimension, left, bounds);
    return std::ssize(factors_.back()) <= options_.most_tries;
  }

  void extend_factors(int dimension, int64_t left, std::vector<int64_t>& bounds) {
    const auto& slots = space_.open_slots[dimension];
    if (std::ssize(factors_.back()) > options_.most_tries) return;
    if (bounds.size() == slots.size()) {
      if (left == 1) factors_.back().push_back(bounds);
      return;
    }
    const int64_t most = space_.most[space_.slot_index(slots[bounds.size()], dimension)];
    // The last place takes what is left.
    const int64_t least = bounds.size() + 1 == slots.size() ? left : 1;
    for (const int64_t bound : space_.divisors[dimension]) {
      if (bound < least || bound > most || left % bound != 0) continue;
      bounds.push_back(bound);
      extend_factors(dimension, left / bound, bounds);
      bounds.pop_back();
    }
  }

  const std::vector<std::vector<int>>& orders_of(int level, uint32_t active) {
    const auto [place, added] = orders_.try_emplace({level, active});
    if (added) {
      place->second = distinct_orders(space_, active, space_.given_order[level]);
      if (!space_.order_matters(level)) place->second.resize(1);
    }
    return place->second;
  }

  void choose_bounds(int dimension) {
    if (!may_fit(dimension) || !result_.complete) return;
    if (dimension == space_.dimensions) {
      result_.complete = !clock_.expired();
      choose_order(0);
      return;
    }
    const auto& slots = space_.open_slots[dimension];
    for (const auto& bounds : factors_[dimension]) {
      for (size_t i = 0; i < slots.size(); ++i) own_.point.bound[space_.slot_index(slots[i], dimension)] = bounds[i];
      choose_bounds(dimension + 1);
    }
  }

  // With dimensions from `chosen` on at their smallest: tiles and spread only grow from there.
  bool may_fit(int chosen) const {
    for (int s = 0; s < std::ssize(space_.slots); ++s) {
      if (space_.slots[s].kind == LoopKind::temporal) continue;
      int64_t used = 1;
      for (int d = 0; d < chosen; ++d) used *= own_.point.bound[space_.slot_index(s, d)];
      if (used > space_.slots[s].fanout) return false;
    }
    TileSizes tile;
    tile.fill(1);
    int s = static_cast<int>(space_.slots.size()) - 1;
    for (int i = space_.levels - 1; i >= 0; --i) {
      for (; s >= 0 && space_.slots[s].level == i; --s) {
        for (int d = 0; d < chosen; ++d) tile[d] *= static_cast<double>(own_.point.bound[space_.slot_index(s, d)]);
      }
      const auto held = static_cast<double>(words_held(evaluator_.architecture().levels[i]));
      if (held == 0) continue;
      double words = 0;
      for (int t = 0; t < space_.tensors; ++t) {
        if ((space_.must_keep[i] >> t & 1) == 0) continue;
        const ProblemTensor& tensor = evaluator_.problem().tensors[t];
        words += tile_words(tensor, tile) * words_of_element(evaluator_.architecture(), i, tensor);
      }
      if (words > held) return false;
    }
    return true;
  }

  void choose_order(int level) {
    if (level == space_.levels) {
      choose_kept(0);
      return;
    }
    uint32_t active = 0;
    const int slot = temporal_slot(level);
    for (int d = 0; d < space_.dimensions; ++d) {
      if (own_.point.bound[space_.slot_index(slot, d)] > 1) active |= 1U << d;
    }
    for (const auto& order : orders_of(level, active)) {
      std::vector<int> whole = order;
      for (int d = 0; d < space_.dimensions; ++d) {
        if (std::ranges::find(whole, d) == whole.end()) whole.push_back(d);
      }
      std::ranges::copy(whole, own_.point.order.begin() + level * space_.dimensions);
      choose_order(level + 1);
    }
  }

  int temporal_slot(int level) const {
    int slot = 0;
    while (space_.slots[slot].level != level) ++slot;
    return slot;
  }

  void choose_kept(int level) {
    if (level == space_.levels) {
      evaluate();
      return;
    }
    const uint32_t free = space_.may_keep[level] & ~space_.must_keep[level];
    // All subsets of `free`, from all to none.
    for (uint32_t some = free;; some = (some - 1) & free) {
      own_.point.kept[level] = space_.must_keep[level] | some;
      choose_kept(level + 1);
      if (some == 0) break;
    }
  }

  void evaluate() {
    ++result_.tried;
    if (!space_.fits_array(own_.point)) return;
    space_.write_mapping(own_.point, evaluator_.problem(), mapping_);
    const std::optional<RunCosts> costs = scorer_.costs_of(mapping_, evaluation_);
    if (!costs) return;
    ++result_.evaluations;
    own_.score = score_of(scorer_.objective(), *costs);
    own_.energy_pj = costs->energy_pj;
    own_.cycles = costs->cycles;
    if (!result_.best || own_.score < result_.best->score) result_.best = own_;
    if (options_.frontier) result_.frontier.offer(own_);
  }

  const MappingSpace& space_;
  const MappingScorer& scorer_;
  const MappingEvaluator& evaluator_;
  EnumerationOptions options_;
  const SearchClock& clock_;
  std::vector<std::vector<std::vector<int64_t>>> factors_;  // by dimension: bounds of its open slots
  std::map<std::pair<int, uint32_t>, std::vector<std::vector<int>>> orders_;
  ScoredPoint own_;
  Mapping mapping_;
  Evaluation evaluation_;
  Enumeration result_;
};

}  // namespace

std::optional<Enumeration> enumerate_mappings(const MappingSpace& space, const MappingScorer& scorer,
                                              const EnumerationOptions& options, const SearchClock& clock) {
  Enumerator all(space, scorer, options, clock);
  if (!all.prepare()) return std::nullopt;
  return all.run();
}

}  // namespace foretoken
