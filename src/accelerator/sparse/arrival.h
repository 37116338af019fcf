// Which words reach their consumers where reads are gated or skipped because of zeros elsewhere.
#pragma once

#include <array>
#include <vector>

#include "accelerator/evaluator.h"
#include "accelerator/mapping.h"
#include "accelerator/sparse/description.h"

namespace foretoken {

// For each tensor that something depends on, the probability that its words there are not all zero. Conditions on one
// tensor are nested (a tile without nonzeros has no subtile with one), so the sharpest counts; those on different
// tensors are independent.
struct Arrival {
  std::array<double, max_problem_tensors> unskipped;  // as far as skipping asks
  std::array<double, max_problem_tensors> ungated;    // as far as skipping and gating ask; not above `unskipped`

  Arrival();
  void add(ZeroAction action, int tensor, double nonempty);
  void add(const Arrival& other);
  double not_skipped() const;
  double arriving() const;  // neither skipped nor gated
};

// Probability that the words of `on` which one access to `target` at `level` meets are not all zero. They are those
// inside the innermost loop that moves the target (Sparseloop, section 5.3.4).
double meets_nonzeros(const Problem& problem, const Mapping& mapping, const Architecture& architecture, int level,
                      int target, int on, const DensityModel& density);

// Of reads of each tensor at each level (levels x tensors, those that keep it); fills further in are what the reads
// further out let through.
std::vector<Arrival> read_arrivals(const Architecture& architecture, const Problem& problem, const Mapping& mapping,
                                   const Evaluation& dense, const SparsityDescription& sparsity);

}  // namespace foretoken
