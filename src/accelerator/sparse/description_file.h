// Reading what an accelerator does about zeros: our own JSON, and the `sparse_optimizations` of Timeloop v0.4 files.
#pragma once

#include "accelerator/sparse/description.h"
#include "base/json.h"

namespace foretoken {

// {"densities": {tensor: density}, "levels": {level: {...}}, "compute": "gate" | "skip"}; docs/accelerators/sparse.md
// describes it. Files of matrices are looked up beside the document's own.
SparsityDescription read_sparsity(const JsonView& view, const Architecture& architecture, const Problem& problem);

// A density: a number (every tile holds its share), or {"distribution": name, ...} with the parameters of the kind.
std::unique_ptr<DensityModel> read_density(const JsonView& view, const ProblemTensor& tensor, const Problem& problem);

// Timeloop's spelling, with hyphens or underscores; adds to `sparsity`.
void read_timeloop_sparsity(const JsonView& view, const Architecture& architecture, const Problem& problem,
                            SparsityDescription& sparsity);

}  // namespace foretoken
