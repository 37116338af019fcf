// Any bytes are either a predictor of a CPU that prices every kernel it knows and reads back as it was written, or an
// InputError.
#include <cmath>
#include <string>

#include "fuzz.h"
#include "kernel/edge/cpu_sweep.h"
#include "kernel/edge/edge_predictor_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace foretoken;
  static const std::vector<EdgeKernel> kernels = cpu_sweep_plan();
  read_or_refuse([&] {
    const EdgePredictor predictor = parse_edge_predictor(as_text(data, size), "input");
    for (const EdgeKernel& kernel : kernels) {
      if (!predictor.knows(kernel)) continue;
      const Estimate seconds = predictor.kernel_seconds(kernel);
      promise(std::isfinite(seconds.high) && seconds.low >= 0, "a predictor that was accepted prices its kernels");
    }
    const std::string written = edge_predictor_json(predictor);
    promise(parse_edge_predictor(written, "written") == predictor, "a predictor is the same after a second reading");
  });
  return 0;
}
