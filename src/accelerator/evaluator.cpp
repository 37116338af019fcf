#include "accelerator/evaluator.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>

#include "accelerator/tile.h"
#include "base/error.h"

namespace foretoken {
namespace {

constexpr int max_loops = 96;
constexpr double rounding_slack = 1e-9;  // of counts, which are whole numbers up to the division by instances

struct RankPlan {
  int terms = 0;
  std::array<int, max_rank_terms> dimension{};
  std::array<double, max_rank_terms> coefficient{};
  double full_extent = 1;
};

struct TensorPlan {
  bool written = false;
  double words = 1;
  uint32_t dimensions = 0;  // bits
  int ranks = 0;
  std::array<RankPlan, max_tensor_ranks> rank;
};

struct LevelPlan {
  bool stores = false;
  double held = 0;  // 0 = unlimited
  double fanout_x = 1, fanout_y = 1, instances = 1;
  double words_per_access = 1;
  double read_rate = 0, write_rate = 0, shared_rate = 0;  // 0 = no limit
  double access_cycles = 0, hop_cycles = 0;
  bool single_buffer = true, multicast = true, reduces = true, links = false;
  AccessEnergy energy;
};

// A loop that runs more than once, with the size of one of its steps.
struct FlatLoop {
  int level = 0, dimension = 0;
  double bound = 1, last = 1;
  double step = 1;
  bool spatial = false;
};

struct FlatNest {
  int count = 0;
  std::array<FlatLoop, max_loops> loop;
  std::array<int, max_accelerator_levels + 1> first;  // index of the first loop at or inside the level
  uint32_t uneven = 0;                                // dimensions with a remainder
};

// How often the loops over a dimension that `counts` picks run, with remainders, among the first `end` loops.
template <typename Picks>
double true_iterations(const FlatNest& nest, int dimension, int end, const Picks& counts) {
  double full = 1, last = 1;
  for (int i = end - 1; i >= 0; --i) {
    const FlatLoop& loop = nest.loop[i];
    if (loop.dimension != dimension) continue;
    if (counts(i)) {
      last = (loop.last - 1) * full + last;
      full *= loop.bound;
    } else if (loop.last > 1) {
      last = full;
    }
  }
  return last;
}

// Different values of a i + b j for i < n, j < m: those a step of (b, -a) / gcd apart coincide.
double distinct_sums(double a, double n, double b, double m) {
  const auto divisor = static_cast<double>(std::gcd(static_cast<int64_t>(a), static_cast<int64_t>(b)));
  return n * m - std::max(0.0, n - b / divisor) * std::max(0.0, m - a / divisor);
}

// Of a port that shares its cycles with another; 0 = no limit.
double slower_rate(double own, double shared) {
  if (own <= 0 || shared <= 0) return std::max(own, shared);
  return std::min(own, shared);
}

double accesses(double words, double words_per_access) {
  return std::ceil(words / words_per_access - rounding_slack);
}

}  // namespace

struct MappingEvaluator::Plan {
  const Architecture* architecture = nullptr;
  const Problem* problem = nullptr;
  EvaluationRules rules;
  int levels = 0;  // above the compute level
  int tensors = 0;
  int dimensions = 0;
  double operations = 1;
  std::array<double, max_problem_dimensions> size{};
  std::array<LevelPlan, max_accelerator_levels> level;
  std::array<TensorPlan, max_problem_tensors> tensor;

  bool flatten(const Mapping& mapping, FlatNest& nest) const;
  double compute_cycles(const FlatNest& nest) const;
  bool fits(const Mapping& mapping, const FlatNest& nest, Evaluation& result) const;

