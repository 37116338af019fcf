#include "accelerator/pim/prim_rows.h"

#include "base/csv.h"

namespace foretoken {
namespace {

constexpr CsvLimits prim_table_limits{.max_bytes = size_t{16} << 20};

}  // namespace

std::vector<PrimRow> read_prim_rows(const std::filesystem::path& path) {
  CsvReader csv(path, prim_table_limits);
  const size_t benchmark = csv.column("benchmark");
  const size_t dpus = csv.column("num_dpus");
  const size_t size = csv.column("data_prep_param");
  const size_t kernel = csv.column("hw_kernel_ms");
  const size_t to_dpus = csv.column("hw_cpu_to_dpu_ms");
  const size_t from_dpus = csv.column("hw_dpu_to_cpu_ms");
  const size_t between_dpus = csv.column("hw_dpu_to_dpu_ms");
  const auto time = [&](size_t column) { return milliseconds(csv.number(column, {0, 1e9})); };
  std::vector<PrimRow> rows;
  while (csv.next()) {
    rows.push_back({.row = csv.row(),
                    .benchmark = std::string(csv.cell(benchmark)),
                    .dpus = csv.integer(dpus, {1, 1'000'000}),
                    .size = csv.integer(size, {1, int64_t{1} << 40}),
                    .kernel = time(kernel),
                    .to_dpus = time(to_dpus),
                    .from_dpus = time(from_dpus),
                    .between_dpus = time(between_dpus)});
  }
  return rows;
}

bool is_prim_table(const std::filesystem::path& path) {
  return CsvReader(path, prim_table_limits).find_column("hw_kernel_ms").has_value();
}

}  // namespace foretoken
