// A graph from a file, with the shapes of all tensors.
#pragma once

#include <filesystem>

#include "model/onnx/graph.h"

namespace foretoken {

// The whole way: read, link, infer. A file that ends in .json is read as graph_json.h describes, any other as ONNX.
// InputError for a broken file, a cycle, a tensor nobody makes, sizes that contradict each other, and for symbolic
// dimensions without a size, which it lists.
OnnxGraph read_onnx(const std::filesystem::path& path, const OnnxOptions& options = {});

OnnxGraph import_onnx(const OnnxFile& file, const OnnxOptions& options);  // linked, with shapes

}  // namespace foretoken
