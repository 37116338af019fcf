#include "accelerator/evaluator.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>

#include "accelerator/dram_rows.h"
#include "accelerator/evaluation_plan.h"
#include "accelerator/flat_nest.h"
#include "accelerator/mesh_load.h"
#include "accelerator/tensor_flow.h"
#include "accelerator/tile.h"
#include "base/error.h"

namespace foretoken {
namespace {

constexpr double rounding_slack = 1e-9;  // of counts, which are whole numbers up to the division by instances

// Of a port that shares its cycles with another; 0 = no limit.
double slower_rate(double own, double shared) {
  if (own <= 0 || shared <= 0) return std::max(own, shared);
  return std::min(own, shared);
}

double read_port(const LevelPlan& level) {
  return slower_rate(level.read_rate, level.shared_rate);
}

double write_port(const LevelPlan& level) {
  return slower_rate(level.write_rate, level.shared_rate);
}

double cycles_at(double words, double rate) {
  return rate > 0 ? words / rate : 0;
}

double accesses(double words, double words_per_access) {
  return std::ceil(words / words_per_access - rounding_slack);
}

}  // namespace

struct MappingEvaluator::Plan : EvaluationPlan {
  using EvaluationPlan::EvaluationPlan;

  bool fits(const Mapping& mapping, const FlatNest& nest, Evaluation& result) const;
  double words_per_element(const TensorTraffic& traffic, int level_index, int tensor_index) const;
  bool has_room_for_sums(Evaluation& result) const;
  bool place_tiles(const Mapping& mapping, Evaluation& result, std::span<const TileSizes> tiles) const;
  void count_tensor(const FlatNest& nest, int tensor, Evaluation& result, std::span<const TileSizes> tiles) const;
  void add_exposed(const TensorFlow& moved, int parent, int child, int tensor_index, Evaluation& result) const;
  void add_network_energy(const TensorFlow& moved, int parent, int child, int tensor_index, Evaluation& result) const;
  void add_mesh_words(const FlatNest& nest, const TensorFlow& moved, int parent, int child, int tensor_index,
                      Evaluation& result) const;
  void add_feeding(Evaluation& result) const;
  void finish_links_and_rows(int level_index, double port_cycles, Evaluation& result) const;
  void add_cycles_and_energy(Evaluation& result) const;
};

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
  result.levels[levels] = {.instances = used};  // `result` may have served another architecture
  return true;
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
    use.exposed_reads = use.exposed_writes = use.passed_up = 0;
    use.mesh_words = use.mesh_entering = use.mesh_cycles = 0;
    use.rows_opened = use.row_cycles = 0;
    for (int t = 0; t < tensors; ++t) {
      TensorTraffic& traffic = result.traffic[i * tensors + t];
      if ((kept >> t & 1) == 0) {
        traffic = {};
        continue;
      }
      const double words = tile_words(problem->tensors[t], tiles[i]);
      traffic = {.kept = true, .tile_words = words, .instances = use.instances};
      use.used_words += words * tensor[t].element_words[i];
    }
    if (own.held > 0 && use.used_words > own.held) return false;
  }
  return true;
}

// A level that adds to sums holds them at their full width; one that only gets complete ones, at the result's.
double MappingEvaluator::Plan::words_per_element(const TensorTraffic& traffic, int level_index,
                                                 int tensor_index) const {
  const TensorPlan& own = tensor[tensor_index];
  const bool adds = own.written && traffic.reads > rounding_slack;
  return adds ? own.sum_words[level_index] : own.element_words[level_index];
}

// place_tiles took all sums for complete.
bool MappingEvaluator::Plan::has_room_for_sums(Evaluation& result) const {
  for (int t = 0; t < tensors; ++t) {
    if (!tensor[t].sums_differ) continue;
    for (int i = 0; i < levels; ++i) {
      const TensorTraffic& traffic = result.traffic[i * tensors + t];
      if (!traffic.kept) continue;
      LevelUse& use = result.levels[i];
      use.used_words += traffic.tile_words * (words_per_element(traffic, i, t) - tensor[t].element_words[i]);
      if (level[i].held > 0 && use.used_words > level[i].held) return false;
    }
  }
  return true;
}

