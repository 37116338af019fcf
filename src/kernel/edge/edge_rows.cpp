#include "kernel/edge/edge_rows.h"

#include <fmt/format.h>

#include "base/csv.h"
#include "base/text.h"

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

std::string edge_rows_csv(std::span<const EdgeRow> rows) {
  std::string text = "kernel_id,kind,params,cpu_ms_min\n";
  for (const EdgeRow& row : rows) {
    text += fmt::format("{},{},{},{}\n", row.row, edge_kind_name(row.kernel.kind), edge_parameters(row.kernel),
                        number_text(row.seconds * 1e3));
  }
  return text;
}

}  // namespace foretoken
