#include "kernel/edge/edge_rows.h"

#include "base/csv.h"

namespace foretoken {

std::vector<EdgeRow> read_edge_rows(const std::filesystem::path& path) {
  CsvReader csv(path);
  const size_t kind = csv.column("kind"), parameters = csv.column("params"), least = csv.column("cpu_ms_min");
  std::vector<EdgeRow> rows;
  while (csv.next()) {
    rows.push_back({.row = csv.row(),
                    .kernel = parse_edge_kernel(csv.cell(kind), csv.cell(parameters), csv.source(), csv.line()),
                    .seconds = csv.number(least, {.least = 1e-7, .most = 1e9}) * 1e-3});
  }
  return rows;
}

}  // namespace foretoken
