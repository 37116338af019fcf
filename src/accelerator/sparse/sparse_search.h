// Searches mappings by what they cost with zeros: formats, gating and skipping favor other loops than dense work does.
#pragma once

#include "accelerator/mapper/mapper.h"
#include "accelerator/sparse/sparse_evaluator.h"

namespace foretoken {

// Cycles and energy of the sparse evaluation. Latency is the dense one in proportion of the cycles.
RunCosts sparse_costs(const SparseEvaluation& sparse, const Evaluation& dense);

// The best by `options.objective` with zeros. A dense search of half the tries comes first; the mappings on its
// frontier of energy and cycles are where the search with zeros begins, and the answer is never worse than they are.
// Tiles that fit only when they are compressed are looked at too. Nothing is proven about better ones: the bound is 0.
// `options.costs` is not used.
MapperResult search_sparse_mappings(const Architecture& architecture, const Problem& problem,
                                    const Constraints& constraints, const MapperOptions& options,
                                    const SparsityDescription& sparsity, const SparseRules& rules = {});

}  // namespace foretoken