void MappingEvaluator::Plan::count_tensor(const FlatNest& nest, int tensor_index, Evaluation& result,
                                          std::span<const TileSizes> tiles) const {
  const TensorPlan& own = tensor[tensor_index];
  const auto at = [&](int level_index) -> TensorTraffic& {
    return result.traffic[level_index * tensors + tensor_index];
  };
  std::array<TensorFlow, max_accelerator_levels> flow;  // into each level that keeps it, and the multipliers
  int parent = -1;
  for (int child = 0; child <= levels; ++child) {
    const bool computes = child == levels;
    if (!computes && !at(child).kept) continue;
    if (parent >= 0) {
      TensorFlow& moved = flow[child];
      moved = tensor_flow(*this, nest, tensor_index, parent, child, tiles[child]);
      TensorTraffic& above = at(parent);
      if (computes && !rules.idle_instances_rest && nest.uneven != 0 &&
          result.levels[levels].instances == above.instances) {
        moved.delivered = moved.received = result.compute_cycles * above.instances;
      }
      above.words_to_below = moved.received;
      if (own.written) {
        // The first pass over the words that an instance sees costs no read.
        const double first_above = own.words * copies(*this, nest, tensor_index, parent);
        above.updates = moved.delivered / above.instances;
        above.reads = (moved.delivered - first_above) / above.instances;
        if (!computes) {
          at(child).fills =
              (moved.received - own.words * copies(*this, nest, tensor_index, child)) / at(child).instances;
        }
      } else {
        above.reads = moved.delivered / above.instances;
        if (!computes) at(child).fills = moved.received / at(child).instances;
      }
      add_network_energy(moved, parent, child, tensor_index, result);
      add_mesh_words(nest, moved, parent, child, tensor_index, result);
      const LevelPlan& from = level[parent];
      if (from.rows.row_bytes > 0) {
        const double width = words_per_element(above, parent, tensor_index);
        const double element_bytes = width * architecture->levels[parent].word_bits / 8.0;
        const double words = own.written ? above.reads + above.updates : above.reads;
        result.levels[parent].rows_opened +=
            rows_opened(*this, nest, tensor_index, child, tiles[child], from.rows, element_bytes, words);
      }
    }
    parent = child;
  }
  // How wide a level holds sums is known once all its own traffic is.
  parent = -1;
  for (int child = 0; child <= levels; ++child) {
    if (child < levels && !at(child).kept) continue;
    if (parent >= 0) add_exposed(flow[child], parent, child, tensor_index, result);
    parent = child;
  }
}

// First tiles go in before anything can run, last results come out after, and a single buffer waits for all of its
// tiles. A transfer takes as long as the slower of the two ports. Where remainders make instances differ, what moves is
// the mean, and a first tile no more than that.
void MappingEvaluator::Plan::add_exposed(const TensorFlow& moved, int parent, int child, int tensor_index,
                                         Evaluation& result) const {
  const bool written = tensor[tensor_index].written, computes = child == levels;
  const TensorTraffic& above = result.traffic[parent * tensors + tensor_index];
  const LevelPlan& from = level[parent];
  LevelUse& use = result.levels[parent];
  const double rate = written ? write_port(from) : read_port(from);
  const double width = words_per_element(above, parent, tensor_index);
  const double all = width * moved.delivered / above.instances, first = std::min(width * moved.first, all);
  double first_cycles = cycles_at(first, rate), all_cycles = cycles_at(all, rate);
  double exposed = first;
  if (!computes) {
    // Words of one instance of the level inside.
    const TensorTraffic& below = result.traffic[child * tensors + tensor_index];
    const LevelPlan& to = level[child];
    LevelUse& use_below = result.levels[child];
    const double rate_below = written ? read_port(to) : write_port(to);
    const double width_below = words_per_element(below, child, tensor_index);
    const double all_below = width_below * moved.received / below.instances;
    const double first_below = std::min(width_below * below.tile_words, all_below);
    first_cycles = std::max(first_cycles, cycles_at(first_below, rate_below));
    all_cycles = std::max(all_cycles, cycles_at(all_below, rate_below));
    if (written) use_below.passed_up += all_below;
    (written ? use_below.exposed_reads : use_below.exposed_writes) += to.single_buffer ? all_below : first_below;
    if (to.single_buffer) {
      result.latency.stall_cycles += all_cycles - first_cycles;
      exposed = all;
      if (written) {  // partial sums that come back in wait as well
        const double back = width * above.reads, back_below = width_below * below.fills;
        result.latency.stall_cycles +=
            std::max(cycles_at(back, read_port(from)), cycles_at(back_below, write_port(to)));
        use.exposed_reads += back;
        use_below.exposed_writes += back_below;
      }
    }
  }
  (written ? result.latency.drain_cycles : result.latency.fill_cycles) += from.access_cycles + first_cycles;
  (written ? use.exposed_writes : use.exposed_reads) += exposed;
}

