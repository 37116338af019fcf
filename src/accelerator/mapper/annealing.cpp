#include "accelerator/mapper/annealing.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "base/portable_math.h"

namespace foretoken {
namespace {

// Cycles move in steps, so a search for few cycles needs the second metric as its slope.
constexpr double weight_of_leading_cycles = 20;
constexpr double weight_of_following = 0.02;

template <typename T>
const T& pick(const std::vector<T>& values, RandomStream& random) {
  return values[random.below(values.size())];
}

// A bound that covers what the others leave.
int64_t needed(int64_t size, int64_t others) {
  return (size + others - 1) / others;
}

}  // namespace

void MappingFrontier::offer(const ScoredPoint& own) {
  auto place = std::ranges::lower_bound(points, own.cycles, {}, &ScoredPoint::cycles);
  if (place != points.end() && place->cycles == own.cycles && place->energy_pj <= own.energy_pj) return;
  if (place != points.begin() && std::prev(place)->energy_pj <= own.energy_pj) return;
  auto last = place;
  while (last != points.end() && last->energy_pj >= own.energy_pj) ++last;
  place = points.erase(place, last);
  points.insert(place, own);
}

AnnealingChain::AnnealingChain(const MappingSpace& space, const MappingScorer& scorer, uint64_t seed, int number,
                               bool keeps_frontier)
    : space_(space),
      scorer_(scorer),
      random_(seed, fmt::format("mapper chain {}", number)),
      keeps_frontier_(keeps_frontier) {
  for (int d = 0; d < space.dimensions; ++d) {
    if (space.open_slots[d].size() > 1 && space.size[d] > 1) movable_.push_back(d);
  }
  for (int i = 0; i < space.levels; ++i) {
    if (space.may_keep[i] == 0) continue;
    if (space.order_matters(i) && std::ssize(space.given_order[i]) + 1 < space.dimensions) ordered_levels_.push_back(i);
    for (int t = 0; t < space.tensors; ++t) {
      if (((space.may_keep[i] & ~space.must_keep[i]) >> t & 1) != 0) free_to_keep_.emplace_back(i, t);
    }
  }
}

bool AnnealingChain::evaluate(ScoredPoint& own) {
  ++tried_;
  if (!space_.fits_array(own.point)) return false;
  space_.write_mapping(own.point, scorer_.evaluator().problem(), mapping_);
  const std::optional<RunCosts> costs = scorer_.costs_of(mapping_, evaluation_);
  if (!costs) return false;
  ++evaluations_;
  own.score = score_of(scorer_.objective(), *costs);
  own.energy_pj = costs->energy_pj;
  own.cycles = costs->cycles;
  if (!best_ || own.score < best_->score) best_ = own;
  if (keeps_frontier_) frontier_.offer(own);
  return true;
}

double AnnealingChain::cost(const MappingScore& score) const {
  const bool cycles_lead =
      scorer_.objective().first == MappingMetric::delay || scorer_.objective().first == MappingMetric::latency;
  return cycles_lead ? weight_of_leading_cycles * portable_log(score.first) + portable_log(score.second)
                     : portable_log(score.first) + weight_of_following * portable_log(score.second);
}

// For each axis, of several random choices of bounds the one that leaves the fewest instances idle.
void AnnealingChain::fill_array(MappingPoint& point) {
  constexpr int choices = 12;
  for (int s = 0; s < std::ssize(space_.slots); ++s) {
    const LoopSlot& slot = space_.slots[s];
    if (slot.kind == LoopKind::temporal) continue;
    std::vector<int> dimensions;
    for (int d = 0; d < space_.dimensions; ++d) {
      if (std::ranges::find(space_.open_slots[d], s) != space_.open_slots[d].end()) dimensions.push_back(d);
    }
    if (dimensions.empty()) continue;
    MappingPoint fullest = point;
    double most = 0;
    for (int choice = 0; choice < choices; ++choice) {
      MappingPoint trial = point;
      double used = 1;
      for (int d = 0; d < space_.dimensions; ++d) used *= static_cast<double>(trial.bound[space_.slot_index(s, d)]);
      for (int picks = 0; picks < 4; ++picks) {
        const int d = pick(dimensions, random_);
        const int from = space_.open_slots[d].front();
        int64_t& outer = trial.bound[space_.slot_index(from, d)];
        int64_t& own = trial.bound[space_.slot_index(s, d)];
        if (from == s || outer == 1 || own != 1) continue;
        const auto room = static_cast<int64_t>(static_cast<double>(slot.fanout) / used);
        const int64_t limit = std::min({room, outer, space_.most[space_.slot_index(s, d)]});
        for (int64_t bound = limit; bound > 1; --bound) {
          if (outer % bound != 0 && !space_.uneven[d]) continue;
          if (random_.below(3) == 0) continue;
          own = bound;
          used *= static_cast<double>(bound);
          outer = needed(outer, bound);
          break;
        }
      }
      if (used > most) {
        most = used;
        fullest = std::move(trial);
      }
    }
    point = std::move(fullest);
  }
}

void AnnealingChain::restart(int64_t most_tries) {
  const int64_t attempts = std::min<int64_t>(64, most_tries);
  current_.reset();
  for (int64_t i = 0; i < attempts && !current_; ++i) {
    candidate_.point = space_.outermost();
    if (i % 4 != 3) fill_array(candidate_.point);
    // What is kept at first: all, the least, or anything between.
    if (i > 0) {
      for (const auto& [level, tensor] : free_to_keep_) {
        if (i == 1 || random_.below(2) == 0) candidate_.point.kept[level] &= ~(1U << tensor);
      }
    }
    if (evaluate(candidate_)) current_ = candidate_;
  }
}

void AnnealingChain::start_at(const MappingPoint& point, int64_t most_tries) {
  if (most_tries < 1) return;
  current_.reset();
  candidate_.point = point;
  if (evaluate(candidate_)) {
    current_ = candidate_;
  } else {
    restart(most_tries - 1);
  }
}

void AnnealingChain::start_from(const ScoredPoint& point) {
  current_ = point;
}

// A prime factor of one loop goes to another loop over the same dimension.
bool AnnealingChain::move_factor(MappingPoint& point) {
  if (movable_.empty()) return false;
  const int d = pick(movable_, random_);
  if (space_.uneven[d] && random_.below(2) == 0) return resize_tile(point, d);
  const auto& slots = space_.open_slots[d];
  const int from = pick(slots, random_), to = pick(slots, random_);
  int64_t& source = point.bound[space_.slot_index(from, d)];
  int64_t& target = point.bound[space_.slot_index(to, d)];
  if (from == to || source == 1) return false;
  const int64_t prime = pick(space_.primes[d], random_);
  if (source % prime != 0 || target * prime > space_.most[space_.slot_index(to, d)]) return false;
  source /= prime;
  target *= prime;
  return true;
}

// Two dimensions trade places: what one gains at a level the other gives up.
bool AnnealingChain::swap_factors(MappingPoint& point) {
  if (movable_.size() < 2) return false;
  const int one = pick(movable_, random_), other = pick(movable_, random_);
  const auto& slots = space_.open_slots[one];
  const int from = pick(slots, random_), to = pick(slots, random_);
  if (one == other || from == to) return false;
  const auto exchange = [&](int d, int source_slot, int target_slot) {
    int64_t& source = point.bound[space_.slot_index(source_slot, d)];
    int64_t& target = point.bound[space_.slot_index(target_slot, d)];
    const auto& open = space_.open_slots[d];
    if (std::ranges::find(open, source_slot) == open.end() || std::ranges::find(open, target_slot) == open.end()) {
      return false;
    }
    if (source == 1) return false;
    // All of it, or one prime.
    const int64_t moved = random_.below(2) == 0 ? source : pick(space_.primes[d], random_);
    if (source % moved != 0 || target * moved > space_.most[space_.slot_index(target_slot, d)]) return false;
    source /= moved;
    target *= moved;
    return true;
  };
  return exchange(one, from, to) && exchange(other, to, from);
}

// Another bound that need not divide; another loop makes up for it.
bool AnnealingChain::resize_tile(MappingPoint& point, int dimension) {
  const auto& slots = space_.open_slots[dimension];
  const int resized = pick(slots, random_), makes_up = pick(slots, random_);
  if (resized == makes_up) return false;
  int64_t others = 1;
  for (int s = 0; s < std::ssize(space_.slots); ++s) {
    if (s != resized && s != makes_up) others *= point.bound[space_.slot_index(s, dimension)];
  }
  const int64_t left = needed(space_.size[dimension], others);
  const int64_t most = std::min(space_.most[space_.slot_index(resized, dimension)], left);
  const int64_t bound = 1 + static_cast<int64_t>(random_.below(static_cast<uint64_t>(most)));
  const int64_t other = needed(left, bound);
  if (other > space_.most[space_.slot_index(makes_up, dimension)]) return false;
  // The least bound that needs no more turns of the other loop.
  const int64_t even = needed(left, other);
  int64_t& own = point.bound[space_.slot_index(resized, dimension)];
  int64_t& made_up = point.bound[space_.slot_index(makes_up, dimension)];
  if (own == even && made_up == other) return false;
  own = even;
  made_up = other;
  return true;
}

// A loop in time goes innermost, or to another place.
bool AnnealingChain::change_order(MappingPoint& point) {
  if (ordered_levels_.empty()) return false;
  const int level = pick(ordered_levels_, random_);
  const auto given = static_cast<int>(space_.given_order[level].size());
  int* order = point.order.data() + level * space_.dimensions;
  const auto place = given + static_cast<int>(random_.below(space_.dimensions - given));
  const int target = random_.below(2) == 0 ? given : given + static_cast<int>(random_.below(space_.dimensions - given));
  if (place == target) return false;
  if (place > target) {
    std::rotate(order + target, order + place, order + place + 1);
  } else {
    std::rotate(order + place, order + place + 1, order + target + 1);
  }
  return true;
}

bool AnnealingChain::change_kept(MappingPoint& point) {
  if (free_to_keep_.empty()) return false;
  const auto& [level, tensor] = pick(free_to_keep_, random_);
  point.kept[level] ^= 1U << tensor;
  return true;
}

bool AnnealingChain::change(MappingPoint& point) {
  const uint64_t kind = random_.below(20);
  bool changed = false;
  if (kind < 9) changed = move_factor(point);
  if (kind >= 9 && kind < 14) changed = swap_factors(point);
  if (kind >= 14 && kind < 18) changed = change_order(point);
  if (kind >= 18) changed = change_kept(point);
  // Now and then two at once, past a mapping that does not fit.
  if (random_.below(4) == 0) changed = move_factor(point) || changed;
  return changed;
}

void AnnealingChain::run(int64_t changes, const CoolingSchedule& cooling, const SearchClock& clock) {
  if (!current_) return;
  double current_cost = cost(current_->score);
  constexpr int64_t step = 64;  // changes at one temperature
  const double steps = static_cast<double>(std::max<int64_t>(1, changes / step));
  const double factor = portable_exp(portable_log(cooling.cold / cooling.hot) / steps);
  double temperature = cooling.hot;
  const int64_t end = tried_ + changes;
  for (int64_t i = 0; tried_ < end; ++i) {
    if (i % step == step - 1) {
      temperature = std::max(temperature * factor, cooling.cold);
      if (clock.expired()) return;
    }
    candidate_.point.bound.assign(current_->point.bound.begin(), current_->point.bound.end());
    candidate_.point.order.assign(current_->point.order.begin(), current_->point.order.end());
    candidate_.point.kept.assign(current_->point.kept.begin(), current_->point.kept.end());
    if (!change(candidate_.point)) {
      ++tried_;
      continue;
    }
    if (!evaluate(candidate_)) continue;
    const double candidate_cost = cost(candidate_.score);
    const double worse = candidate_cost - current_cost;
    if (worse > 0 && random_.uniform() >= portable_exp(-worse / temperature)) continue;
    std::swap(*current_, candidate_);
    current_cost = candidate_cost;
  }
}

}  // namespace foretoken
