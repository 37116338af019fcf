// Published evaluations of sparse accelerators (Sparseloop's): what was evaluated, and what came out.
#pragma once

#include <string>
#include <vector>

#include "accelerator/architecture.h"
#include "accelerator/mapping.h"
#include "accelerator/problem.h"
#include "accelerator/sparse/description.h"
#include "accelerator/sparse/sparse_evaluator.h"
#include "base/json.h"

namespace foretoken {

// Of one instance.
struct ExpectedSparseTraffic {
  std::string level, tensor;
  double instances = 0;
  SparseAccesses reads, fills, updates;
  double energy_pj = 0;
};

struct ExpectedSparseLevel {
  std::string level;
  double cycles = 0;
};

struct SparseCase {
  std::string id;
  Architecture architecture;
  Problem problem;
  Mapping mapping;
  SparsityDescription sparsity;
  // Expected.
  double cycles = 0, energy_pj = 0;
  double operations = 0, compute_cycles = 0, compute_pj = 0;
  std::vector<ExpectedSparseLevel> levels;
  std::vector<ExpectedSparseTraffic> traffic;
};

std::vector<SparseCase> read_sparse_cases(const JsonView& document);

}  // namespace foretoken
