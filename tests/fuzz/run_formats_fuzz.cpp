// Any text is either a run whose requests are in order and have sane times, or an InputError.
#include "base/error.h"
#include "fuzz.h"
#include "serving/run_formats/run_formats.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace foretoken;
  const std::string text(as_text(data, size));
  try {
    const MeasuredRun run = parse_run(text, "input");
    double last = 0;
    for (const MeasuredRequest& request : run.requests) {
      promise(request.arrival_s >= last, "requests are in order of arrival");
      promise(request.input_tokens >= 0 && request.output_tokens >= 0, "tokens are not negative");
      promise(request.ttft_s.value_or(0) >= 0 && request.e2e_s.value_or(0) >= 0, "times are not negative");
      last = request.arrival_s;
    }
    summarize(run);
  } catch (const InputError& error) {
    promise(!error.problem().expected.empty(), "a complaint says what was expected");
  }
  return 0;
}
