// Any bytes are either distributions of step times that can be predicted, or an InputError.
#include <string>

#include "base/error.h"
#include "fuzz.h"
#include "training/scale/validate_step_times.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace foretoken;
  try {
    const auto rows = read_step_times(CsvReader::from_text(std::string(as_text(data, size)), "input"));
    for (const StepTimeCheck& check : validate_step_times(rows)) {
      promise(check.measured_p95 >= 1 && check.predicted_p95 >= 1, "p95 is no shorter than the median");
    }
  } catch (const InputError& error) {
    promise(!error.problem().expected.empty(), "a complaint says what was expected");
  }
  return 0;
}
