// Any bytes are either a training stack whose constants are in their ranges on every device, or an InputError.
#include "base/error.h"
#include "fuzz.h"
#include "training/training_stack.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace foretoken;
  const auto base = [](const std::string&) { return TrainingStack{.name = "base"}; };
  try {
    const TrainingStack stack = parse_training_stack(as_text(data, size), "input", base);
    Device device;
    device.name = "gb300";
    device.instruction_set = "sm_103";
    const TrainingConstants constants = stack.constants_on(device);
    for (size_t i = 0; i < constants.size(); ++i) {
      const TrainingConstantFacts& facts = training_constant_facts()[i];
      promise(constants[i] >= facts.least && constants[i] <= facts.most, "a constant is in its range");
    }
    promise(stack.interval.low <= 1 && stack.interval.high >= 1, "an interval holds the prediction");
  } catch (const InputError& error) {
    promise(error.problem().source == "input", "a complaint names the file");
    promise(!error.problem().expected.empty(), "a complaint says what was expected");
  }
  return 0;
}
