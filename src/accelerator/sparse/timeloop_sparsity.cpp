#include "accelerator/sparse/timeloop_sparsity.h"

#include <initializer_list>
#include <string_view>

#include "accelerator/sparse/description_file.h"
#include "base/error.h"

namespace foretoken {

SparseEnergy sparse_energy_of(const std::map<std::string, double>& actions_pj) {
  const auto pj = [&](std::initializer_list<const char*> names) {
    for (const char* name : names) {
      const auto found = actions_pj.find(name);
      if (found != actions_pj.end()) return found->second;
    }
    return 0.0;
  };
  return {.gated_read_pj = pj({"gated_read"}),
          .gated_write_pj = pj({"gated_write"}),
          .metadata_read_pj = pj({"metadata_read"}),
          .metadata_write_pj = pj({"metadata_write"}),
          .gated_metadata_read_pj = pj({"gated_metadata_read", "metadata_gated_read"}),
          .gated_metadata_write_pj = pj({"gated_metadata_write", "metadata_gated_write"}),
          .decompress_pj = pj({"decompression_count"}),
          .compress_pj = pj({"compression_count"}),
          .gated_compute_pj = pj({"gated_compute", "mac_gated"})};
}

SparsityDescription timeloop_sparsity(const AcceleratorInputs& inputs) {
  if (!inputs.architecture || !inputs.problem) {
    throw InputError({.source = "sparse_optimizations", .expected = "an architecture and a problem beside it"});
  }
  const Architecture& architecture = *inputs.architecture;
  const Problem& problem = *inputs.problem;
  SparsityDescription sparsity = without_sparsity(architecture, problem);
  for (const TimeloopDensity& density : inputs.densities) {
    const Json stated = Json::object({{"distribution", density.distribution}, {"density", density.density}});
    const int tensor = find_tensor(problem, density.tensor);
    ensure(tensor >= 0, "densities are of the problem's tensors");
    sparsity.densities[tensor] =
        read_density(JsonView(stated, "problem", "densities." + density.tensor), problem.tensors[tensor], problem);
  }
  for (const AccelergyTable& table : inputs.energy_tables) {
    const int level = find_level(architecture, table.component);
    if (level >= 0) sparsity.levels[level].energy = sparse_energy_of(table.actions);
  }
  for (const TimeloopMetadata& metadata : inputs.metadata) {
    const int index = find_level(architecture, metadata.level);
    if (index < 0) continue;
    SparseLevel& level = sparsity.levels[index];
    if (metadata.word_bits > 0) level.metadata_word_bits = level.metadata_access_bits = metadata.word_bits;
    if (metadata.access_bits > 0) level.metadata_access_bits = metadata.access_bits;
  }
  if (inputs.sparse_optimizations) {
    read_timeloop_sparsity(JsonView(*inputs.sparse_optimizations, "sparse_optimizations"), architecture, problem,
                           sparsity);
  }
  return sparsity;
}

}  // namespace foretoken
