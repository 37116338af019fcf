#include "compose/edge/validate_edge_models.h"

#include <fmt/format.h>

#include "base/csv.h"
#include "compose/edge/edge_model.h"
#include "model/onnx/read_graph.h"

namespace foretoken {

std::vector<EdgeModelRow> read_edge_model_rows(const std::filesystem::path& path) {
  CsvReader csv(path);
  const size_t model = csv.column("model"), least = csv.column("cpu_ms_min");
  std::vector<EdgeModelRow> rows;
  while (csv.next()) {
    rows.push_back({.row = csv.row(),
                    .model = std::string(csv.cell(model)),
                    .seconds = csv.number(least, {.least = 1e-7, .most = 1e9}) * 1e-3});
  }
  return rows;
}

void score_edge_models(const EdgePredictor& predictor, const FusionRules& rules, const std::filesystem::path& path,
                       const std::filesystem::path& folder, EdgeScores& scores) {
  const std::string group = fmt::format("{}/models", predictor.device);
  for (const EdgeModelRow& row : read_edge_model_rows(path)) {
    const std::filesystem::path file = folder / (row.model + ".onnx");
    // A name with a slash would lead elsewhere.
    if (row.model.find('/') != std::string::npos || !std::filesystem::exists(file)) {
      scores.skip({.file = path.string(),
                   .row = row.row,
                   .why = fmt::format("there is no file {}.onnx next to it", row.model)});
      continue;
    }
    const OnnxGraph graph = read_onnx(file, {.batch_is_one = true});
    scores.add({.group = group, .name = row.model, .parameters = "", .row = row.row, .measured = row.seconds}, [&] {
      return estimate_edge_model(with_measured_formats(lower_edge(graph, rules), predictor), predictor).seconds;
    });
  }
}

}  // namespace foretoken
