#include "accelerator/sparse/sparse_evaluator.h"

#include <algorithm>
#include <cmath>

#include "accelerator/sparse/arrival.h"
#include "accelerator/sparse/fiber.h"
#include "accelerator/tile.h"
#include "base/error.h"

namespace foretoken {
namespace {

// Whole actions, with a doubtful one counted as done.
SparseAccesses split_accesses(double all, const Arrival& arrival) {
  SparseAccesses counts;
  counts.skipped = std::floor(all * (1 - arrival.not_skipped()));
  counts.gated = std::floor(all * (arrival.not_skipped() - arrival.arriving()));
  counts.actual = all - counts.skipped - counts.gated;
  return counts;
}

double whole_accesses(double words, double words_per_access) {
  constexpr double rounding_slack = 1e-9;  // counts are whole but for the division by instances
  return std::ceil(words / words_per_access - rounding_slack);
}

double busy_accesses(const SparseAccesses& counts) {
  return counts.actual + counts.gated;
}

class SparseAnalysis {
 public:
  SparseAnalysis(const Architecture& architecture, const Problem& problem, const Mapping& mapping,
                 const Evaluation& dense, const SparsityDescription& sparsity, const SparseRules& rules)
      : architecture_(architecture),
        problem_(problem),
        mapping_(mapping),
        dense_(dense),
        sparsity_(sparsity),
        rules_(rules),
        levels_(static_cast<int>(mapping.kept.size())),
        tensors_(static_cast<int>(problem.tensors.size())),
        arrivals_(read_arrivals(architecture, problem, mapping, dense, sparsity)) {}

  SparseEvaluation evaluate() {
    result_.traffic.resize(dense_.traffic.size());
    result_.levels.resize(architecture_.levels.size());
    for (int level = 0; level < levels_; ++level) {
      for (int t = 0; t < tensors_; ++t) {
        if (traffic_at(dense_, problem_, level, t).kept) count_tensor(level, t);
      }
    }
    count_conversions();
    count_operations();
    add_cycles();
    add_energy();
    return std::move(result_);
  }

 private:
  SparseTraffic& at(int level, int tensor) { return result_.traffic[level * tensors_ + tensor]; }

  void count_tensor(int level, int tensor) {
    const TensorTraffic& dense = traffic_at(dense_, problem_, level, tensor);
    const SparseLevel& storage = sparsity_.levels[level];
    const DensityModel& density = *sparsity_.densities[tensor];
    SparseTraffic& own = at(level, tensor);
    own = {.kept = true,
           .instances = dense.instances,
           .tile_words = dense.tile_words,
           .stored_words = dense.tile_words,
           .most_words = dense.tile_words};
    const int parent = level_outside(mapping_, tensor, level);
    double fills = dense.fills;
    if (rules_.first_passes_fill && problem_.tensors[tensor].written && parent >= 0) {
      fills = traffic_at(dense_, problem_, parent, tensor).words_to_below / dense.instances;
    }
    const Arrival& arrival = arrivals_[level * tensors_ + tensor];
    const Arrival from_parent = parent >= 0 ? arrivals_[parent * tensors_ + tensor] : Arrival();

    StoredTile stored;
    const std::vector<RankFormat>& formats = storage.formats[tensor];
    if (!formats.empty()) {
      const auto ranks = fiber_ranks(problem_, mapping_, sparsity_, tensor, level);
      stored = stored_tile(formats, ranks, density, storage.metadata_word_bits);
      own.compressed = std::ranges::any_of(formats, [](const RankFormat& f) { return leaves_empty_ones_out(f.kind); });
      own.stored_words = dense.tile_words * stored.share;
      own.metadata_bits = stored.metadata_bits;
      if (own.compressed) {
        const TileSizes tile = tile_at(mapping_, problem_, level);
        own.most_words =
            std::min(dense.tile_words, density.most_nonzeros(tile_extents(problem_.tensors[tensor], tile)));
      }
    }
    const auto split_data = [&](double all, const Arrival& by) {
      // Words that a condition on the tensor itself leaves out are the ones that are not stored.
      const double share = std::min(1.0, stored.share / std::max(by.ungated[tensor], stored.share));
      return split_accesses(all - std::floor(all * (1 - share)), by);
    };
    own.reads = split_data(dense.reads, arrival);
    own.fills = split_data(fills, from_parent);
    own.updates = split_data(dense.updates, arrival);

    // Metadata move as often as their tile does.
    const auto split_metadata = [&](double words, const Arrival& by) {
      const double bits = stored.metadata_bits * words / dense.tile_words;
      return split_accesses(std::ceil(bits / storage.metadata_access_bits), by);
    };
    own.metadata_reads = split_metadata(dense.reads, arrival);
    own.metadata_fills = split_metadata(fills, from_parent);
    own.metadata_updates = split_metadata(dense.updates, arrival);
  }

