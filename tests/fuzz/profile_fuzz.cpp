// Any bytes are either a profiler trace whose stack, where it shows one, reads back, or an InputError.
#include <vector>

#include "base/error.h"
#include "compose/profile/stack_writer.h"
#include "compose/profile/summary.h"
#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace foretoken;
  try {
    const std::vector<ProfiledStep> steps = {parse_profile(as_text(data, size), "input")};
    promise(summarize_profile(steps[0]).kernels == steps[0].kernels.size(), "a summary counts every kernel");
    parse_stack(stack_from_profiles(steps, {.name = "fuzz"}).file.dump(), "written");
  } catch (const InputError& error) {
    promise(!error.problem().expected.empty(), "a complaint says what was expected");
  }
  return 0;
}
