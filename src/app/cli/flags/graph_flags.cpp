#include "app/cli/flags/graph_flags.h"

#include <filesystem>

#include "base/error.h"

namespace foretoken {

void GraphFlags::declare(Options& options) {
  options.list(
      "--bind", bind_,
      "For ONNX graphs: sizes of symbolic dimensions, for example batch=8,sequence=128. The batch is 1 unless given");
}

OnnxOptions GraphFlags::options() const {
  OnnxOptions result{.batch_is_one = true};
  for (const std::string& binding : bind_) {
    const size_t sign = binding.rfind('=');
    if (sign == std::string::npos || sign == 0) {
      throw InputError({.source = "--bind", .value = printable(binding), .expected = "NAME=SIZE, for example batch=8"});
    }
    result.bind[binding.substr(0, sign)] =
        parse_size("--bind", binding.substr(sign + 1), {.least = 1, .most = int64_t{1} << 40});
  }
  return result;
}

bool is_graph_file(const std::string& name) {
  return name.ends_with(".onnx") || name.ends_with(".graph.json");
}

}  // namespace foretoken
