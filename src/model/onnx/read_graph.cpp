#include "model/onnx/read_graph.h"

#include "model/onnx/graph_json.h"
#include "model/onnx/inference.h"
#include "model/onnx/read_file.h"

namespace foretoken {

OnnxGraph import_onnx(const OnnxFile& file, const OnnxOptions& options) {
  OnnxGraph graph = link_onnx(file, options);
  infer_shapes(graph);
  return graph;
}

OnnxGraph read_onnx(const std::filesystem::path& path, const OnnxOptions& options) {
  if (path.extension() == ".json") {
    const Json document = read_json_file(path);
    return import_onnx(parse_graph_json(JsonView(document, path.string())), options);
  }
  return import_onnx(read_onnx_file(path, options.limits), options);
}

}  // namespace foretoken
