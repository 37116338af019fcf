// Chakra traces of all ranks -> a workload to replay: what types and attributes of nodes mean here.
//
//   COMP_NODE              a kernel of stream `stream` (0), or with `is_cpu_op` the host's thread `tid` (0)
//   MEM_LOAD/STORE_NODE    the rank's memory port, `tensor_size` bytes
//   COMM_COLL_NODE         `comm_type`, `comm_size` (bytes that a rank puts in), process group `pg_name`, or the
//                          dimensions `involved_dim`, or all ranks
//   COMM_SEND/RECV_NODE    `comm_size`, `comm_src`, `comm_dst`, `comm_tag` (0)
//   any other              takes no time; METADATA_NODE may list process groups
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "hardware/device.h"
#include "network/chakra/chakra.h"
#include "network/replay/workload.h"

namespace foretoken {

// The longer of num_ops over the peak and tensor_size over the memory bandwidth: ASTRA-sim's roofline.
struct ComputeRoofline {
  FlopsPerSecond peak;
  BytesPerSecond memory_bandwidth;
  BytesPerSecond remote_bandwidth;  // of MEM_LOAD and MEM_STORE nodes; 0 = not known
};
// InputError where the device's sheet lacks them.
ComputeRoofline compute_roofline(const Device& device, DType math);

struct ChakraReplayOptions {
  // With it, kernels take num_ops and tensor_size on that device where the trace has them; without, and on the host,
  // the recorded durations.
  std::optional<ComputeRoofline> roofline;
  std::optional<std::filesystem::path> group_file;  // see read_group_file()
  std::vector<int64_t> dimensions;                  // for `involved_dim`; their product is the number of ranks
  int64_t ranks = 0;                                // 0 = as many as there are files
};

// Reads PREFIX.0.et, PREFIX.1.et, ... InputError with file and node for a missing rank, a process group that nobody
// describes, an attribute that is missing or out of range, or a kernel that has work but neither a duration nor a
// roofline to tell one from.
ReplayWorkload read_chakra_workload(const std::string& prefix, const ChakraReplayOptions& options = {});

// The same from anywhere: `open` is asked for the traces of ranks 0 to options.ranks - 1, once each.
ReplayWorkload chakra_workload(const std::function<ChakraReader(int64_t rank)>& open,
                               const ChakraReplayOptions& options);

}  // namespace foretoken
