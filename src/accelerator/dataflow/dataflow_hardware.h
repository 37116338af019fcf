// The accelerator that MAESTRO's hardware files describe: identical elements, one shared buffer, one network, one
// memory.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace foretoken {

inline constexpr int64_t unlimited_hardware = 2'147'483'647;  // what MAESTRO takes for a limit that is not given

struct DataflowHardware {
  int64_t num_pes = 1;
  int64_t l1_bytes = unlimited_hardware;           // of each element; one byte per number
  int64_t l2_bytes = unlimited_hardware;           // shared
  int64_t noc_bandwidth = unlimited_hardware;      // numbers per cycle, at every cluster level
  int64_t noc_latency_cycles = 1;                  // until the first number arrives
  int64_t offchip_bandwidth = unlimited_hardware;  // numbers per cycle between memory and L2
};

// `num_pes: 256`, `l1_size_cstr`, `l2_size_cstr`, `noc_bw_cstr`, `offchip_bw_cstr`, `NoC_NumHops`, in any order, and
// the older names `NumPEs`, `L1Size`, `L2Size`, `NoC_BW`.
DataflowHardware parse_dataflow_hardware(std::string_view text, const std::string& source);
DataflowHardware read_dataflow_hardware(const std::filesystem::path& path);

}  // namespace foretoken
