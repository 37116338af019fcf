// Any bytes are either a chip with a peak and a bandwidth, or an InputError.
#include "accelerator/systolic/chip.h"
#include "base/error.h"
#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace foretoken;
  try {
    const SystolicChip chip = parse_systolic_chip(as_text(data, size), "input");
    promise(chip.peak().value() > 0 && chip.bytes_per_cycle() > 0, "a chip computes and is fed");
  } catch (const InputError& error) {
    promise(!error.problem().expected.empty(), "a complaint says what was expected");
  }
  return 0;
}
