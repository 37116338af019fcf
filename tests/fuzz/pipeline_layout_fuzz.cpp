// Any bytes are either the layout of a pipeline, which is written as a text that reads the same, or an InputError.
#include "base/error.h"
#include "fuzz.h"
#include "training/layer_split.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace foretoken;
  try {
    const std::vector<ChunkLayers> layout = parse_pipeline_layout(as_text(data, size));
    promise(!layout.empty() && layout.front().embedding && layout.back().head, "a layout begins and ends as models do");
    promise(parse_pipeline_layout(pipeline_layout_text(layout)) == layout, "what is written reads the same");
  } catch (const InputError& error) {
    promise(!error.problem().expected.empty(), "a complaint says what was expected");
  }
  return 0;
}
