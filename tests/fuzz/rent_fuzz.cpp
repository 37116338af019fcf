// Any bytes are either prices above zero with a source each, or an InputError.
#include "base/error.h"
#include "fuzz.h"
#include "hardware/rent.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace foretoken;
  try {
    for (const auto& [device, rent] : parse_rents(as_text(data, size), "input")) {
      promise(rent.value > 0 && !rent.source.empty(), "a price is above zero and somebody's");
    }
  } catch (const InputError& error) {
    promise(!error.problem().expected.empty(), "a complaint says what was expected");
  }
  return 0;
}
