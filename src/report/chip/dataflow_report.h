// Layers under MAESTRO's dataflows, for people and for programs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "accelerator/dataflow/dataflow_library.h"
#include "base/json.h"

namespace foretoken {

struct DataflowReport {
  DataflowHardware hardware;
  DataflowReading reading = DataflowReading::physical;
  struct Row {
    DataflowLayer layer;
    int64_t count = 1;
    std::vector<TriedDataflow> tried;  // at least one; the first is the one taken

    const TriedDataflow& taken() const { return tried.front(); }
  };
  std::vector<Row> rows;
};

// Where several dataflows were tried: all of them for a single layer, and for a network what each would take by itself.
std::string dataflow_text(const DataflowReport& report);
Json dataflow_json(const DataflowReport& report);

}  // namespace foretoken
