// Where the adapters of an engine lie: in slots of the device, in the host's memory, or on disk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <span>

#include "base/units.h"
#include "serving/requests/request.h"

namespace foretoken {

// Time to bring in one adapter. Steps wait for it (vLLM, v1/worker/lora_model_runner_mixin.py: adapters are set before
// the forward pass).
struct AdapterLoading {
  size_t device_slots = 0;  // max_loras; 0 = no adapters
  size_t host_slots = 0;    // max_cpu_loras: those in device slots count too
  Seconds from_host;        // host memory to a slot
  Seconds from_disk;        // disk to host memory, before that
};

// Least recently used ones leave, first from the device, and from both when the host's memory is full (vLLM,
// lora/model_manager.py, LRUCacheLoRAModelManager).
class AdapterCache {
 public:
  explicit AdapterCache(const AdapterLoading& loading);

  bool has_slots() const { return loading_.device_slots > 0; }

  // A step uses these, at most as many as there are slots: brings in what is missing.
  AdapterLoads use(std::span<const int32_t> adapters);

 private:
  // In order of last use.
  class Recent {
   public:
    explicit Recent(size_t most) : most_(most) {}
    bool touch(int32_t adapter);  // false where it was not there; now it is
    void remove(int32_t adapter);
    // The one that must leave; -1 = none.
    int32_t take_oldest_beyond_limit();

   private:
    size_t most_;
    std::list<int32_t> order_;  // the latest last
    std::map<int32_t, std::list<int32_t>::iterator> places_;
  };

  AdapterLoading loading_;
  Recent device_, host_;
};

}  // namespace foretoken
