#include "accelerator/sparse/sparse_search.h"

#include <algorithm>
#include <utility>

namespace foretoken {
namespace {

bool compresses(const SparseLevel& level) {
  return std::ranges::any_of(level.formats, [](const std::vector<RankFormat>& ranks) {
    return std::ranges::any_of(ranks, [](const RankFormat& rank) { return leaves_empty_ones_out(rank.kind); });
  });
}

// Levels that compress take any tile of the dense evaluation; the sparse one says whether it fits.
Architecture with_room_for_compressed(Architecture architecture, const SparsityDescription& sparsity) {
  for (size_t i = 0; i < architecture.levels.size(); ++i) {
    if (compresses(sparsity.levels[i])) architecture.levels[i].depth = 0;
  }
  return architecture;
}

bool fits_everywhere(const SparseEvaluation& sparse) {
  return std::ranges::all_of(sparse.levels, [](const SparseLevelUse& use) { return use.fits; });
}

void take_if_better(FoundMapping found, const MappingObjective& objective, std::optional<FoundMapping>& best) {
  if (!best || score_of(objective, found.costs) < score_of(objective, best->costs)) best = std::move(found);
}

// Those that fit, by what they cost with zeros, the best first.
std::vector<FoundMapping> with_costs(std::vector<FoundMapping> found, const MappingCosts& costs,
                                     const MappingObjective& objective) {
  std::vector<FoundMapping> fitting;
  for (FoundMapping& own : found) {
    const std::optional<RunCosts> with_zeros = costs(own.mapping, own.evaluation);
    if (!with_zeros) continue;
    own.costs = *with_zeros;
    fitting.push_back(std::move(own));
  }
  std::ranges::stable_sort(fitting, {}, [&](const FoundMapping& own) { return score_of(objective, own.costs); });
  return fitting;
}

}  // namespace

RunCosts sparse_costs(const SparseEvaluation& sparse, const Evaluation& dense) {
  return {.energy_pj = sparse.energy_pj,
          .cycles = sparse.cycles,
          .latency_cycles = dense.latency_cycles() * sparse.cycles / dense.cycles};
}

MapperResult search_sparse_mappings(const Architecture& architecture, const Problem& problem,
                                    const Constraints& constraints, const MapperOptions& options,
                                    const SparsityDescription& sparsity, const SparseRules& rules) {
  const MappingCosts costs = [&](const Mapping& mapping, const Evaluation& dense) -> std::optional<RunCosts> {
    const SparseEvaluation sparse = evaluate_sparse(architecture, problem, mapping, dense, sparsity, rules);
    if (!fits_everywhere(sparse)) return std::nullopt;
    return sparse_costs(sparse, dense);
  };
  MapperOptions without_zeros = options;
  if (options.time_limit_seconds) without_zeros.time_limit_seconds = *options.time_limit_seconds / 2;
  without_zeros.most_tries = std::max<int64_t>(1, options.most_tries / 2);
  without_zeros.frontier = true;
  without_zeros.progress = {};
  MapperResult dense = search_mappings(architecture, problem, constraints, without_zeros);
  if (dense.best) dense.frontier.push_back(std::move(*dense.best));
  std::vector<FoundMapping> starts = with_costs(std::move(dense.frontier), costs, options.objective);

  MapperOptions with_zeros = options;
  with_zeros.time_limit_seconds = without_zeros.time_limit_seconds;
  with_zeros.most_tries = (options.most_tries + 1) / 2;
  with_zeros.costs = costs;
  for (const FoundMapping& start : starts) with_zeros.starts.push_back(start.mapping);
  MapperResult result =
      search_mappings(with_room_for_compressed(architecture, sparsity), problem, constraints, with_zeros);
  result.tried += dense.tried;
  result.evaluations += dense.evaluations;
  result.out_of_time = result.out_of_time || dense.out_of_time;
  // An enumeration leaves out orders of loops that are alike without zeros.
  if (!starts.empty()) take_if_better(std::move(starts.front()), options.objective, result.best);
  return result;
}

}  // namespace foretoken
