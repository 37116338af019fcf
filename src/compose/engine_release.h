// Engines by release: "vllm-0.12.1" asks for vLLM as that release behaves.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "compose/expert_layout.h"

namespace foretoken {

struct ReleaseNumber {
  int64_t major = 0, minor = 0, patch = 0;
  auto operator<=>(const ReleaseNumber&) const = default;
};

// "0.10.2", "0.13.0rc1", "0.5.10.post1"; nothing where no such number begins the text ("nightly").
std::optional<ReleaseNumber> release_number_from(std::string_view text);

struct EngineRelease {
  std::string_view family;   // of EngineKind
  std::string_view version;  // as it was written, without a "v"
  ReleaseNumber number;
};

// Of a name such as "sglang-0.5.9", also "sglang-v0.5.9" and "sglang==0.5.9"; nothing where it is no family with a
// number behind it.
std::optional<EngineRelease> engine_release(std::string_view engine);

// Whether the name is a family that has releases: "sglang".
bool has_releases(std::string_view name);

// A regular expression (ECMA 262) of such names of these families, in lower case.
std::string release_pattern(std::span<const std::string> families);

// "sglang-0.5.9", however it was written.
std::string release_name(const EngineRelease& release);

// "SGLang", for sentences.
std::string_view family_title(std::string_view family);

// "SGLang 0.5.9", for sentences.
std::string release_title(const EngineRelease& release);

// What a release does where nobody says otherwise.
struct ReleaseBehavior {
  std::string_view family;     // of EngineKind
  ReleaseNumber first;         // from which on it holds, until the next one
  std::string_view kind;       // of engine_kinds(): how it divides memory
  std::string_view scheduler;  // of scheduler_kinds()
  std::string_view stack;      // that runs its steps
  std::string_view stack_with_drafts;
  bool schedules_ahead = true;  // the next step is scheduled while one runs
  // Of experts in MXFP4; null = they take what the checkpoint does.
  ExpertLayout (*expert_layout)(const Model& model, const Device& device) = nullptr;
};
std::span<const ReleaseBehavior> release_behaviors();

// Of a family that has releases. What is not the number of a release ("nightly", nothing) is newer than all.
const ReleaseBehavior& release_behavior(std::string_view family, std::string_view version);

// SGLang with moe_a2a_backend megamoe: tokens are exchanged inside the kernel of the experts.
inline constexpr std::string_view sglang_mega_moe_stack = "sglang-megamoe";

// What to ask for where a run says its engine and version: "vllm-0.10.2". The newest kind where the version is no
// number.
std::string engine_of_version(std::string_view family, std::string_view version);

// A sentence for users where the release is newer or older than all runs that stacks were fitted to; else empty.
std::string unfitted_release_note(std::string_view engine);

}  // namespace foretoken