// A word goes half way across and down to one instance, and one link further to each other one that wants it.
void MappingEvaluator::Plan::add_network_energy(const TensorFlow& moved, int parent, int child, int tensor_index,
                                                Evaluation& result) const {
  const TensorTraffic& above = result.traffic[parent * tensors + tensor_index];
  for (int i = parent; i < child; ++i) {
    LevelUse& use = result.levels[i];
    const double hop_pj = level[i].energy.hop_pj_per_word;
    if (hop_pj <= 0 || use.across * use.down == 1) continue;
    use.network_pj += hop_pj * words_per_element(above, i, tensor_index) *
                      (moved.delivered * (use.across + use.down - 2) / 2 + (moved.received - moved.delivered));
  }
}

// Words cross the mesh of the level they come from, and those of networks on their way.
void MappingEvaluator::Plan::add_mesh_words(const FlatNest& nest, const TensorFlow& moved, int parent, int child,
                                            int tensor_index, Evaluation& result) const {
  const TensorTraffic& above = result.traffic[parent * tensors + tensor_index];
  double leaving = moved.received;
  for (int i = child - 1; i >= parent; --i) {
    double sharers = 1;  // instances below that take the same word, or add to the same sum
    const bool shares = tensor[tensor_index].written ? level[i].reduces : level[i].multicast;
    for (int l = nest.first[i]; shares && l < nest.first[i + 1]; ++l) {
      const FlatLoop& loop = nest.loop[l];
      if (loop.spatial && (tensor[tensor_index].dimensions >> loop.dimension & 1) == 0) sharers *= loop.bound;
    }
    const double entering = i == parent ? moved.delivered : std::max(moved.delivered, leaving / sharers);
    if (level[i].mesh.words_per_cycle > 0 && (i == parent || !level[i].stores)) {
      const double width = words_per_element(above, i, tensor_index);
      LevelUse& use = result.levels[i];
      use.mesh_words += width * link_words(level[i].mesh, {use.across, use.down}, entering, leaving);
      use.mesh_entering += width * entering;
    }
    leaving = entering;
  }
}

// Words that travel through an array reach its far corner so many hops later. It starts over when the tile that stays
// longest below it changes, unless the next one is there already.
void MappingEvaluator::Plan::add_feeding(Evaluation& result) const {
  for (int i = 0; i < levels; ++i) {
    const LevelUse& use = result.levels[i];
    const double hops = farthest_hops({use.across, use.down});
    const double hop_cycles = level[i].hop_cycles + level[i].mesh.hop_cycles;
    if (hop_cycles <= 0 || hops <= 0) continue;
    result.latency.drain_cycles += level[i].mesh.hop_cycles * hops;
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
    result.latency.feed_cycles += hop_cycles * hops * (std::isinf(starts) ? 1 : std::max(1.0, starts));
  }
}

