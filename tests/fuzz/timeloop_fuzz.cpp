// Any bytes, split into files at lines of `---`, are either inputs of an accelerator that make sense, or an InputError.
#include <string>
#include <vector>

#include "accelerator/formats/timeloop_files.h"
#include "accelerator/formats/timeloop_output.h"
#include "base/error.h"
#include "base/text.h"
#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace foretoken;
  std::vector<TimeloopText> texts;
  for (const std::string_view part : split(as_text(data, size), "\n---\n")) {
    texts.push_back({.source = "input", .text = std::string(part)});
  }
  try {
    const AcceleratorInputs inputs = read_timeloop_texts(texts);
    if (inputs.architecture) promise(architecture_fault(*inputs.architecture).empty(), "an architecture is sound");
    if (inputs.problem) promise(problem_fault(*inputs.problem).empty(), "a problem is sound");
    if (inputs.mapping) {
      const std::string text = timeloop_map_yaml(*inputs.mapping, *inputs.architecture, *inputs.problem);
      promise(!text.empty(), "a mapping can be written");
    }
  } catch (const InputError& error) {
    promise(!error.problem().expected.empty(), "a complaint says what was expected");
  }
  return 0;
}
