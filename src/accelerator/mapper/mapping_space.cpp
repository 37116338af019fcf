#include "accelerator/mapper/mapping_space.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "base/error.h"
#include "base/portable_math.h"

namespace foretoken {
namespace {

std::vector<int64_t> distinct_primes(int64_t number) {
  std::vector<int64_t> primes;
  for (int64_t p = 2; p * p <= number; ++p) {
    if (number % p != 0) continue;
    primes.push_back(p);
    while (number % p == 0) number /= p;
  }
  if (number > 1) primes.push_back(number);
  return primes;
}

std::vector<int64_t> all_divisors(int64_t number) {
  std::vector<int64_t> divisors;
  for (int64_t divisor = 1; divisor * divisor <= number; ++divisor) {
    if (number % divisor != 0) continue;
    divisors.push_back(divisor);
    if (divisor * divisor != number) divisors.push_back(number / divisor);
  }
  std::ranges::sort(divisors);
  return divisors;
}

bool divisors_are_few(const std::vector<int64_t>& divisors) {
  constexpr int64_t widest_gap = 4;
  for (size_t i = 1; i < divisors.size(); ++i) {
    if (divisors[i] > widest_gap * divisors[i - 1]) return true;
  }
  return false;
}

// Of `number`, whose divisors are among those given.
int64_t largest_divisor(int64_t number, int64_t most, const std::vector<int64_t>& divisors) {
  int64_t largest = 1;
  for (const int64_t divisor : divisors) {
    if (divisor <= most && number % divisor == 0) largest = divisor;
  }
  return largest;
}

double log2_factorial(int n) {
  double sum = 0;
  for (int i = 2; i <= n; ++i) sum += portable_log(i) / portable_log(2);
  return sum;
}

// Ways to write p^exponent as an ordered product over `places`.
double log2_ways(int exponent, int places) {
  return log2_factorial(exponent + places - 1) - log2_factorial(exponent) - log2_factorial(places - 1);
}

struct OrderSearch {
  const MappingSpace& space;
  std::vector<std::vector<int>> found;

  // `open` tensors have not been moved by any of the loops chosen so far.
  void extend(std::vector<int> order, uint32_t left, uint32_t open) {
    // Loops that move no open tensor save traffic here and cost nothing.
    for (int d = 0; d < space.dimensions; ++d) {
      if ((left >> d & 1) == 0 || closes(d, open) != 0) continue;
      order.push_back(d);
      left &= ~(1U << d);
    }
    if (left == 0) {
      found.push_back(std::move(order));
      return;
    }
    bool closed_all = false;
    for (int d = 0; d < space.dimensions; ++d) {
      if ((left >> d & 1) == 0) continue;
      const uint32_t closed = closes(d, open);
      // Which loop moves the last open tensors is the same to them, unless it makes their tiles slide.
      if (closed == open && !slides(d, closed)) {
        if (closed_all) continue;
        closed_all = true;
      }
      std::vector<int> longer = order;
      longer.push_back(d);
      extend(std::move(longer), left & ~(1U << d), open & ~closed);
    }
  }

  bool slides(int dimension, uint32_t which) const {
    for (int t = 0; t < space.tensors; ++t) {
      if ((which >> t & 1) != 0 && (space.sliding[t] >> dimension & 1) != 0) return true;
    }
    return false;
  }

