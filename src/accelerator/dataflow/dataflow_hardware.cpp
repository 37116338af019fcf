#include "accelerator/dataflow/dataflow_hardware.h"

#include <algorithm>
#include <array>
#include <vector>

#include "accelerator/dataflow/maestro_text.h"
#include "base/file.h"
#include "base/kinds.h"

namespace foretoken {
namespace {

constexpr size_t most_hardware_bytes = size_t{1} << 20;

struct HardwareKey {
  std::string_view name;
  std::string_view older_name;
  int64_t DataflowHardware::*value;
};

constexpr std::array<HardwareKey, 6> hardware_keys{{
    {"num_pes", "NumPEs", &DataflowHardware::num_pes},
    {"l1_size_cstr", "L1Size", &DataflowHardware::l1_bytes},
    {"l2_size_cstr", "L2Size", &DataflowHardware::l2_bytes},
    {"noc_bw_cstr", "NoC_BW", &DataflowHardware::noc_bandwidth},
    {"offchip_bw_cstr", "", &DataflowHardware::offchip_bandwidth},
    {"NoC_NumHops", "", &DataflowHardware::noc_latency_cycles},
}};

}  // namespace

DataflowHardware parse_dataflow_hardware(std::string_view text, const std::string& source) {
  DataflowHardware hardware;
  MaestroText words(text, source);
  while (!words.at_end()) {
    const std::string_view word = words.take_word("a name such as num_pes");
    const auto key = std::ranges::find_if(
        hardware_keys, [&](const HardwareKey& known) { return word == known.name || word == known.older_name; });
    if (key == hardware_keys.end()) {
      words.fail_unknown(word, "a name such as num_pes or l2_size_cstr", kind_names(hardware_keys));
    }
    hardware.*key->value = words.take_integer({1, unlimited_hardware});
  }
  return hardware;
}

DataflowHardware read_dataflow_hardware(const std::filesystem::path& path) {
  return parse_dataflow_hardware(read_file(path, most_hardware_bytes), path.string());
}

}  // namespace foretoken
