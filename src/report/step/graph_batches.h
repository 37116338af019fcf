// A network at several times its batch, on whatever device.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/estimate.h"
#include "base/json.h"

namespace foretoken {

struct GraphBatch {
  int64_t times = 1;  // the graph's own batch
  Estimate seconds;
};

std::string batches_text(std::span<const GraphBatch> batches);  // a table; empty for none
Json batches_json(std::span<const GraphBatch> batches);

}  // namespace foretoken
