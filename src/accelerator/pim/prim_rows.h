// Measured runs of the PrIM benchmarks on UPMEM's hardware (the workbook of uPIMulator's regression tool).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/units.h"

namespace foretoken {

struct PrimRow {
  size_t row = 0;
  std::string benchmark;
  int64_t dpus = 0;
  int64_t size = 0;  // elements, or rows of a matrix
  Seconds kernel, to_dpus, from_dpus, between_dpus;
};

// Columns benchmark, num_dpus, data_prep_param, hw_kernel_ms, hw_cpu_to_dpu_ms, hw_dpu_to_cpu_ms, hw_dpu_to_dpu_ms;
// others are passed over.
std::vector<PrimRow> read_prim_rows(const std::filesystem::path& path);

bool is_prim_table(const std::filesystem::path& path);  // by its columns

}  // namespace foretoken