  uint32_t closes(int dimension, uint32_t open) const {
    uint32_t closed = 0;
    for (int t = 0; t < space.tensors; ++t) {
      if ((open >> t & 1) != 0 && (space.related[t] >> dimension & 1) != 0) closed |= 1U << t;
    }
    return closed;
  }
};

}  // namespace

MappingSpace::MappingSpace(const Architecture& architecture, const Problem& problem, const Constraints& constraints,
                           Remainders remainders)
    : dimensions(static_cast<int>(problem.dimensions.size())),
      levels(static_cast<int>(architecture.levels.size()) - 1),
      tensors(static_cast<int>(problem.tensors.size())) {
  check_constraints(constraints, architecture, problem);
  for (const ProblemDimension& dimension : problem.dimensions) {
    size.push_back(dimension.size);
    primes.push_back(distinct_primes(dimension.size));
    divisors.push_back(all_divisors(dimension.size));
    uneven.push_back(remainders == Remainders::always ||
                     (remainders == Remainders::where_divisors_are_few && divisors_are_few(divisors.back())));
  }
  for (const ProblemTensor& tensor : problem.tensors) {
    uint32_t bits = 0;
    for (int d = 0; d < dimensions; ++d) bits |= uses_dimension(tensor, d) ? 1U << d : 0;
    related.push_back(bits);
    uint32_t added = 0;
    for (const auto& rank : tensor.ranks) {
      for (const ProjectionTerm& term : rank) added |= rank.size() > 1 ? 1U << term.dimension : 0;
    }
    sliding.push_back(added);
  }
  must_keep.assign(levels, 0);
  may_keep.assign(levels, 0);
  least_used.assign(levels, 0);
  for (int i = 0; i < levels; ++i) {
    const bool stores = architecture.levels[i].kind == LevelKind::storage;
    may_keep[i] = stores ? (1U << tensors) - 1 : 0;
    slots.push_back({.level = i, .kind = LoopKind::temporal});
    for (int d = 0; d < dimensions; ++d) most.push_back(stores ? size[d] : 1);
    for (const LoopKind kind : {LoopKind::spatial_y, LoopKind::spatial_x}) {
      const int64_t fanout = kind == LoopKind::spatial_x ? fanout_x(architecture, i) : fanout_y(architecture, i);
      if (fanout == 1) continue;
      slots.push_back({.level = i, .kind = kind, .fanout = fanout});
      for (int d = 0; d < dimensions; ++d) most.push_back(std::min(fanout, size[d]));
    }
  }
  fixed.assign(most.size(), 0);
  for (const KeepConstraint& own : constraints.storage) {
    const uint32_t bit = 1U << own.tensor;
    if (own.keep) {
      must_keep[own.level] |= bit;
    } else {
      may_keep[own.level] &= ~bit;
    }
  }
  // Tensors come from the outermost level and go there, unless a constraint says otherwise.
  must_keep[0] |= may_keep[0];
  most_spread.assign(levels * dimensions, max_dimension_size);
  given_order.resize(levels);
  for (const LoopConstraint& own : constraints.loops) {
    limit_slots(own);
    constrains_array = constrains_array || own.spatial;
  }
  for (const LoopConstraint& own : constraints.loops) fix_spatial_factors(own, constraints, problem);
  fix_remaining_factors(constraints, problem);
  check_products(constraints, problem, remainders);
  open_slots.resize(dimensions);
  for (int d = 0; d < dimensions; ++d) {
    for (int s = 0; s < std::ssize(slots); ++s) {
      if (fixed[slot_index(s, d)] == 0 && most[slot_index(s, d)] > 1) open_slots[d].push_back(s);
    }
  }
}

// What can be said slot by slot.
void MappingSpace::limit_slots(const LoopConstraint& own) {
  double instances_below = 1;
  for (int s = 0; s < std::ssize(slots); ++s) {
    const LoopSlot& slot = slots[s];
    if (slot.level != own.level || (slot.kind != LoopKind::temporal) != own.spatial) continue;
    if (own.spatial) instances_below *= static_cast<double>(slot.fanout);
    for (int d = 0; own.split && d < dimensions; ++d) {
      const bool across = std::ranges::find(own.permutation, d) - own.permutation.begin() < *own.split;
      if (across != (slot.kind == LoopKind::spatial_x)) most[slot_index(s, d)] = 1;
    }
    for (const FactorRule& rule : own.factors) {
      if (rule.kind == FactorRule::Kind::remaining) continue;
      int64_t& limit = most[slot_index(s, rule.dimension)];
      limit = std::min(limit, rule.value);
      if (rule.kind == FactorRule::Kind::exactly && !own.spatial) fixed[slot_index(s, rule.dimension)] = rule.value;
    }
  }
  if (own.spatial) {
    least_used[own.level] = std::max(least_used[own.level], own.least_utilization * instances_below);
    for (const FactorRule& rule : own.factors) {
      if (rule.kind == FactorRule::Kind::remaining) continue;
      int64_t& limit = most_spread[own.level * dimensions + rule.dimension];
      limit = std::min(limit, rule.value);
    }
  } else if (!own.permutation.empty()) {
    given_order[own.level] = own.permutation;
  }
}

// Puts fixed factors across X or down Y, whole: the first way that fits.
void MappingSpace::fix_spatial_factors(const LoopConstraint& own, const Constraints& constraints,
                                       const Problem& problem) {
  if (!own.spatial) return;
  std::vector<int> axes;
  for (int s = 0; s < std::ssize(slots); ++s) {
    if (slots[s].level == own.level && slots[s].kind != LoopKind::temporal) axes.push_back(s);
  }
  std::vector<FactorRule> rules;
  for (const FactorRule& rule : own.factors) {
    if (rule.kind == FactorRule::Kind::exactly) rules.push_back(rule);
  }
  for (uint32_t way = 0; way < 1U << rules.size(); ++way) {
    std::vector<int64_t> used(2, 1);
    bool fits = true;
    for (size_t i = 0; i < rules.size(); ++i) {
      const size_t axis = way >> i & 1;
      if (rules[i].value == 1) continue;
      fits = fits && axis < axes.size() && most[slot_index(axes[axis], rules[i].dimension)] >= rules[i].value;
      used[axis] *= rules[i].value;
      fits = fits && used[axis] <= slots[axes[axis]].fanout;
      if (!fits) break;
    }
    if (!fits) continue;
    for (size_t i = 0; i < rules.size(); ++i) {
      for (size_t axis = 0; axis < axes.size(); ++axis) {
        fixed[slot_index(axes[axis], rules[i].dimension)] = (way >> i & 1) == axis ? rules[i].value : 1;
      }
    }
    return;
  }
  throw InputError({.source = constraints.source,
                    .path = fmt::format("constraints of {} dimensions in space", rules.size()),
                    .expected = fmt::format("fixed factors of {} that fit across X and down Y",
                                            problem.dimensions[rules.front().dimension].name)});
}

// A level that takes all that remains leaves nothing free for others.
void MappingSpace::fix_remaining_factors(const Constraints& constraints, const Problem& problem) {
  for (const LoopConstraint& own : constraints.loops) {
    for (const FactorRule& rule : own.factors) {
      if (rule.kind != FactorRule::Kind::remaining) continue;
      const int d = rule.dimension;
      int64_t elsewhere = 1;
      int taker = -1;
      for (int s = 0; s < std::ssize(slots); ++s) {
        int64_t& bound = fixed[slot_index(s, d)];
        const bool here = slots[s].level == own.level && (slots[s].kind != LoopKind::temporal) == own.spatial;
        if (here && (taker < 0 || most[slot_index(s, d)] > most[slot_index(taker, d)])) taker = s;
        if (!here && bound == 0) bound = 1;
        if (!here) elsewhere *= bound;
      }
      const int64_t left = (size[d] + elsewhere - 1) / elsewhere;
      if (taker < 0 || (own.spatial && left > most[slot_index(taker, d)])) {
        throw InputError({.source = constraints.source,
                          .path = "constraints",
                          .value = fmt::format("{}=0", problem.dimensions[d].name),
                          .expected = fmt::format("room for the remaining {} at that level", left)});
      }
      for (int s = 0; s < std::ssize(slots); ++s) {
        int64_t& bound = fixed[slot_index(s, d)];
        if (bound == 0) bound = s == taker ? left : 1;
      }
    }
  }
}

// Fixed bounds that do not divide a size ask for a remainder.
void MappingSpace::check_products(const Constraints& constraints, const Problem& problem, Remainders remainders) {
  for (int d = 0; d < dimensions; ++d) {
    int64_t product = 1;
    double reach = 1;
    for (int s = 0; s < std::ssize(slots); ++s) {
      const int64_t bound = fixed[slot_index(s, d)];
      product *= std::max<int64_t>(bound, 1);
      reach *= static_cast<double>(bound != 0 ? bound : most[slot_index(s, d)]);
    }
    const bool divides = product <= size[d] && size[d] % product == 0;
    if (divides && reach >= static_cast<double>(size[d])) continue;
    if (reach < static_cast<double>(size[d]) || remainders == Remainders::never) {
      throw InputError(
          {.source = constraints.source,
           .path = "constraints",
           .value = fmt::format("{}: factors make {}", problem.dimensions[d].name,
                                divides ? reach : static_cast<double>(product)),
           .expected = fmt::format("factors that make {}{}", size[d], divides ? "" : ", or remainders to be allowed")});
    }
    uneven[d] = true;
  }
}

int64_t MappingSpace::room_to_spread(const MappingPoint& point, int slot, int dimension) const {
  int64_t used = 1, spread = 1;
  for (int d = 0; d < dimensions; ++d) {
    if (d != dimension) used *= point.bound[slot_index(slot, d)];
  }
  for (int s = 0; s < std::ssize(slots); ++s) {
    const bool beside = s != slot && slots[s].level == slots[slot].level && slots[s].kind != LoopKind::temporal;
    if (beside) spread *= point.bound[slot_index(s, dimension)];
  }
  const int64_t by_dimension = most_spread[slots[slot].level * dimensions + dimension] / spread;
  const int64_t by_array = slots[slot].fanout > 0 ? slots[slot].fanout / used : by_dimension;
  return std::max<int64_t>(1, std::min(by_array, by_dimension));
}

MappingPoint MappingSpace::outermost() const {
  MappingPoint point;
  point.kept = may_keep;
  point.bound.resize(fixed.size());
  for (size_t i = 0; i < fixed.size(); ++i) point.bound[i] = std::max<int64_t>(fixed[i], 1);
  for (int d = 0; d < dimensions; ++d) {
    int64_t covered = 1;
    for (int s = 0; s < std::ssize(slots); ++s) covered *= point.bound[slot_index(s, d)];
    int64_t left = (size[d] + covered - 1) / covered;
    // In time first; over the array only what has no other place, within what is left of it.
    for (const bool spatial : {false, true}) {
      for (const int s : open_slots[d]) {
        if ((slots[s].kind != LoopKind::temporal) != spatial) continue;
        const int64_t limit = std::min(most[slot_index(s, d)], spatial ? room_to_spread(point, s, d) : left);
        const int64_t own = uneven[d] ? std::min(left, limit) : largest_divisor(left, limit, divisors[d]);
        point.bound[slot_index(s, d)] = own;
        left = (left + own - 1) / own;
      }
    }
  }
  for (int i = 0; i < levels; ++i) {
    std::vector<int> order = given_order[i];
    for (int d = 0; d < dimensions; ++d) {
      if (std::ranges::find(order, d) == order.end()) order.push_back(d);
    }
    point.order.insert(point.order.end(), order.begin(), order.end());
  }
  return point;
}

bool MappingSpace::order_matters(int level) const {
  for (int i = level + 1; i < levels; ++i) {
    if (may_keep[i] != 0) return true;
  }
  return false;
}

bool MappingSpace::fits_array(const MappingPoint& point) const {
  for (int s = 0; s < std::ssize(slots); ++s) {
    if (slots[s].kind == LoopKind::temporal) continue;
    double used = 1;
    for (int d = 0; d < dimensions; ++d) used *= static_cast<double>(point.bound[slot_index(s, d)]);
    if (used > static_cast<double>(slots[s].fanout)) return false;
  }
  if (!constrains_array) return true;
  for (int i = 0; i < levels; ++i) {
    double used = 1;
    for (int d = 0; d < dimensions; ++d) {
      int64_t spread = 1;
      for (int s = 0; s < std::ssize(slots); ++s) {
        if (slots[s].level == i && slots[s].kind != LoopKind::temporal) spread *= point.bound[slot_index(s, d)];
      }
      if (spread > most_spread[i * dimensions + d]) return false;
      used *= static_cast<double>(spread);
    }
    if (used < least_used[i]) return false;
  }
  return true;
}

void MappingSpace::write_mapping(const MappingPoint& point, const Problem& problem, Mapping& mapping) const {
  mapping.kept.assign(point.kept.begin(), point.kept.end());
  mapping.loops.clear();
  bool remainders = false;
  const auto add = [&](const LoopSlot& slot, int s, int d) {
    const int64_t bound = point.bound[slot_index(s, d)];
    if (bound == 1) return;
    remainders = remainders || uneven[d];
    mapping.loops.push_back({.level = slot.level, .dimension = d, .bound = bound, .last = bound, .kind = slot.kind});
  };
  for (int s = 0; s < std::ssize(slots); ++s) {
    const LoopSlot& slot = slots[s];
    if (slot.kind == LoopKind::temporal) {
      for (int place = dimensions - 1; place >= 0; --place) {
        add(slot, s, point.order[slot.level * dimensions + place]);
      }
    } else {
      for (int d = 0; d < dimensions; ++d) add(slot, s, d);
    }
  }
  if (remainders) set_remainders(mapping, problem);
}

MappingPoint MappingSpace::point_of(const Mapping& mapping) const {
  MappingPoint point{.bound = std::vector<int64_t>(slots.size() * dimensions, 1), .kept = mapping.kept};
  std::vector<std::vector<int>> orders = given_order;
  const auto add_to_order = [&](int level, int dimension) {
    if (std::ranges::find(orders[level], dimension) == orders[level].end()) orders[level].push_back(dimension);
  };
  for (auto loop = mapping.loops.rbegin(); loop != mapping.loops.rend(); ++loop) {
    for (int s = 0; s < std::ssize(slots); ++s) {
      if (slots[s].level != loop->level || slots[s].kind != loop->kind) continue;
      point.bound[slot_index(s, loop->dimension)] = loop->bound;
    }
    if (loop->kind == LoopKind::temporal) add_to_order(loop->level, loop->dimension);
  }
  for (int i = 0; i < levels; ++i) {
    for (int d = 0; d < dimensions; ++d) add_to_order(i, d);
    point.order.insert(point.order.end(), orders[i].begin(), orders[i].end());
  }
  return point;
}

double MappingSpace::log2_points() const {
  double points = 0;
  uint32_t with_loops = 0;
  for (int d = 0; d < dimensions; ++d) {
    int64_t left = size[d];
    const auto places = static_cast<int>(open_slots[d].size());
    if (size[d] == 1 || places == 0) continue;
    ++with_loops;
    for (const int64_t prime : primes[d]) {
      int exponent = 0;
      for (; left % prime == 0; left /= prime) ++exponent;
      points += log2_ways(exponent, places);
    }
  }
  for (int i = 0; i < levels; ++i) {
    if (may_keep[i] == 0) continue;
    points += log2_factorial(std::max(0, static_cast<int>(with_loops) - static_cast<int>(given_order[i].size())));
    points += std::popcount(may_keep[i] & ~must_keep[i]);
  }
  return points;
}

std::vector<std::vector<int>> distinct_orders(const MappingSpace& space, uint32_t active, std::span<const int> given) {
  OrderSearch search{.space = space, .found = {}};
  uint32_t open = (1U << space.tensors) - 1;
  std::vector<int> order(given.begin(), given.end());
  for (const int d : given) {
    if ((active >> d & 1) != 0) open &= ~search.closes(d, open);
    active &= ~(1U << d);
  }
  search.extend(order, active, open);
  return search.found;
}

}  // namespace foretoken
