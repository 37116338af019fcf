// Reading what an accelerator does about zeros: our own JSON, and the `sparse_optimizations` of Timeloop v0.4 files.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "accelerator/sparse/description.h"
#include "base/json.h"

namespace foretoken {

// {"densities": {tensor: density}, "levels": {level: {...}}, "compute": "gate" | "skip"}; docs/accelerators/sparse.md
// describes it. A tensor goes by its name or its role. Files of matrices are looked up beside the document's own.
SparsityDescription read_sparsity(const JsonView& view, const Architecture& architecture, const Problem& problem);

// The same file for a network: names that this layer's problem lacks are those of other layers, and `layers` may hold
// densities of its own: {"layers": {layer: {tensor: density}}}.
SparsityDescription read_layer_sparsity(const JsonView& view, const Architecture& architecture,
                                        const std::string& layer, const Problem& problem);
bool has_own_densities(const JsonView& view, const std::string& layer);

struct NamedProblem {
  std::string name;
  const Problem* problem = nullptr;
};
// InputError for names of layers and tensors that no layer has.
void check_network_sparsity(const JsonView& view, std::span<const NamedProblem> layers);

// A density: a number (every tile holds its share), or {"distribution": name, ...} with the parameters of the kind.
std::unique_ptr<DensityModel> read_density(const JsonView& view, const ProblemTensor& tensor, const Problem& problem);

// Timeloop's spelling, with hyphens or underscores; adds to `sparsity`.
void read_timeloop_sparsity(const JsonView& view, const Architecture& architecture, const Problem& problem,
                            SparsityDescription& sparsity);

}  // namespace foretoken
