// Any text is either expanded, within its limits, or an InputError.
#include "accelerator/formats/jinja.h"
#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace foretoken;
  read_or_refuse([&] {
    const std::string expanded = expand_jinja(as_text(data, size), "input", {{"bits", "8"}, {"name", "chip"}});
    promise(expanded.size() <= size_t{8} << 20, "an expansion keeps to its limit");
  });
  return 0;
}
