// Sparse matrix times dense matrix, and dense times dense at the nonzeros of a sparse matrix, as cuSPARSE runs them.
#pragma once

#include <memory>

#include "kernel/forms/form.h"

namespace foretoken {

std::unique_ptr<Form> make_spmm_form();
std::unique_ptr<Form> make_sddmm_form();

// Share of the fetched dense rows that lie in a cache of `capacity` bytes which keeps the most wanted of `bytes`.
double sparse_hit_share(SparsePattern pattern, double bytes, double capacity);

}  // namespace foretoken
