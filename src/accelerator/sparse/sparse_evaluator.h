// What a mapping costs where tensors have zeros: the dense traffic first, then what formats, gating and skipping leave
// of it on average, as Sparseloop does (Wu et al., MICRO 2022).
#pragma once

#include <vector>

#include "accelerator/evaluator.h"
#include "accelerator/sparse/description.h"

namespace foretoken {

struct SparseRules {
  // A tile of partial sums counts as filled also on its first pass, when nothing is read for it.
  bool first_passes_fill = false;
  // A multiplication for which a gated read brings nothing takes its cycle and the energy of a gated one.
  bool gated_reads_leave_idle_cycles = true;
};

// The rules behind the reference outputs that the Sparseloop artifact ships, for comparisons with it.
constexpr SparseRules sparseloop_rules{.first_passes_fill = true, .gated_reads_leave_idle_cycles = false};

// Words, or accesses for metadata, of one instance over the whole run.
struct SparseAccesses {
  double actual = 0;
  double gated = 0;
  double skipped = 0;  // words in the tile that were left out; those that are not even stored count nowhere
};

struct SparseTraffic {
  bool kept = false, compressed = false;
  double instances = 0;
  double tile_words = 0;     // with its zeros
  double stored_words = 0;   // of it, on average
  double most_words = 0;     // that it can come to
  double metadata_bits = 0;  // of the tile
  SparseAccesses reads, fills, updates;
  SparseAccesses metadata_reads, metadata_fills, metadata_updates;
  double decompressions = 0, compressions = 0;  // words
  double energy_pj = 0;                         // of all instances
};

struct SparseLevelUse {
  bool fits = true;  // also the fullest tiles
  double cycles = 0;
  double access_pj = 0, leakage_pj = 0;
  double network_pj = 0;  // of words on their way to and from the level below
};

struct SparseEvaluation {
  SparseAccesses operations;  // of all multipliers
  double compute_cycles = 0;
  double cycles = 0;
  int slowest_level = -1;  // -1 = compute
  double compute_pj = 0;
  double energy_pj = 0;
  std::vector<SparseLevelUse> levels;
  std::vector<SparseTraffic> traffic;  // levels x tensors
};

// `dense` is the evaluation of `mapping`. InternalError when the description has a fault.
SparseEvaluation evaluate_sparse(const Architecture& architecture, const Problem& problem, const Mapping& mapping,
                                 const Evaluation& dense, const SparsityDescription& sparsity,
                                 const SparseRules& rules = {});

// The architecture with storage that holds anything: for the dense evaluation of tiles that only fit compressed.
Architecture without_capacities(Architecture architecture);

}  // namespace foretoken