  // What the tiles of one tensor at `child` (the compute level included) ask of the level `parent` that keeps it next
  // further out, summed over all instances and the whole run.
  struct Flow {
    double received = 0;   // by the child level
    double delivered = 0;  // by the parent level, a word that many want counted once
    double first = 0;      // of those delivered, in the first tile of one parent
  };
  Flow flow(const FlatNest& nest, int tensor, int parent, int child, const TileSizes& tile) const;
  double shared_by_neighbours(const FlatNest& nest, const RankPlan& rank, int parent, int child, double extent) const;
  double overlap_of_all(const FlatNest& nest, const RankPlan& rank, int moving, double overlap, const TileSizes& tile,
                        const TileSizes& tiles) const;
  double copies(const FlatNest& nest, int tensor, int level) const;
  bool place_tiles(const Mapping& mapping, Evaluation& result, std::span<const TileSizes> tiles) const;
  void count_tensor(const FlatNest& nest, int tensor, Evaluation& result, std::span<const TileSizes> tiles) const;
  void add_network_energy(const Flow& moved, int parent, int child, Evaluation& result) const;
  void add_feeding(Evaluation& result) const;
  void add_cycles_and_energy(Evaluation& result) const;
};

bool MappingEvaluator::Plan::flatten(const Mapping& mapping, FlatNest& nest) const {
  nest.count = 0;
  nest.uneven = 0;
  int filled = 0;
  nest.first[0] = 0;
  for (const Loop& loop : mapping.loops) {
    while (filled < loop.level) nest.first[++filled] = nest.count;
    if (loop.bound == 1) continue;
    if (nest.count == max_loops) return false;
    if (loop.last != loop.bound) nest.uneven |= 1U << loop.dimension;
    nest.loop[nest.count++] = {.level = loop.level,
                               .dimension = loop.dimension,
                               .bound = static_cast<double>(loop.bound),
                               .last = static_cast<double>(loop.last),
                               .spatial = is_spatial(loop)};
  }
  while (filled < levels) nest.first[++filled] = nest.count;
  TileSizes inside;
  inside.fill(1);
  for (int i = nest.count - 1; i >= 0; --i) {
    FlatLoop& loop = nest.loop[i];
    loop.step = inside[loop.dimension];
    inside[loop.dimension] *= loop.bound;
  }
  return true;
}

double MappingEvaluator::Plan::compute_cycles(const FlatNest& nest) const {
  double cycles = 1;
  for (int i = 0; i < nest.count; ++i) {
    const FlatLoop& loop = nest.loop[i];
    if (!loop.spatial && (nest.uneven >> loop.dimension & 1) == 0) cycles *= loop.bound;
  }
  if (nest.uneven == 0) return cycles;
  for (int d = 0; d < dimensions; ++d) {
    if ((nest.uneven >> d & 1) == 0) continue;
    cycles *= true_iterations(nest, d, nest.count, [&](int i) { return !nest.loop[i].spatial; });
  }
  return cycles;
}

// Fan-outs; used instances of each level.
bool MappingEvaluator::Plan::fits(const Mapping& mapping, const FlatNest& nest, Evaluation& result) const {
  double used = 1;
  int next = 0;
  for (int i = 0; i < levels; ++i) {
    const LevelPlan& own = level[i];
    result.levels[i].instances = used;
    double across = 1, down = 1;
    const int end = nest.first[i + 1];
    for (; next < end; ++next) {
      const FlatLoop& loop = nest.loop[next];
      if (loop.spatial) across *= loop.bound;
    }
    if (across > 1) {
      for (const Loop& loop : mapping.loops) {
        if (loop.level == i && loop.kind == LoopKind::spatial_y) down *= static_cast<double>(loop.bound);
      }
      used *= across;
      across /= down;
    }
    if (across > own.fanout_x || down > own.fanout_y) return false;
    result.levels[i].across = across;
    result.levels[i].down = down;
  }
  result.levels[levels].instances = used;
  return true;
}

// The part of a rank's traffic that is left when instances below one parent want the same words.
double MappingEvaluator::Plan::shared_by_neighbours(const FlatNest& nest, const RankPlan& rank, int parent, int child,
                                                    double extent) const {
  double left = 1;
  for (int i = parent; i < child; ++i) {
    const LevelPlan& own = level[i];
    int found = 0;
    uint32_t spread = 0;  // dimensions of those found
    std::array<double, 2> shift{}, bound{};
    for (int l = nest.first[i]; l < nest.first[i + 1]; ++l) {
      const FlatLoop& loop = nest.loop[l];
      if (!loop.spatial) continue;
      for (int term = 0; term < rank.terms; ++term) {
        if (rank.dimension[term] != loop.dimension) continue;
        const double own_shift = rank.coefficient[term] * loop.step;
        if (own.links && own_shift < extent) {
          left *= (extent + (loop.bound - 1) * own_shift) / (loop.bound * extent);
        } else if (found < 2) {
          shift[found] = own_shift;
          bound[found] = loop.bound;
          spread |= 1U << loop.dimension;
          ++found;
        }
      }
    }
    // With a remainder tiles differ in size, so few are the same.
    const bool alike = (spread & nest.uneven) == 0 || !rules.idle_instances_rest;
    if (found == 2 && own.multicast && alike) {
      left *= distinct_sums(shift[0], bound[0], shift[1], bound[1]) / (bound[0] * bound[1]);
    }
  }
  return left;
}

// Words that a step of the loop over a rank's term `moving` leaves in place, summed over the tiles of the other terms:
// `overlap` for full ones, less for the last of a dimension with a remainder.
double MappingEvaluator::Plan::overlap_of_all(const FlatNest& nest, const RankPlan& rank, int moving, double overlap,
                                              const TileSizes& tile, const TileSizes& tiles) const {
  double all = 0;
  for (unsigned lasts = 0; lasts < 1U << rank.terms; ++lasts) {
    double count = 1, left = overlap;
    for (int term = 0; term < rank.terms && count > 0; ++term) {
      const int d = rank.dimension[term];
      const bool uneven = (nest.uneven >> d & 1) != 0 && term != moving;
      if ((lasts >> term & 1) == 0) {
        if (term != moving) count *= uneven ? tiles[d] - 1 : tiles[d];
      } else if (uneven) {
        left -= rank.coefficient[term] * (tile[d] * tiles[d] - size[d]);
      } else {
        count = 0;
      }
    }
    all += count * std::max(0.0, left);
  }
  return all;
}

MappingEvaluator::Plan::Flow MappingEvaluator::Plan::flow(const FlatNest& nest, int tensor_index, int parent, int child,
                                                          const TileSizes& tile) const {
  const TensorPlan& own = tensor[tensor_index];
  const bool computes = child == levels;
  const int end = nest.first[child];
  const int inside_parent = nest.first[parent];

  // The innermost loop in time that moves the tile: loops inside it leave the tile where it is, and every turn of a
  // loop outside it starts over. Multipliers hold no tile, so each turn of any loop counts.
  int moves = computes ? end : -1;
  bool unrelated_inside = false;
  double unrelated_received = 1, unrelated_delivered = 1;
  double apart = 1;  // different tiles below one parent at a time
  TileSizes tiles;   // number: of a dimension that the tensor uses
  std::fill_n(tiles.begin(), dimensions, 1.0);
  for (int i = end - 1; i >= 0; --i) {
    const FlatLoop& loop = nest.loop[i];
    const bool related = (own.dimensions >> loop.dimension & 1) != 0;
    if (!loop.spatial && moves < 0) {
      if (!related) {
        unrelated_inside = true;
        continue;
      }
      moves = i;
    }
    if (related) {
      tiles[loop.dimension] *= loop.bound;
      if (loop.spatial && i >= inside_parent) apart *= loop.bound;
      continue;
    }
    if ((nest.uneven >> loop.dimension & 1) != 0) continue;  // counted below
    unrelated_received *= loop.bound;
    const LevelPlan& at = level[loop.level];
    const bool once = loop.spatial && i >= inside_parent && (own.written ? at.reduces : at.multicast);
    if (!once) unrelated_delivered *= loop.bound;
  }
  if (nest.uneven != 0) {
    for (int d = 0; d < dimensions; ++d) {
      if ((nest.uneven >> d & 1) == 0) continue;
      if ((own.dimensions >> d & 1) != 0) {
        tiles[d] = true_iterations(nest, d, end, [](int) { return true; });
        continue;
      }
      const auto counts = [&](int i) { return nest.loop[i].spatial || i <= moves; };
      unrelated_received *= true_iterations(nest, d, end, counts);
      unrelated_delivered *= true_iterations(nest, d, end, [&](int i) {
        const FlatLoop& loop = nest.loop[i];
        const LevelPlan& at = level[loop.level];
        return counts(i) && !(loop.spatial && i >= inside_parent && (own.written ? at.reduces : at.multicast));
      });
    }
  }

  double received = unrelated_received;
  double delivered = unrelated_delivered;
  for (int r = 0; r < own.ranks; ++r) {
    const RankPlan& rank = own.rank[r];
    if (rank.terms == 1 && rank.coefficient[0] == 1) {
      // Tiles of one dimension do not overlap: together they are the dimension.
      received *= rank.full_extent;
      delivered *= rank.full_extent;
      continue;
    }
    // Sum of 1 + sum(coefficient (size - 1)) over all tiles.
    double all_tiles = 1, extent = 1;
    for (int term = 0; term < rank.terms; ++term) {
      const auto d = rank.dimension[term];
      all_tiles *= tiles[d];
      extent += rank.coefficient[term] * (tile[d] - 1);
    }
    double words = all_tiles;
    for (int term = 0; term < rank.terms; ++term) {
      const auto d = rank.dimension[term];
      words += rank.coefficient[term] * (size[d] - tiles[d]) * (all_tiles / tiles[d]);
    }
    if (!computes && moves >= 0 && (rules.halo_across_unrelated_loops || !unrelated_inside)) {
      const FlatLoop& loop = nest.loop[moves];
      for (int term = 0; term < rank.terms; ++term) {
        const int d = rank.dimension[term];
        if (d != loop.dimension) continue;
        const double overlap = extent - rank.coefficient[term] * loop.step;
        if (overlap <= 0) continue;
        const double own_tiles = tiles[d];
        const double sweeps = (nest.uneven >> d & 1) != 0
                                  ? true_iterations(nest, d, end, [&](int i) { return i != moves; })
                                  : own_tiles / loop.bound;
        words -= (own_tiles - sweeps) * overlap_of_all(nest, rank, term, overlap, tile, tiles);
      }
    }
    received *= words;
    delivered *= words * shared_by_neighbours(nest, rank, parent, child, extent);
  }
  const double tile_size = computes ? 1 : tile_words(problem->tensors[tensor_index], tile);
  return {.received = received, .delivered = delivered, .first = tile_size * apart};
}

// Instances of a level that hold a copy of the same words of a tensor.
double MappingEvaluator::Plan::copies(const FlatNest& nest, int tensor_index, int level_index) const {
  const uint32_t unrelated = ~tensor[tensor_index].dimensions;
  const int end = nest.first[level_index];
  double copies = 1;
  for (int i = 0; i < end; ++i) {
    const FlatLoop& loop = nest.loop[i];
    if (loop.spatial && ((unrelated & ~nest.uneven) >> loop.dimension & 1) != 0) copies *= loop.bound;
  }
  if ((unrelated & nest.uneven) == 0) return copies;
  for (int d = 0; d < dimensions; ++d) {
    if (((unrelated & nest.uneven) >> d & 1) == 0) continue;
    copies *= true_iterations(nest, d, end, [&](int i) { return nest.loop[i].spatial; });
  }
  return copies;
}

// Tiles of kept tensors; whether each level has room for its own.
bool MappingEvaluator::Plan::place_tiles(const Mapping& mapping, Evaluation& result,
                                         std::span<const TileSizes> tiles) const {
  for (int i = levels - 1; i >= 0; --i) {
    const LevelPlan& own = level[i];
    const uint32_t kept = mapping.kept[i];
    if (!own.stores && kept != 0) return false;
    LevelUse& use = result.levels[i];
    use.used_words = 0;
    use.network_pj = 0;
    for (int t = 0; t < tensors; ++t) {
      TensorTraffic& traffic = result.traffic[i * tensors + t];
      if ((kept >> t & 1) == 0) {
        traffic = {};
        continue;
      }
      const double words = tile_words(problem->tensors[t], tiles[i]);
      traffic = {.kept = true, .tile_words = words, .instances = use.instances};
      use.used_words += words;
    }
    if (own.held > 0 && use.used_words > own.held) return false;
  }
  return true;
}

void MappingEvaluator::Plan::count_tensor(const FlatNest& nest, int tensor_index, Evaluation& result,
                                          std::span<const TileSizes> tiles) const {
  const TensorPlan& own = tensor[tensor_index];
  const auto at = [&](int level_index) -> TensorTraffic& {
    return result.traffic[level_index * tensors + tensor_index];
  };
  int parent = -1;
  for (int child = 0; child <= levels; ++child) {
    const bool computes = child == levels;
    if (!computes && !at(child).kept) continue;
    if (parent >= 0) {
      Flow moved = flow(nest, tensor_index, parent, child, tiles[child]);
      TensorTraffic& above = at(parent);
      if (computes && !rules.idle_instances_rest && nest.uneven != 0 &&
          result.levels[levels].instances == above.instances) {
        moved.delivered = moved.received = result.compute_cycles * above.instances;
      }
      above.words_to_below = moved.received;
      if (own.written) {
        // The first pass over the words that an instance sees costs no read.
        const double first_above = own.words * copies(nest, tensor_index, parent);
        above.updates = moved.delivered / above.instances;
        above.reads = (moved.delivered - first_above) / above.instances;
        if (!computes) {
          at(child).fills = (moved.received - own.words * copies(nest, tensor_index, child)) / at(child).instances;
        }
      } else {
        above.reads = moved.delivered / above.instances;
        if (!computes) at(child).fills = moved.received / at(child).instances;
      }
      // First tiles go in before anything can run, last results come out after.
      const LevelPlan& from = level[parent];
      const double rate = slower_rate(own.written ? from.write_rate : from.read_rate, from.shared_rate);
      const double cycles = from.access_cycles + (rate > 0 ? moved.first / rate : 0);
      double& part = own.written ? result.latency.drain_cycles : result.latency.fill_cycles;
      part += cycles;
      if (!computes && level[child].single_buffer && rate > 0) {
        result.latency.stall_cycles += std::max(0.0, moved.delivered / above.instances - moved.first) / rate;
      }
      add_network_energy(moved, parent, child, result);
    }
    parent = child;
  }
}

// A word goes half way across and down to one instance, and one link further to each other one that wants it.
void MappingEvaluator::Plan::add_network_energy(const Flow& moved, int parent, int child, Evaluation& result) const {
  for (int i = parent; i < child; ++i) {
    LevelUse& use = result.levels[i];
    const double hop_pj = level[i].energy.hop_pj_per_word;
    if (hop_pj <= 0 || use.across * use.down == 1) continue;
    use.network_pj += hop_pj * (moved.delivered * (use.across + use.down - 2) / 2 + (moved.received - moved.delivered));
  }
}

// Words that travel through an array reach its far corner so many hops later. It starts over when the tile that stays
// longest below it changes, unless the next one is there already.
void MappingEvaluator::Plan::add_feeding(Evaluation& result) const {
  for (int i = 0; i < levels; ++i) {
    const LevelUse& use = result.levels[i];
    const double hops = use.across + use.down - 2;
    if (level[i].hop_cycles <= 0 || hops <= 0) continue;
    double starts = std::numeric_limits<double>::infinity();
    for (int t = 0; t < tensors; ++t) {
      int child = i + 1, parent = i;
      while (child < levels && !result.traffic[child * tensors + t].kept) ++child;
      while (parent >= 0 && !result.traffic[parent * tensors + t].kept) --parent;
      if (child == levels || parent < 0 || !level[child].single_buffer) continue;
      const TensorTraffic& held = result.traffic[child * tensors + t];
      const double received = result.traffic[parent * tensors + t].words_to_below;
      starts = std::min(starts, received / (held.tile_words * held.instances));
    }
    result.latency.feed_cycles += level[i].hop_cycles * hops * (std::isinf(starts) ? 1 : std::max(1.0, starts));
  }
}

void MappingEvaluator::Plan::add_cycles_and_energy(Evaluation& result) const {
  result.operations = operations;
  result.cycles = result.compute_cycles;
  result.slowest_level = -1;
  for (int i = 0; i < levels; ++i) {
    const LevelPlan& own = level[i];
    LevelUse& use = result.levels[i];
    double reads = 0, writes = 0;
    use.access_pj = 0;
    for (int t = 0; t < tensors; ++t) {
      TensorTraffic& traffic = result.traffic[i * tensors + t];
      if (!traffic.kept) continue;
      reads += traffic.reads;
      writes += traffic.fills + traffic.updates;
      traffic.energy_pj = traffic.instances * (accesses(traffic.reads, own.words_per_access) * own.energy.read_pj +
                                               accesses(traffic.fills, own.words_per_access) * own.energy.fill_pj +
                                               accesses(traffic.updates, own.words_per_access) * own.energy.update_pj);
      use.access_pj += traffic.energy_pj;
    }
    use.cycles = std::max({result.compute_cycles, own.read_rate > 0 ? reads / own.read_rate : 0,
                           own.write_rate > 0 ? writes / own.write_rate : 0,
                           own.shared_rate > 0 ? (reads + writes) / own.shared_rate : 0});
    if (use.cycles > result.cycles) {
      result.cycles = use.cycles;
      result.slowest_level = i;
    }
  }
  result.cycles = std::ceil(result.cycles - rounding_slack);
  result.compute_pj = operations * level[levels].energy.compute_pj;
  result.energy_pj = result.compute_pj;
  for (int i = 0; i <= levels; ++i) {
    LevelUse& use = result.levels[i];
    const LevelPlan& own = level[i];
    const double leaking = rules.idle_parts_leak ? own.instances : i < levels ? use.instances : 0;
    use.leakage_pj = leaking * own.energy.leak_pj_per_cycle * result.cycles;
    result.energy_pj += use.access_pj + use.leakage_pj + use.network_pj;
  }
}

MappingEvaluator::MappingEvaluator(const Architecture& architecture, const Problem& problem, EvaluationRules rules) {
  ensure(problem_fault(problem).empty(), "only a sound problem is evaluated");
  ensure(architecture_fault(architecture).empty(), "only a sound architecture is evaluated");
  auto plan = std::make_unique<Plan>();
  plan->architecture = &architecture;
  plan->problem = &problem;
  plan->rules = rules;
  plan->levels = static_cast<int>(architecture.levels.size()) - 1;
  plan->tensors = static_cast<int>(problem.tensors.size());
  plan->dimensions = static_cast<int>(problem.dimensions.size());
  plan->operations = foretoken::operations(problem);
  for (size_t d = 0; d < problem.dimensions.size(); ++d) {
    plan->size[d] = static_cast<double>(problem.dimensions[d].size);
  }
  for (size_t i = 0; i < architecture.levels.size(); ++i) {
    const AcceleratorLevel& level = architecture.levels[i];
    const bool computes = level.kind == LevelKind::compute;
    plan->level[i] = {.stores = level.kind == LevelKind::storage,
                      .held = static_cast<double>(words_held(level)),
                      .fanout_x = computes ? 1 : static_cast<double>(fanout_x(architecture, i)),
                      .fanout_y = computes ? 1 : static_cast<double>(fanout_y(architecture, i)),
                      .instances = static_cast<double>(instances(level)),
                      .words_per_access = static_cast<double>(level.words_per_access),
                      .read_rate = level.bandwidth.read.value_or(0),
                      .write_rate = level.bandwidth.write.value_or(0),
                      .shared_rate = level.bandwidth.shared.value_or(0),
                      .access_cycles = level.access_cycles,
                      .hop_cycles = level.hop_cycles,
                      .single_buffer = level.buffers == 1,
                      .multicast = level.multicast,
                      .reduces = level.spatial_reduction,
                      .links = level.neighbour_links,
                      .energy = level.energy};
  }
  for (size_t t = 0; t < problem.tensors.size(); ++t) {
    const ProblemTensor& tensor = problem.tensors[t];
    TensorPlan& own = plan->tensor[t];
    own.written = tensor.written;
    own.words = tensor_words(tensor, problem);
    own.ranks = static_cast<int>(tensor.ranks.size());
    for (size_t r = 0; r < tensor.ranks.size(); ++r) {
      RankPlan& rank = own.rank[r];
      for (const ProjectionTerm& term : tensor.ranks[r]) {
        own.dimensions |= 1U << term.dimension;
        rank.dimension[rank.terms] = term.dimension;
        rank.coefficient[rank.terms] = static_cast<double>(term.coefficient);
        rank.full_extent += static_cast<double>(term.coefficient) * (plan->size[term.dimension] - 1);
        ++rank.terms;
      }
    }
  }
  plan_ = std::move(plan);
}

MappingEvaluator::~MappingEvaluator() = default;
MappingEvaluator::MappingEvaluator(MappingEvaluator&&) noexcept = default;

const Architecture& MappingEvaluator::architecture() const {
  return *plan_->architecture;
}

const Problem& MappingEvaluator::problem() const {
  return *plan_->problem;
}

bool MappingEvaluator::evaluate(const Mapping& mapping, Evaluation& result) const {
  const Plan& plan = *plan_;
  ensure(std::ssize(mapping.kept) == plan.levels, "a mapping says what each level keeps");
  result.levels.resize(plan.levels + 1);
  result.traffic.resize(plan.levels * plan.tensors);
  FlatNest nest;
  if (!plan.flatten(mapping, nest) || !plan.fits(mapping, nest, result)) return false;
  result.latency = {};
  result.compute_cycles = plan.compute_cycles(nest);

  std::array<TileSizes, max_accelerator_levels> tiles;
  const auto dimensions = plan.dimensions;
  auto& innermost = tiles[plan.levels];
  std::fill_n(innermost.begin(), dimensions, 1.0);
  for (int i = plan.levels - 1; i >= 0; --i) {
    TileSizes& own = tiles[i];
    std::copy_n(tiles[i + 1].begin(), dimensions, own.begin());
    for (int l = nest.first[i]; l < nest.first[i + 1]; ++l) {
      const FlatLoop& loop = nest.loop[l];
      double& size = own[loop.dimension];
      size = std::min(size * loop.bound, plan.size[loop.dimension]);
    }
  }
  if (!plan.place_tiles(mapping, result, tiles)) return false;
  for (int t = 0; t < plan.tensors; ++t) plan.count_tensor(nest, t, result, tiles);
  plan.add_feeding(result);
  plan.add_cycles_and_energy(result);
  return true;
}

double utilization(const Evaluation& evaluation, const Architecture& architecture) {
  return evaluation.operations / (evaluation.cycles * static_cast<double>(instances(architecture.levels.back())));
}

}  // namespace foretoken
