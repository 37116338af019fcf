// How a graph file is read: sizes of its symbolic dimensions.
#pragma once

#include <string>
#include <vector>

#include "app/cli/grammar/options.h"
#include "model/onnx/graph.h"

namespace foretoken {

class GraphFlags {
 public:
  void declare(Options& options);
  bool given() const { return !bind_.empty(); }
  OnnxOptions options() const;  // InputError for a binding that is not NAME=SIZE

 private:
  std::vector<std::string> bind_;
};

// By its name: .onnx, or .graph.json with the format of model/onnx/graph_json.h.
bool is_graph_file(const std::string& name);

}  // namespace foretoken
