// Any bytes are either an array that can be computed with, or an InputError.
#include "accelerator/systolic/compute.h"
#include "accelerator/systolic/scalesim_files.h"
#include "base/error.h"
#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace foretoken;
  try {
    const ScaleSimConfig config = parse_scalesim_config(as_text(data, size), "input");
    promise(systolic_compute(config.array, {.m = 5, .n = 6, .k = 7}).cycles >= 0, "an array has cycles");
  } catch (const InputError& error) {
    promise(!error.problem().expected.empty(), "a complaint says what was expected");
  }
  return 0;
}
