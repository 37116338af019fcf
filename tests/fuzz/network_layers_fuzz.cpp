// Any bytes are either layers that every model of an accelerator takes or refuses by name, or an InputError.
#include "accelerator/dataflow/dataflow_network.h"
#include "accelerator/systolic/systolic_network.h"
#include "accelerator/workload/conv_layers.h"
#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace foretoken;
  read_or_refuse([&] {
    const Json document = parse_json(as_text(data, size), "input");
    for (const NetworkLayer& layer : read_network_layers(JsonView(document, "input"))) {
      promise(problem_fault(layer_problem(layer)).empty(), "a layer is a sound problem");
      read_or_refuse([&] { promise(systolic_layer(layer).repeats > 0, "a layer runs at least once"); });
      read_or_refuse([&] { dataflow_layer(layer); });
      read_or_refuse([&] { check_conv_layer(conv_layer(layer), "input"); });
      read_or_refuse([&] { with_batch(layer, 1 << 20); });
    }
  });
  return 0;
}
