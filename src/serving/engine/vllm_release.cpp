#include "serving/engine/vllm_release.h"

#include <algorithm>
#include <compare>
#include <cstdint>
#include <limits>

#include "base/text.h"

namespace foretoken {
namespace {

struct ReleaseNumber {
  int64_t major = std::numeric_limits<int64_t>::max(), minor = 0;
  auto operator<=>(const ReleaseNumber&) const = default;
};

ReleaseNumber release_number_from(std::string_view text) {
  const size_t dot = text.find('.');
  if (dot == std::string_view::npos) return {};
  const size_t end = std::min(text.find_first_not_of("0123456789", dot + 1), text.size());
  const auto major = parse_integer(text.substr(0, dot)), minor = parse_integer(text.substr(dot + 1, end - dot - 1));
  return major && minor ? ReleaseNumber{*major, *minor} : ReleaseNumber{};
}

struct ReleaseEntry {
  ReleaseNumber first;
  VllmRelease release;
};

// From which release on each holds. Add your line here when a release changes what is usual.
constexpr ReleaseEntry releases[] = {
    {{0, 0}, {.engine = "vllm-0.19", .scheduler = "vllm_v0", .stack = "vllm-0.10", .async_scheduling = false}},
    // V1 is the default.
    {{0, 8}, {.engine = "vllm-0.19", .scheduler = "vllm", .stack = "vllm-0.10", .async_scheduling = false}},
    // Decodes run in whole graphs.
    {{0, 11}, {.engine = "vllm-0.19", .scheduler = "vllm", .stack = "vllm-0.11", .async_scheduling = false}},
    // It schedules ahead.
    {{0, 14}, {.engine = "vllm-0.19", .scheduler = "vllm", .stack = "vllm-0.14", .async_scheduling = true}},
    // Norms run inside all-reduces.
    {{0, 17}, {.engine = "vllm-0.19", .scheduler = "vllm", .stack = "vllm", .async_scheduling = true}},
    // CUDA graphs are set aside before the KV cache.
    {{0, 21}, {.engine = "vllm", .scheduler = "vllm", .stack = "vllm", .async_scheduling = true}},
};

}  // namespace

VllmRelease vllm_release(std::string_view text) {
  const ReleaseNumber version = release_number_from(text);
  VllmRelease newest = releases[0].release;
  for (const ReleaseEntry& entry : releases) {
    if (entry.first <= version) newest = entry.release;
  }
  return newest;
}

}  // namespace foretoken
