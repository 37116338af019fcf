// Tables of measured fused kernels: `kind`, `params` and `cpu_ms_min`, as sweeps of CPUs write them.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "kernel/edge/edge_kernel.h"

namespace foretoken {

struct EdgeRow {
  size_t row = 0;  // 1-based data row of the file
  EdgeKernel kernel;
  double seconds = 0;  // least of the repeats: what the kernel takes when nothing disturbs it
};

// InputError for a broken row, with its position.
std::vector<EdgeRow> read_edge_rows(const std::filesystem::path& path);

// The same table, to be read again.
std::string edge_rows_csv(std::span<const EdgeRow> rows);

}  // namespace foretoken
