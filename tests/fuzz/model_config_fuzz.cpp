// Any bytes are either a model with sensible numbers, or an InputError.
#include "base/error.h"
#include "fuzz.h"
#include "model/model.h"
#include "model/model_config.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace foretoken;
  try {
    const Model model = parse_model_config(as_text(data, size), "config.json", "fuzz/model");
    promise(model.hidden > 0 && !(model.layers.empty() && model.encoder_layers.empty()),
            "a model has width and layers");
  } catch (const InputError& error) {
    promise(!error.problem().expected.empty(), "a complaint says what was expected");
  }
  return 0;
}
