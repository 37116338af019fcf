// One call of a communication library, as its benchmarks describe it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "hardware/device.h"
#include "hardware/node.h"

namespace foretoken {

// Tokens that travel to their experts (dispatch) and back (combine).
struct ExpertTraffic {
  int64_t tokens = 1;  // of each rank
  int64_t hidden = 1;
  int64_t top_k = 1;
  int64_t experts = 1;         // of the whole layer
  int64_t processors = 0;      // SMs the kernel may use; 0 = the library's own choice
  double bytes_per_value = 2;  // as sent
};

struct CommunicationCall {
  std::string law;        // a name of laws/list.cpp: nccl, deepep_normal, ...
  std::string operation;  // all_reduce, vllm_graph, dispatch, ...
  std::string variant;    // software version and number format: sweeps tell them apart, laws do not
  int64_t ranks = 1;
  int64_t nodes = 1;     // hosts the ranks lie on
  double bytes = 0;      // laws of messages; as in nccl-tests (CollectiveShape)
  ExpertTraffic expert;  // laws of expert traffic
};

// vLLM's all-reduce, and SGLang's, which began as its copy: below a size by the number of ranks everybody reads
// everybody's buffer at once; from there on a reduce-scatter and an all-gather follow each other, or another library
// takes over (vllm/csrc/custom_all_reduce.cuh; world sizes of all_reduce_utils.py). Two ranks always read at once.
enum class AllReduceShots : uint8_t { none, one, two };  // none: other kernels
AllReduceShots all_reduce_shots(const CommunicationCall& call);
// As calibrations name what was learned about it: "vllm", "vllm two-shot".
std::string with_shots(std::string_view name, AllReduceShots shots);

// What a sweep walks along: bytes, or tokens where there is expert traffic.
double swept_size(const CommunicationCall& call);

// What a sweep keeps fixed besides the ranks and the variant: "all_reduce", "vllm_graph two-shot", "dispatch h7168 k8
// e256 s20 nodes1".
std::string series_of(const CommunicationCall& call);
// The same on systems that run one kernel whatever the size: those without NVLink.
std::string series_without_shots(const CommunicationCall& call);

// What a law may know of a system.
struct SystemTraits {
  std::string name;
  double link_rate = 0;       // bytes/s out of one device, one direction
  double pair_rate = 0;       // of them, to one other device; 0 = all
  bool is_host_link = false;  // PCIe: devices share the host's bridges
  bool reduces_in_switch = false;
  bool is_like_another = false;  // its generation was never seen (Device::like)
  double processors = 100;
  double clock = 1.8e9;  // Hz
  double card_rate = 0;  // bytes/s of network out of a host for each device; 0 = not known
  int64_t devices_per_host = 8;
  int64_t devices_per_domain = 8;  // that reach each other over the links; a rack has many hosts in one domain

  // Bytes/s that a device can send to the others of a group over its own links.
  double rate_among(int64_t ranks) const;
};

// NVSwitch systems from Hopper on reduce and multicast in the switch (NVLS).
bool has_reducing_switch(const Device& device);

// InputError when the sheet gives no link at all. `node` is what the device usually sits in, if known.
SystemTraits system_traits(const Device& device, const std::optional<Node>& node);

}  // namespace foretoken
