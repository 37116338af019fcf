// Any bytes are either a mapping file, whose dataflows are costed or refused, or an InputError; the same of a hardware
// file.
#include <string>

#include "accelerator/dataflow/dataflow_analysis.h"
#include "accelerator/dataflow/dataflow_file.h"
#include "accelerator/dataflow/dataflow_hardware.h"
#include "base/error.h"
#include "fuzz.h"

namespace {

using namespace foretoken;

template <class Work>
void try_to(const Work& work) {
  try {
    work();
  } catch (const InputError& error) {
    promise(!error.problem().expected.empty(), "a complaint says what was expected");
  }
}

void read_network(std::string_view text) {
  const MappedNetwork network = parse_mapped_network(text, "input");
  promise(!network.layers.empty(), "a network has a layer");
  const DataflowHardware hardware{.num_pes = 64, .noc_bandwidth = 100, .offchip_bandwidth = 10};
  for (const MappedLayer& mapped : network.layers) {
    try_to([&] {
      const DataflowCost cost =
          analyse_dataflow(mapped.layer, mapped.dataflow, hardware, DataflowReading::physical, "input");
      promise(cost.runtime_cycles >= 0 && cost.macs >= 0, "counts are not below zero");
    });
    try_to([&] { analyse_dataflow(mapped.layer, mapped.dataflow, hardware, DataflowReading::maestro, "input"); });
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text = as_text(data, size);
  try_to([&] { read_network(text); });
  try_to([&] { parse_directives(text, "input"); });
  try_to([&] { parse_dataflow_hardware(text, "input"); });
  return 0;
}
