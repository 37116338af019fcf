// Any bytes are either a calibration of collectives that writes and reads back without loss, or an InputError.
#include <cmath>
#include <string>

#include "base/error.h"
#include "fuzz.h"
#include "network/calibration/communication_calibration.h"

namespace {

using namespace foretoken;

template <class Parse>
void read_and_write(std::string_view text, Parse parse) {
  try {
    const std::string written = calibration_json(parse(text, "input"));
    promise(calibration_json(parse(written, "written")) == written, "a calibration is the same after a second reading");
  } catch (const InputError& error) {
    promise(!error.problem().expected.empty(), "a complaint says what was expected");
  }
}

void ask(std::string_view text) {
  try {
    const SweepCalibration sweep = parse_sweep_calibration(text, "input");
    for (const auto& [key, series] : sweep.series) {
      const auto leftover = leftover_of(sweep, {.operation = key.first, .ranks = key.second + 1, .bytes = 5000});
      promise(!leftover || std::isfinite(leftover->log_factor), "a sweep that was accepted answers any size");
    }
  } catch (const InputError& error) {
    promise(!error.problem().expected.empty(), "a complaint says what was expected");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text = as_text(data, size);
  read_and_write(text, parse_law_calibration);
  read_and_write(text, parse_sweep_calibration);
  ask(text);
  return 0;
}
