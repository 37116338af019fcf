// Engines by release: "vllm-0.12.1" asks for vLLM as that release behaves.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace foretoken {

struct ReleaseNumber {
  int64_t major = 0, minor = 0;
  auto operator<=>(const ReleaseNumber&) const = default;
};

// "0.10.2", "0.13.0rc1"; nothing where no such number begins the text ("nightly").
std::optional<ReleaseNumber> release_number_from(std::string_view text);

// The first vLLM that sets CUDA graphs aside before the KV cache.
inline constexpr ReleaseNumber first_vllm_with_graphs_in_budget{.major = 0, .minor = 21};

struct EngineRelease {
  std::string_view family;   // of EngineKind
  std::string_view version;  // as it was written, without a "v"
  ReleaseNumber number;
};

// Of a name such as "sglang-0.5.9", also "sglang-v0.5.9" and "sglang==0.5.9"; nothing where it is no family with a
// number behind it.
std::optional<EngineRelease> engine_release(std::string_view engine);

// "sglang-0.5.9", however it was written.
std::string release_name(const EngineRelease& release);

// A sentence for users where the release is newer or older than all that stacks and kernels were fitted on; else empty.
std::string unfitted_release_note(std::string_view engine);

}  // namespace foretoken
