// Any bytes are either a calibration that writes and reads back without loss, or an InputError.
#include <cmath>
#include <string>
#include <vector>

#include "base/error.h"
#include "fuzz.h"
#include "kernel/calibration.h"
#include "kernel/campaign.h"

namespace {

using namespace foretoken;

double answer_of(const FormCalibration& calibration, const std::vector<float>& question) {
  return calibration.residual.predict(question);
}
double answer_of(const DeviceCalibration& calibration, const std::vector<float>& question) {
  return calibration.left_over(question);
}

template <class Parse>
void read_and_write(std::string_view text, Parse parse) {
  try {
    const auto calibration = parse(text, "input");
    const std::vector<float> question(calibration.residual.features(), 0.25F);
    promise(std::isfinite(answer_of(calibration, question)), "what was accepted answers any question");
    const std::string written = calibration_json(calibration);
    promise(calibration_json(parse(written, "written")) == written, "a calibration is the same after a second reading");
  } catch (const InputError& error) {
    promise(!error.problem().expected.empty(), "a complaint says what was expected");
  }
}

void read_campaign_and_write(std::string_view text) {
  try {
    // Numbers are kept in microseconds: they may lose a last digit the first time, and then no more.
    const std::string once = campaign_json(parse_campaign(text, "input"));
    promise(parse_campaign(once, "written").effects.size() == parse_campaign(text, "input").effects.size(),
            "a campaign keeps its effects");
  } catch (const InputError& error) {
    promise(!error.problem().expected.empty(), "a complaint says what was expected");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  read_and_write(as_text(data, size), parse_form_calibration);
  read_and_write(as_text(data, size), parse_device_calibration);
  read_campaign_and_write(as_text(data, size));
  return 0;
}