// Of one level whose ports alone take `port_cycles`.
void MappingEvaluator::Plan::finish_links_and_rows(int level_index, double port_cycles, Evaluation& result) const {
  const LevelPlan& own = level[level_index];
  LevelUse& use = result.levels[level_index];
  if (own.mesh.words_per_cycle > 0) {
    use.mesh_cycles = mesh_cycles(own.mesh, {use.across, use.down}, use.mesh_entering / use.instances,
                                  use.mesh_words / use.instances);
    use.network_pj += own.mesh.hop_pj_per_word * use.mesh_words;
  }
  if (own.rows.row_bytes > 0) {
    use.row_cycles = cycles_with_rows(own.rows, use.rows_opened, port_cycles, architecture->clock_hz) - port_cycles;
    use.access_pj += use.rows_opened * use.instances * own.rows.activate_pj;
  }
}

void MappingEvaluator::Plan::add_cycles_and_energy(Evaluation& result) const {
  result.operations = operations;
  result.compute_cycles *= level[levels].operation_cycles;
  result.cycles = result.compute_cycles;
  result.slowest_level = -1;
  double overlapped = result.compute_cycles;  // what runs beside what: ports without the transfers that are exposed
  for (int i = 0; i < levels; ++i) {
    const LevelPlan& own = level[i];
    LevelUse& use = result.levels[i];
    double reads = 0, writes = 0;
    use.access_pj = 0;
    for (int t = 0; t < tensors; ++t) {
      TensorTraffic& traffic = result.traffic[i * tensors + t];
      if (!traffic.kept) continue;
      const double width = words_per_element(traffic, i, t);
      reads += width * traffic.reads;
      writes += width * (traffic.fills + traffic.updates);
      // As Timeloop has it, instances with work are spread over all memories that they are parts of.
      traffic.energy_pj = std::min(traffic.instances, own.clusters) *
                          (accesses(width * traffic.reads, own.words_per_access) * own.energy.read_pj +
                           accesses(width * traffic.fills, own.words_per_access) * own.energy.fill_pj +
                           accesses(width * traffic.updates, own.words_per_access) * own.energy.update_pj);
      use.access_pj += traffic.energy_pj;
    }
    const auto port_cycles = [&own](double read, double written) {
      return std::max({cycles_at(read, own.read_rate), cycles_at(written, own.write_rate),
                       cycles_at(read + written, own.shared_rate)});
    };
    const double counted_ports = port_cycles(reads, writes), all_ports = port_cycles(reads + use.passed_up, writes);
    const double hidden_ports = port_cycles(std::max(0.0, reads + use.passed_up - use.exposed_reads),
                                            std::max(0.0, writes - use.exposed_writes));
    finish_links_and_rows(i, counted_ports, result);
    use.cycles = std::max({result.compute_cycles, counted_ports + use.row_cycles, use.mesh_cycles});
    // Rows hold up words in proportion, also those that nothing hides.
    const double hidden_rows = use.row_cycles * (all_ports > 0 ? hidden_ports / all_ports : 1);
    result.latency.stall_cycles += use.row_cycles - hidden_rows;
    overlapped = std::max({overlapped, hidden_ports + hidden_rows, use.mesh_cycles});
    if (use.cycles > result.cycles) {
      result.cycles = use.cycles;
      result.slowest_level = i;
    }
  }
  result.cycles = std::ceil(result.cycles - rounding_slack);
  LatencyParts& latency = result.latency;
  const double exposed = latency.fill_cycles + latency.drain_cycles + latency.stall_cycles + latency.feed_cycles;
  latency.overlapped_cycles = std::max(std::ceil(overlapped - rounding_slack), result.cycles - exposed);
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

MappingEvaluator::MappingEvaluator(const Architecture& architecture, const Problem& problem, EvaluationRules rules)
    : plan_(std::make_unique<const Plan>(architecture, problem, rules)) {}
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
  if (!flatten(mapping, plan.levels, nest) || !plan.fits(mapping, nest, result)) return false;
  result.latency = {};
  result.compute_cycles = compute_cycles(nest);

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
  if (!plan.has_room_for_sums(result)) return false;
  plan.add_feeding(result);
  plan.add_cycles_and_energy(result);
  return true;
}

double utilization(const Evaluation& evaluation, const Architecture& architecture) {
  return evaluation.operations / (evaluation.cycles * operations_per_cycle(architecture));
}

}  // namespace foretoken
