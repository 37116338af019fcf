#include "report/accuracy/ported_pairs_report.h"

#include <fmt/format.h>

#include "report/parts/table.h"

namespace foretoken {

std::string ported_pairs_text(std::span<const PortedPair> pairs) {
  if (pairs.empty()) return "No kernel was measured on two devices.\n";
  Table table({{"from", Table::Align::left},
               {"to", Table::Align::left},
               {"kernels"},
               {"ported: mape %"},
               {"cover90"},
               {"estimate alone: mape %"}});
  for (const PortedPair& pair : pairs) {
    table.add({pair.from, pair.to, fmt::format("{}", pair.kernels), fmt::format("{:.1f}", pair.ported_mape),
               fmt::format("{:.1f}", pair.coverage), fmt::format("{:.1f}", pair.estimated_mape)});
  }
  return table.text() +
         "ported: the time measured on the first device, times the ratio of both estimates (foretoken port).\n"
         "estimate alone: nothing measured on the first device is used.\n";
}

Json ported_pairs_json(std::span<const PortedPair> pairs) {
  Json rows = Json::array();
  for (const PortedPair& pair : pairs) {
    rows.push(Json::object({{"from", pair.from},
                            {"to", pair.to},
                            {"kernels", pair.kernels},
                            {"ported_mape", pair.ported_mape},
                            {"coverage", pair.coverage},
                            {"estimated_mape", pair.estimated_mape}}));
  }
  return rows;
}

}  // namespace foretoken