  // A level that stores a tensor as it is, below one that compresses it, unpacks what comes and packs what goes.
  void count_conversions() {
    for (int level = 0; level < levels_; ++level) {
      for (int t = 0; t < tensors_; ++t) {
        SparseTraffic& own = at(level, t);
        const int parent = level_outside(mapping_, t, level);
        if (!own.kept || own.compressed || parent < 0 || !at(parent, t).compressed) continue;
        own.decompressions = own.fills.actual;
        if (problem_.tensors[t].written) {
          own.compressions = at(parent, t).updates.actual * at(parent, t).instances / own.instances;
        }
      }
    }
  }

  // Dimensions over which the operands are matched up, that run in time where the innermost of them is kept.
  bool matches_coordinates_in_time(int innermost) const {
    for (const Loop& loop : mapping_.loops) {
      if (is_spatial(loop) || loop.bound == 1 || loop.level < innermost) continue;
      int operands = 0;
      bool in_result = false;
      for (const ProblemTensor& tensor : problem_.tensors) {
        const bool uses = uses_dimension(tensor, loop.dimension);
        operands += uses && !tensor.written ? 1 : 0;
        in_result = in_result || (uses && tensor.written);
      }
      if (operands > 1 && !in_result) return true;
    }
    return false;
  }

  void count_operations() {
    Arrival arrival;
    std::vector<int> compressed;  // operands that bring no zeros to the multipliers
    int innermost = 0;
    for (int t = 0; t < tensors_; ++t) {
      if (problem_.tensors[t].written) continue;
      const int level = level_outside(mapping_, t, levels_);
      if (level < 0) continue;
      arrival.add(arrivals_[level * tensors_ + t]);
      innermost = std::max(innermost, level);
      if (at(level, t).compressed) compressed.push_back(t);
    }
    // With two streams of coordinates that have to meet, the multiplier waits where one has none.
    const bool waits = compressed.size() > 1 && matches_coordinates_in_time(innermost);
    Arrival nonzero = arrival;
    for (int t = 0; t < tensors_; ++t) {
      if (problem_.tensors[t].written) continue;
      const std::vector<double> word(problem_.tensors[t].ranks.size(), 1.0);
      const double density = 1 - sparsity_.densities[t]->empty_probability(word);
      if (std::ranges::find(compressed, t) != compressed.end()) {
        arrival.add(waits ? ZeroAction::gate : ZeroAction::skip, t, density);
      }
      nonzero.add(sparsity_.compute == ComputeOptimization::skip ? ZeroAction::skip : ZeroAction::gate, t, density);
    }
    if (sparsity_.compute != ComputeOptimization::none) arrival.add(nonzero);
    result_.operations = split_accesses(dense_.operations, arrival);
    double share = arrival.not_skipped();
    if (!rules_.gated_reads_leave_idle_cycles) {
      share = arrival.arriving();
      result_.operations.gated = 0;
    }
    result_.compute_cycles = std::ceil(dense_.compute_cycles * share);
  }

  // Of the words that pass between a level and those below it, how many still do.
  double share_moved(int level) {
    while (level > 0 && mapping_.kept[level] == 0) --level;  // a network passes on what the level outside it sends
    double dense = 0, left = 0;
    for (int t = 0; t < tensors_; ++t) {
      const TensorTraffic& all = traffic_at(dense_, problem_, level, t);
      const SparseTraffic& own = at(level, t);
      dense += all.reads + all.updates;
      left += own.reads.actual + own.updates.actual;
    }
    return dense > 0 ? left / dense : 1;
  }

