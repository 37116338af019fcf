// Conformance cases in the layout of `maestro_cases.json`: layers with a dataflow and what MAESTRO said about them.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "accelerator/dataflow/dataflow_analysis.h"
#include "accelerator/dataflow/dataflow_hardware.h"
#include "accelerator/dataflow/dataflow_layer.h"
#include "accelerator/dataflow/directive.h"

namespace foretoken {

struct DataflowCase {
  std::string id;
  std::string dataflow_name;
  DataflowLayer layer;
  std::vector<Directive> dataflow;
  std::vector<std::pair<std::string, double>> expected;  // figures by name, in the order of the file
};

struct DataflowCaseFile {
  DataflowHardware hardware;
  std::vector<DataflowCase> cases;
};

DataflowCaseFile read_dataflow_cases(const std::filesystem::path& path);

// Our figure for what `one` calls `name`; nothing for a name this does not compute. "energy_nJ" is the sum of MAESTRO's
// table, which leaves out multiplications and outputs read back from L2; nothing for a dataflow with clusters, because
// the table then charges L1 accesses of the layer before, which a case does not know.
std::optional<double> dataflow_figure(const DataflowCase& one, const DataflowCost& cost, std::string_view name);

}  // namespace foretoken
