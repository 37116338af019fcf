// Any bytes are either runs whose errors are at or above zero, or an InputError.
#include "base/error.h"
#include "fuzz.h"
#include "report/accuracy/validation_history.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace foretoken;
  read_or_refuse([&] {
    for (const PastRun& run : parse_validation_history(std::string(as_text(data, size)), "input")) {
      for (const CheckedErrors& errors : run.checks) {
        promise(errors.rows > 0 && errors.mape >= 0, "a check has rows, and an error is not below zero");
      }
    }
  });
  return 0;
}
