// Any text is either a launch line whose fields have names and values, or an InputError.
#include "base/error.h"
#include "fuzz.h"
#include "serving/engine/launch_line.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace foretoken;
  const std::string text(as_text(data, size));
  try {
    const LaunchLine line =
        read_launch_line(text, "input", [&](const std::string&) { return std::optional<std::string>(text); });
    promise(line.fields.find("engine") != nullptr || line.fields.find("replica") != nullptr ||
                line.fields.find("decode_pool") != nullptr,
            "an engine is known");
    for (const auto& [field, value] : line.fields.members()) {
      promise(!field.empty() && value.kind() != Json::Kind::null, "a field has a name and a value");
    }
  } catch (const InputError& error) {
    promise(!error.problem().expected.empty(), "a complaint says what was expected");
  }
  return 0;
}
