// The numbers of a small ONNX tensor, from wherever the file keeps them: packed fields, raw bytes, or a file beside it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/protobuf.h"
#include "model/onnx/file.h"

namespace foretoken {

struct OnnxTensorContent {
  std::string_view raw;
  std::vector<WireField> fields;  // float_data, int32_data, ...
  bool is_external = false;
  std::string file, offset, length;  // external_data: as the file says it
};

// Nothing for a tensor of more than most_onnx_values elements, of a type without numbers we use, or without content
// (weights are often stripped; a missing external file is no error: sizes are all that most tensors are needed for).
// InputError at `reader`'s place where content and shape do not agree.
std::optional<OnnxValues> small_content(const OnnxTensorData& tensor, const OnnxTensorContent& content,
                                        const std::filesystem::path& folder, const WireReader& reader);

}  // namespace foretoken
