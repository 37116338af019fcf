// How long it takes until a new replica can serve.
#pragma once

#include "base/units.h"

namespace foretoken {

struct ColdStart {
  // A virtual machine with its GPU; 60 to 120 s are common in clouds (systemoverflow.com, "Cold start problem"). 0 for
  // a container on a node that is there.
  Seconds provisioning{60};
  // What weights come from. vllm-project/vllm issue 44881: 21.82 GiB in 18 s.
  BytesPerSecond storage{1.3e9};
  // Process, compilation, memory profile and graph capture: 39.3 s for Llama-3-8B (vllm-project/vllm pull request
  // 11005), 90.8 s on another machine (run-ai/runai-model-streamer issue 67).
  Seconds engine_start{40};
};

// Weights are read and sent to the devices at the same time: the slower of storage and host link decides. `host_link`
// of one device; 0 = not known, storage decides.
Seconds cold_start_time(const ColdStart& settings, Bytes weights_per_device, int devices, BytesPerSecond host_link);

}  // namespace foretoken
