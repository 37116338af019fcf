// Any bytes are either an ONNX model whose nodes are all counted, with every tensor shaped, and which is written as it
// was read; or an InputError.
#include <cmath>
#include <string>

#include "base/error.h"
#include "fuzz.h"
#include "model/onnx/read_file.h"
#include "model/onnx/read_graph.h"
#include "model/onnx/summary.h"
#include "model/onnx/work.h"
#include "model/onnx/writer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace foretoken;
  try {
    const OnnxFile file = parse_onnx(as_text(data, size), "input");
    const std::string written = onnx_text(file);
    promise(onnx_text(parse_onnx(written, "written")) == written, "what was written reads back");
    const OnnxGraph graph = import_onnx(file, {.batch_is_one = true});
    const OnnxSummary summary = summarize(graph);
    promise(std::isfinite(summary.flops.value()) && std::isfinite(summary.bytes.value()), "work is a number");
    for (const Operator& own : onnx_operators(graph)) promise(own.count > 0, "an operator runs");
    for (const OnnxNode& node : graph.nodes) {
      if (!graph.is_counted(node)) continue;
      for (const int64_t output : node.outputs) {
        promise(output < 0 || graph.tensor(output).origin != OnnxShapeOrigin::unknown, "every tensor has a shape");
      }
    }
  } catch (const InputError& error) {
    promise(!error.problem().expected.empty(), "a complaint says what was expected");
  }
  return 0;
}
