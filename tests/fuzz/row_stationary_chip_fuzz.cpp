// Any bytes are either a chip that gives a small layer a finite time, or an InputError.
#include <cmath>

#include "accelerator/row_stationary/estimate.h"
#include "base/error.h"
#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace foretoken;
  try {
    const RowStationaryChip chip = parse_row_stationary_chip(as_text(data, size), "input");
    const ConvLayer layer{.name = "layer", .channels = 8, .filters = 8, .height = 8, .width = 8, .padding = 1};
    const double seconds = estimate_row_stationary(chip, layer).total.value();
    promise(std::isfinite(seconds) && seconds > 0, "a layer takes time");
  } catch (const InputError& error) {
    promise(!error.problem().expected.empty(), "a complaint says what was expected");
  }
  return 0;
}
