// The sparsity that Timeloop's files describe together: densities, sparse_optimizations and energies of the ERT.
#pragma once

#include <map>
#include <string>

#include "accelerator/formats/timeloop_files.h"
#include "accelerator/sparse/description.h"

namespace foretoken {

// By the names that Accelergy's tables have for the actions; those a table does not have cost nothing.
SparseEnergy sparse_energy_of(const std::map<std::string, double>& actions_pj);

// InputError without an architecture and a problem, and for names they do not have. Dense where nothing is said.
SparsityDescription timeloop_sparsity(const AcceleratorInputs& inputs);

}  // namespace foretoken
