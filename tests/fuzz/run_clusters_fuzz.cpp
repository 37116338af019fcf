// Any bytes are either clusters of published training runs, or an InputError.
#include "base/error.h"
#include "fuzz.h"
#include "training/runs/training_case.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace foretoken;
  try {
    promise(parse_run_clusters(as_text(data, size), "input").size() <= size, "an entry takes at least a byte");
  } catch (const InputError& error) {
    promise(error.problem().source == "input", "a complaint names the file");
    promise(!error.problem().expected.empty(), "a complaint says what was expected");
  }
  return 0;
}