  void add_cycles() {
    result_.cycles = result_.compute_cycles;
    for (int i = 0; i < levels_; ++i) {
      const AcceleratorLevel& level = architecture_.levels[i];
      const double words_per_metadata = static_cast<double>(sparsity_.levels[i].metadata_access_bits) / level.word_bits;
      double reads = 0, writes = 0, used = 0;
      for (int t = 0; t < tensors_; ++t) {
        const SparseTraffic& own = at(i, t);
        reads += busy_accesses(own.reads) + busy_accesses(own.metadata_reads) * words_per_metadata;
        writes += busy_accesses(own.fills) + busy_accesses(own.updates) +
                  (busy_accesses(own.metadata_fills) + busy_accesses(own.metadata_updates)) * words_per_metadata;
        used += own.most_words;
      }
      SparseLevelUse& use = result_.levels[i];
      const auto held = static_cast<double>(words_held(level));
      use.fits = held == 0 || used <= held;
      const auto cycles_at = [](double words, const std::optional<double>& rate) { return rate ? words / *rate : 0; };
      const LevelUse& dense = dense_.levels[i];
      const double moved = share_moved(i);
      use.network_pj = dense.network_pj * moved;
      const double ports = std::max({cycles_at(reads, level.bandwidth.read), cycles_at(writes, level.bandwidth.write),
                                     cycles_at(reads + writes, level.bandwidth.shared)});
      use.cycles = std::max({result_.compute_cycles, ports + dense.row_cycles * moved, dense.mesh_cycles * moved});
      use.access_pj = dense.rows_opened * dense.instances * level.rows.activate_pj * moved;
      if (use.cycles > result_.cycles) {
        result_.cycles = use.cycles;
        result_.slowest_level = i;
      }
    }
    result_.cycles = std::ceil(result_.cycles);
  }

  void add_energy() {
    result_.compute_pj = result_.operations.actual * architecture_.levels.back().energy.compute_pj +
                         result_.operations.gated * sparsity_.levels.back().energy.gated_compute_pj;
    result_.energy_pj = result_.compute_pj;
    for (int i = 0; i <= levels_; ++i) {
      const AcceleratorLevel& level = architecture_.levels[i];
      const SparseEnergy& extra = sparsity_.levels[i].energy;
      SparseLevelUse& use = result_.levels[i];
      const double width = level.words_per_access;
      for (int t = 0; i < levels_ && t < tensors_; ++t) {
        SparseTraffic& own = at(i, t);
        if (!own.kept) continue;
        const double data_pj = whole_accesses(own.reads.actual, width) * level.energy.read_pj +
                               whole_accesses(own.fills.actual, width) * level.energy.fill_pj +
                               whole_accesses(own.updates.actual, width) * level.energy.update_pj;
        const double gated_pj =
            whole_accesses(own.reads.gated, width) * extra.gated_read_pj +
            (whole_accesses(own.fills.gated, width) + whole_accesses(own.updates.gated, width)) * extra.gated_write_pj;
        const double metadata_pj =
            own.metadata_reads.actual * extra.metadata_read_pj +
            (own.metadata_fills.actual + own.metadata_updates.actual) * extra.metadata_write_pj +
            own.metadata_reads.gated * extra.gated_metadata_read_pj +
            (own.metadata_fills.gated + own.metadata_updates.gated) * extra.gated_metadata_write_pj;
        const double conversion_pj = own.decompressions * extra.decompress_pj + own.compressions * extra.compress_pj;
        const double memories = std::min(own.instances, static_cast<double>(instances(level) / level.cluster_size));
        own.energy_pj = memories * (data_pj + gated_pj + metadata_pj + conversion_pj);
        use.access_pj += own.energy_pj;
      }
      use.leakage_pj = dense_.levels[i].leakage_pj * result_.cycles / dense_.cycles;
      result_.energy_pj += use.access_pj + use.leakage_pj + use.network_pj;
    }
  }

  const Architecture& architecture_;
  const Problem& problem_;
  const Mapping& mapping_;
  const Evaluation& dense_;
  const SparsityDescription& sparsity_;
  const SparseRules rules_;
  const int levels_, tensors_;
  const std::vector<Arrival> arrivals_;
  SparseEvaluation result_;
};

}  // namespace

SparseEvaluation evaluate_sparse(const Architecture& architecture, const Problem& problem, const Mapping& mapping,
                                 const Evaluation& dense, const SparsityDescription& sparsity,
                                 const SparseRules& rules) {
  ensure(sparsity_fault(sparsity, architecture, problem).empty(), "only a sound sparsity is evaluated");
  return SparseAnalysis(architecture, problem, mapping, dense, sparsity, rules).evaluate();
}

Architecture without_capacities(Architecture architecture) {
  for (AcceleratorLevel& level : architecture.levels) level.depth = 0;
  return architecture;
}

}  // namespace foretoken
