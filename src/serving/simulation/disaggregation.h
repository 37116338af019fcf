// Separate workers for prompts and for decoding: a request computes its prompt in one pool, its cache moves over the
// network, and it decodes in the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "compose/serving_engine.h"
#include "hardware/node.h"

namespace foretoken {

// What leads out of a replica: all its devices' ports together, each direction.
struct KvPort {
  BytesPerSecond bandwidth;
  Seconds latency;  // of a transfer, once
};

// Who gives the client its first token.
//   decode    the decode worker computes the prompt's last token again (vLLM's proxy throws the other one away)
//   transfer  it comes with the cache, when the transfer ends (SGLang, TensorRT-LLM)
enum class FirstToken : uint8_t { decode, transfer };

struct Disaggregation {
  size_t prefill_replicas = 1;  // the first so many replicas of the run compute prompts, the others decode
  std::string decode_router = "round_robin";  // chooses among these when a prompt is computed
  double kv_bytes_per_token = 0;              // of all layers and heads
  std::vector<KvPort> ports;                  // of each replica
  FirstToken first_token = FirstToken::decode;
  FirstTokenDoubt first_token_doubt = {};
  // The cache of a layer leaves as soon as it is computed: of the transfer only the last of so many layers, or what the
  // network could not keep up with, is left when the prompt ends. Traffic of others meanwhile is not counted. 0 = the
  // whole cache goes when the prompt is computed.
  int64_t overlapped_layers = 0;
};

// One of the pools: equal replicas, and the devices of each that hold its cache.
struct KvPool {
  int64_t replicas = 1, devices = 1;
  BytesPerSecond device_bandwidth;  // one direction out of each device
};
// Every device sends its part of the cache. The rest of the settings are the usual ones.
Disaggregation disaggregation_between(const KvPool& prefill, const KvPool& decode, Seconds latency);

// To set up a transfer, on the hosts of both ends: an assumption.
inline constexpr Seconds usual_transfer_latency{1e-3};

// One direction out of each device when caches move between so many devices of this node's kind: the node's fabric
// where they fit in one, else its network cards; nothing where these are not known.
std::optional<BytesPerSecond> transfer_bandwidth_per_device(const Node& node, int64_t devices);

}  // namespace foretoken
