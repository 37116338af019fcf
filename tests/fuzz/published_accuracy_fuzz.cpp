// Any bytes are either groups with errors at or above zero, or an InputError.
#include "base/error.h"
#include "fuzz.h"
#include "report/accuracy/published_accuracy.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace foretoken;
  try {
    for (const PublishedGroup& group : parse_published_accuracy(as_text(data, size), "input")) {
      promise(group.rows > 0 && group.mean_error >= 0, "a group has rows, and an error is not below zero");
      promise(group.system().size() <= group.group.size(), "a system is named in its group");
    }
  } catch (const InputError& error) {
    promise(!error.problem().expected.empty(), "a complaint says what was expected");
  }
  return 0;
}
