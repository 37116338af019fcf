// What an accelerator does about zeros: how tensors are stored, and which work it leaves out.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "accelerator/architecture.h"
#include "accelerator/problem.h"
#include "accelerator/sparse/density.h"
#include "accelerator/sparse/format.h"

namespace foretoken {

enum class ZeroAction {
  gate,  // the unit stands still for the time of the action
  skip,  // the next action takes its place
};

// Reads of `target` do not happen where the words of a tensor in `on` that they would meet are all zeros.
struct ReadCondition {
  int target = 0;
  std::vector<int> on;
};

// One unit at a level; of several conditions it has room for the one that saves most.
struct ReadOptimization {
  ZeroAction action = ZeroAction::gate;
  int level = 0;
  std::vector<ReadCondition> options;
};

// Energy in picojoules of what only sparse hardware does: at a storage level per access, as AccessEnergy.
struct SparseEnergy {
  double gated_read_pj = 0, gated_write_pj = 0;
  double metadata_read_pj = 0, metadata_write_pj = 0;
  double gated_metadata_read_pj = 0, gated_metadata_write_pj = 0;
  double decompress_pj = 0, compress_pj = 0;  // a word
  double gated_compute_pj = 0;                // at the compute level
};

struct SparseLevel {
  int metadata_word_bits = 8;
  int metadata_access_bits = 8;
  SparseEnergy energy;
  std::vector<std::vector<RankFormat>> formats;  // by tensor, outermost rank first; none = stored as it is
};

enum class ComputeOptimization { none, gate, skip };

struct SparsityDescription {
  std::vector<std::unique_ptr<const DensityModel>> densities;  // by tensor
  std::vector<SparseLevel> levels;                             // by level of the architecture
  std::vector<ReadOptimization> reads;
  ComputeOptimization compute = ComputeOptimization::none;  // multipliers that see a zero among their operands
};

// Dense tensors, stored as they are, and no work left out: what readers begin with.
SparsityDescription without_sparsity(const Architecture& architecture, const Problem& problem);

// Nothing when the description belongs to this architecture and problem; else what is wrong with it.
std::string sparsity_fault(const SparsityDescription& sparsity, const Architecture& architecture,
                           const Problem& problem);

}  // namespace foretoken
