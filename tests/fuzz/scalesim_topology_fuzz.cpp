// Any bytes are either layers with work to do, or an InputError.
#include "accelerator/systolic/scalesim_files.h"
#include "base/error.h"
#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace foretoken;
  try {
    for (const NamedSystolicLayer& layer : parse_scalesim_topology(as_text(data, size), "input")) {
      const GemmSize gemm = layer.layer.gemm();
      promise(gemm.m > 0 && gemm.n > 0 && gemm.k > 0, "a layer has work to do");
    }
  } catch (const InputError& error) {
    promise(!error.problem().expected.empty(), "a complaint says what was expected");
  }
  return 0;
}
