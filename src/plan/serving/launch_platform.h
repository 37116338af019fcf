// What servers are started with on each platform: names that differ between vendors.
#pragma once

#include <string>
#include <string_view>

#include "hardware/device.h"
#include "serving/engine/launch_flags.h"

namespace foretoken {

struct LaunchPlatform {
  std::string_view platform;  // Platform::name
  std::string_view title;     // for sentences
  std::string_view visible;   // the variable that lists the devices of a process; empty = none takes whole devices
  std::string_view vllm_image, sglang_image, trtllm_image;  // empty = not known
  std::string_view kubernetes_resource;                     // empty = files for Kubernetes are not written
  bool takes_nvidia_files = false;  // Docker Compose's devices, NVIDIA Dynamo and llm-d's CUDA image
  // vLLM's words for fp8 weights made from a 16-bit checkpoint and for an fp8 cache; empty = it has no flag for it.
  std::string_view fp8_weights = "fp8", fp8_cache = "fp8";
  std::string_view fp8_note{};  // what fp8 needs besides; empty = nothing

  // With the release in its tag where the engine is one ("vllm-0.12.1"), so that what runs is what was simulated.
  std::string image(LaunchStyle style, std::string_view engine) const;
};

// Hardware of an unknown vendor is started as NVIDIA's is.
const LaunchPlatform& launch_platform(const Device& device);

}  // namespace foretoken
