#include "accelerator/dataflow/dataflow_cases.h"
#include "accelerator/validate/validate_accelerator.h"

namespace foretoken {

std::vector<AcceleratorFigure> dataflow_figures(const AcceleratorCaseFile& file) {
  const DataflowCaseFile cases = read_dataflow_cases(file.path);
  std::vector<AcceleratorFigure> figures;
  for (const DataflowCase& own : cases.cases) {
    const DataflowCost cost =
        analyse_dataflow(own.layer, own.dataflow, cases.hardware, DataflowReading::maestro, own.id);
    for (const auto& [name, expected] : own.expected) {
      const std::optional<double> predicted = dataflow_figure(own, cost, name);
      if (predicted) figures.push_back({own.id, name, expected, *predicted});
    }
  }
  return figures;
}

}  // namespace foretoken
