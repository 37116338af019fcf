// Any bytes are either layers that every model of an accelerator takes or refuses by name, or an InputError.
#include "accelerator/conv_layers.h"
#include "accelerator/dataflow/dataflow_network.h"
#include "accelerator/systolic/systolic_network.h"
#include "base/error.h"
#include "fuzz.h"

namespace {

template <class Take>
void take_or_refuse(const Take& take) {
  try {
    take();
  } catch (const foretoken::InputError& error) {
    foretoken::promise(!error.problem().expected.empty(), "a complaint says what was expected");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace foretoken;
  take_or_refuse([&] {
    const Json document = parse_json(as_text(data, size), "input");
    for (const NetworkLayer& layer : read_network_layers(JsonView(document, "input"))) {
      promise(problem_fault(layer_problem(layer)).empty(), "a layer is a sound problem");
      take_or_refuse([&] { promise(systolic_layer(layer).repeats > 0, "a layer runs at least once"); });
      take_or_refuse([&] { dataflow_layer(layer); });
      take_or_refuse([&] { check_conv_layer(conv_layer(layer), "input"); });
      take_or_refuse([&] { with_batch(layer, 1 << 20); });
    }
  });
  return 0;
}
