// How kernels of each kind divide among threads, from the same kernels timed on one thread and on several.
#pragma once

#include <filesystem>
#include <span>
#include <vector>

#include "kernel/edge/edge_predictor.h"
#include "kernel/edge/edge_rows.h"

namespace foretoken {

// A few kernels of each kind of the CPU sweep, over its sizes, and an empty call.
std::vector<EdgeKernel> thread_sweep_plan();

// Rows of the same kernels in wall-clock time, on one thread (or the `base` of the sweep) and on `threads`. What an
// empty call takes is taken off both: it runs on one thread. Kinds of fewer than three kernels are left out; a kind of
// which hardly any kernel gains stays on one thread. Widths are of kernels that the speedup was not fitted to.
EdgeThreadScaling scaling_of(std::span<const EdgeRow> before, std::span<const EdgeRow> after, int threads,
                             int base = 1);

// A table of kernels, each timed on the threads of the sweep and on more: `kind`, `params`, `threads`, `wall_ms_min`.
// InputError for a broken row, for a kernel that was not timed on every count of threads, or where `base` or a larger
// count is missing.
std::vector<EdgeThreadScaling> read_thread_scaling(const std::filesystem::path& path, int base = 1);

}  // namespace foretoken
