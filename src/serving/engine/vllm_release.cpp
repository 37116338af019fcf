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

constexpr ReleaseNumber first_v1{0, 8};                 // whose V1 engine is the default
constexpr ReleaseNumber first_async{0, 14};             // that schedules ahead by default
constexpr ReleaseNumber first_fused_norms{0, 17};       // that runs norms inside all-reduces
constexpr ReleaseNumber first_graphs_in_budget{0, 21};  // that sets CUDA graphs aside before the KV cache

}  // namespace

VllmRelease vllm_release(std::string_view text) {
  const ReleaseNumber version = release_number_from(text);
  return {.engine = version < first_graphs_in_budget ? "vllm-0.19" : "vllm",
          .scheduler = version < first_v1 ? "vllm_v0" : "vllm",
          .stack = version < ReleaseNumber{0, 11} ? "vllm-0.10"
                   : version < first_async        ? "vllm-0.11"
                   : version < first_fused_norms  ? "vllm-0.14"
                                                  : "vllm",
          .async_scheduling = version >= first_async};
}

}  // namespace foretoken
