#include "serving/engine/vllm_release.h"

#include <cstdint>
#include <limits>

#include "compose/engine_release.h"

namespace foretoken {
namespace {

struct ReleaseEntry {
  ReleaseNumber first;
  VllmRelease release;
};

// From which release on each holds. Add your line here when a release changes what is usual.
constexpr ReleaseEntry releases[] = {
    {{0, 0}, {.engine = "vllm-0.19", .scheduler = "vllm_v0", .stack = "vllm-0.6", .async_scheduling = false}},
    // V1 is the default.
    {{0, 8}, {.engine = "vllm-0.19", .scheduler = "vllm", .stack = "vllm-0.10", .async_scheduling = false}},
    // Decodes run in whole graphs.
    {{0, 11}, {.engine = "vllm-0.19", .scheduler = "vllm", .stack = "vllm-0.11", .async_scheduling = false}},
    // It schedules ahead.
    {{0, 14}, {.engine = "vllm-0.19", .scheduler = "vllm", .stack = "vllm-0.14", .async_scheduling = true}},
    // Norms run inside all-reduces.
    {{0, 17}, {.engine = "vllm-0.19", .scheduler = "vllm", .stack = "vllm", .async_scheduling = true}},
    // CUDA graphs are set aside before the KV cache.
    {first_vllm_with_graphs_in_budget,
     {.engine = "vllm", .scheduler = "vllm", .stack = "vllm", .async_scheduling = true}},
};

}  // namespace

VllmRelease vllm_release(std::string_view text) {
  constexpr ReleaseNumber unnumbered{std::numeric_limits<int64_t>::max(), 0};
  const ReleaseNumber version = release_number_from(text).value_or(unnumbered);
  VllmRelease newest = releases[0].release;
  for (const ReleaseEntry& entry : releases) {
    if (entry.first <= version) newest = entry.release;
  }
  return newest;
}

}  // namespace foretoken
