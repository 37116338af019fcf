// What a release of vLLM does by default.
#pragma once

#include <string_view>

namespace foretoken {

struct VllmRelease {
  std::string_view engine;     // of engine_kinds(): how it divides memory
  std::string_view scheduler;  // V0 or V1
  std::string_view stack;      // that runs its steps
  bool async_scheduling;       // the next step is scheduled while one runs
};

// "0.10.2", "0.13.0rc1". What is not a number of a release ("nightly", nothing) is newer than all.
VllmRelease vllm_release(std::string_view version);

}  // namespace foretoken
