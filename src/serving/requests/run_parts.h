// What a serving run is put together from, and what cannot be put together.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>

namespace foretoken {

enum class RunPart : uint8_t {
  colocation,       // engines of several models on one device
  fleet,            // replicas that come and go
  failures,         // of a fleet: replicas that fail
  drains,           // of a fleet: replicas that are replaced
  admission,        // of a fleet: requests that are refused
  regions,          // of a fleet: several places
  separate_pools,   // workers for prompts and for decoding
  kv_tiers,         // memories below the KV caches
  adapters,         // LoRA
  ffn_pool,         // feed-forward layers on devices of their own
  samples,          // several outputs of each request
  pooled_requests,  // embeddings and scores
  energy,           // metered
  request_details,  // times of every token, kept
  request_life      // one request explained
};

// Two parts of which a run can have one.
struct RefusedPair {
  RunPart part, with;
  std::string_view expected;  // of a run with `part`
};
std::span<const RefusedPair> refused_pairs();

class RunParts {
 public:
  // `name` is what the user calls it; empty = the field of the specs.
  void add(RunPart part, std::string name = {});
  // Whether a run with these parts can have that one too.
  bool accepts(RunPart part) const;
  // InputError names two parts that cannot be combined.
  void check() const;

 private:
  std::map<RunPart, std::string> names_;
};

// Where the specs ask for it: "deployment.kv_tiers".
std::string_view spec_field(RunPart part);

}  // namespace foretoken
