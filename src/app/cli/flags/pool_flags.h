// The flags of separate prefill and decode workers.
#pragma once

#include <string>

#include "app/cli/flags/replica_flags.h"
#include "app/cli/grammar/options.h"
#include "library/library.h"
#include "serving/engine/kv_pools.h"

namespace foretoken {

struct PoolFlags {
  std::string prefill, decode;  // settings as in --replica; empty = prompts and decodes share their engines
  std::string decode_router = "least_outstanding", first_token = "engine";
  double bandwidth_gb_s = 0, latency_us = usual_transfer_latency.value() * 1e6;
  bool by_layer = false;

  void declare(Options& options);
  // InputError for flags that only pools read.
  void check_use(const Options& options) const;
  // InputError where only one of the pools is given.
  bool given() const;
  // How caches move from one pool to the other. `disaggregation`: InputError where the bandwidth is neither given nor
  // known.
  KvTransfer transfer() const;
  Disaggregation disaggregation(const ReplicaGroup& prefill_pool, const ReplicaGroup& decode_pool,
                                const std::string& engine, const PlacementSpec& placement,
                                const Library& library) const;
};

}  // namespace foretoken
