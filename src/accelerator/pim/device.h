// A machine whose memory computes: DRAM processing units (DPUs) beside their own memory, filled and emptied by a host.
// What a data file of data/accelerators/pim says about it.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "hardware/device.h"

namespace foretoken {

// Ways to move data between the host and its DPUs.
enum class PimTransferKind {
  to_dpus,           // each DPU its own part, all at once
  to_dpus_cached,    // the same, out of the host's cache
  broadcast,         // the same bytes to every DPU
  from_dpus,         // each DPU its own part, all at once
  from_dpus_serial,  // one DPU after the other
  scratchpad,        // small results in the DPUs' scratchpads, word by word
};
inline constexpr std::array<std::string_view, 6> pim_transfer_kind_names = {
    "to_dpus", "to_dpus_cached", "broadcast", "from_dpus", "from_dpus_serial", "scratchpad"};

// Seconds = calls x (call + per_dpu x DPUs) + bytes / rate(DPUs); bytes count on all DPUs together.
struct PimTransferLaw {
  struct Rate {
    double dpus = 0;
    BytesPerSecond rate;
  };
  Seconds call;
  Seconds per_dpu;
  std::vector<Rate> rates;    // by number of DPUs, rising; at least one
  double relative_error = 0;  // half-width of the 90% interval
  std::string source;

  // Between two numbers of DPUs linear in logarithms; outside as at the nearest.
  BytesPerSecond rate(double dpus) const;
  Seconds seconds(double dpus, Bytes bytes, double calls) const;
};

// What runs of a program were measured on.
struct PimMeasured {
  double least_elements = 0, most_elements = 0;  // of a DPU
  int64_t least_dpus = 0, most_dpus = 0;
};

// What a program of DPUs costs beyond its memory traffic.
struct PimProgram {
  double instructions_per_element = 0;
  Seconds setup;  // launch, and work that does not grow with the elements
  double relative_error = 0;
  std::string source;
  std::optional<PimMeasured> measured;  // nothing: assumed, counted from its source code
};

struct PimDevice {
  std::string name;
  std::string title;
  Fact<Hertz> clock;
  Fact<int64_t> most_tasklets;       // threads of a DPU
  Fact<int64_t> cycles_per_tasklet;  // between two instructions of one thread
  Fact<Bytes> memory;                // of a DPU
  Fact<double> read_setup_cycles;    // of one DMA transfer between a DPU's memory and its scratchpad
  Fact<double> write_setup_cycles;
  Fact<double> cycles_per_byte;
  Fact<int64_t> most_dpus;
  Fact<Bytes> host_cache;  // the last level of it
  std::array<PimTransferLaw, pim_transfer_kind_names.size()> transfers{};
  std::map<std::string, PimProgram, std::less<>> programs{};

  const PimTransferLaw& transfer(PimTransferKind kind) const { return transfers[static_cast<size_t>(kind)]; }
  PimTransferLaw& transfer(PimTransferKind kind) { return transfers[static_cast<size_t>(kind)]; }
};

PimDevice read_pim_device(const std::filesystem::path& path);
PimDevice parse_pim_device(std::string_view text, const std::string& source);

}  // namespace foretoken
