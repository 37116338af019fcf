#include "report/step/graph_batches.h"

#include <fmt/format.h>

#include "base/text.h"
#include "report/parts/json_parts.h"
#include "report/parts/table.h"

namespace foretoken {

std::string batches_text(std::span<const GraphBatch> batches) {
  if (batches.empty()) return "";
  Table table({{"batch"}, {"time"}, {"each"}, {"confidence", Table::Align::left}});
  for (const GraphBatch& batch : batches) {
    table.add({fmt::format("x{}", batch.times), interval_text(batch.seconds),
               duration_text(batch.seconds.value / static_cast<double>(batch.times)),
               std::string(confidence_name(batch.seconds.kind))});
  }
  return "\n" + table.text();
}

Json batches_json(std::span<const GraphBatch> batches) {
  Json list = Json::array();
  for (const GraphBatch& batch : batches) {
    list.push(Json::object({{"times", batch.times}, {"seconds", to_json(batch.seconds)}}));
  }
  return list;
}

}  // namespace foretoken
