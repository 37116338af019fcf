#include "compose/engine_release.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"

namespace foretoken {
namespace {

struct FittedReleases {
  std::string_view family, title;
  ReleaseNumber oldest, newest;  // of the runs; every patch of the newest where it names none
  std::string_view what;
};

// Runs: `software` of data/stacks; kernels: data/kernels/calibrations.
constexpr FittedReleases fitted[] = {
    {"vllm", "vLLM", {0, 6}, {0, 19}, "vLLM 0.6.0 and 0.10 to 0.19, with kernels of 0.24"},
    {"sglang", "SGLang", {0, 5}, {0, 5, 12}, "SGLang 0.5.1 to 0.5.12"},
    {"trtllm", "TensorRT-LLM", {1, 0}, {1, 3}, "TensorRT-LLM 1.0 to 1.3, with kernels of 1.3"},
};

bool is_newer(const ReleaseNumber& release, const FittedReleases& known) {
  const bool any_patch = known.newest.patch == 0;
  return (any_patch ? ReleaseNumber{release.major, release.minor} : release) > known.newest;
}

// Lines of a family stand together, the oldest first. Add yours where a release changes what is usual.
constexpr ReleaseBehavior release_table[] = {
    {.family = "vllm",
     .first = {0, 0},
     .kind = "vllm-0.7",
     .scheduler = "vllm_v0",
     .stack = "vllm-0.6",
     .stack_with_drafts = "vllm-0.6",
     .schedules_ahead = false},
    // V1 is the default.
    {.family = "vllm",
     .first = {0, 8},
     .kind = "vllm-0.19",
     .scheduler = "vllm",
     .stack = "vllm-0.10",
     .stack_with_drafts = "vllm-0.10",
     .schedules_ahead = false,
     .expert_layout = vllm_experts_before_012},
    // Decodes run in whole graphs.
    {.family = "vllm",
     .first = {0, 11},
     .kind = "vllm-0.19",
     .scheduler = "vllm",
     .stack = "vllm-0.11",
     .stack_with_drafts = "vllm-0.11",
     .schedules_ahead = false,
     .expert_layout = vllm_experts_before_012},
    // Its wheels bring Triton's kernels for experts in MXFP4.
    {.family = "vllm",
     .first = {0, 12},
     .kind = "vllm-0.19",
     .scheduler = "vllm",
     .stack = "vllm-0.11",
     .stack_with_drafts = "vllm-0.11",
     .schedules_ahead = false,
     .expert_layout = vllm_experts_before_025},
    // It schedules ahead.
    {.family = "vllm",
     .first = {0, 14},
     .kind = "vllm-0.19",
     .scheduler = "vllm",
     .stack = "vllm-0.14",
     .stack_with_drafts = "vllm-0.14",
     .expert_layout = vllm_experts_before_025},
    // Norms run inside all-reduces.
    {.family = "vllm",
     .first = {0, 17},
     .kind = "vllm-0.19",
     .scheduler = "vllm",
     .stack = "vllm",
     .stack_with_drafts = "vllm",
     .expert_layout = vllm_experts_before_025},
    // CUDA graphs are set aside before the KV cache.
    {.family = "vllm",
     .first = {0, 21},
     .kind = "vllm",
     .scheduler = "vllm",
     .stack = "vllm",
     .stack_with_drafts = "vllm",
     .expert_layout = vllm_experts_before_025},
    // Scales of experts that were copied are freed.
    {.family = "vllm",
     .first = {0, 25},
     .kind = "vllm",
     .scheduler = "vllm",
     .stack = "vllm",
     .stack_with_drafts = "vllm",
     .expert_layout = vllm_experts},
    {.family = "sglang",
     .first = {0, 0},
     .kind = "sglang",
     .scheduler = "sglang",
     .stack = "sglang",
     .stack_with_drafts = "sglang-0.5.10"},
    // "Use spec v2 by default", 2026-04-29 (github.com/sgl-project/sglang/pull/21062): the host's part of steps with
    // drafts no longer runs between those of the device.
    {.family = "sglang",
     .first = {0, 5, 11},
     .kind = "sglang",
     .scheduler = "sglang",
     .stack = "sglang",
     .stack_with_drafts = "sglang"},
    {.family = "trtllm",
     .first = {0, 0},
     .kind = "trtllm",
     .scheduler = "trtllm",
     .stack = "trtllm-1.1",
     .stack_with_drafts = "trtllm-1.1"},
    // The host's part of a step runs beside the device.
    {.family = "trtllm",
     .first = {1, 2},
     .kind = "trtllm",
     .scheduler = "trtllm",
     .stack = "trtllm",
     .stack_with_drafts = "trtllm"},
};

// Of "-0.12", "-v0.12" (as tags are called) and "==0.12" (as pip wants it).
std::string_view version_after(std::string_view text) {
  if (text.starts_with("==")) return text.substr(2);
  if (!text.starts_with('-')) return {};
  const bool is_tag = text.size() > 1 && (text[1] == 'v' || text[1] == 'V');
  return text.substr(is_tag ? 2 : 1);
}

// Null: it has none.
const FittedReleases* releases_of(std::string_view family) {
  const auto* const known = std::find_if(std::begin(fitted), std::end(fitted),
                                         [&](const FittedReleases& one) { return one.family == family; });
  return known == std::end(fitted) ? nullptr : known;
}

}  // namespace

// What version_after and release_number_from read.
std::string release_pattern(std::span<const std::string> families) {
  return fmt::format("^({})(==|-[vV]?)[0-9]+[.][0-9].*$", fmt::join(families, "|"));
}

bool has_releases(std::string_view name) {
  return releases_of(name) != nullptr;
}

std::optional<ReleaseNumber> release_number_from(std::string_view text) {
  constexpr std::string_view digits = "0123456789";
  const size_t dot = text.find('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const size_t end = std::min(text.find_first_not_of(digits, dot + 1), text.size());
  const auto major = parse_integer(text.substr(0, dot)), minor = parse_integer(text.substr(dot + 1, end - dot - 1));
  if (!major || !minor || *major < 0 || *minor < 0) return std::nullopt;
  int64_t patch = 0;
  if (end < text.size() && text[end] == '.') {
    const std::string_view rest = text.substr(end + 1);
    patch = parse_integer(rest.substr(0, rest.find_first_not_of(digits))).value_or(0);
  }
  return ReleaseNumber{*major, *minor, patch};
}

std::span<const ReleaseBehavior> release_behaviors() {
  return release_table;
}

const ReleaseBehavior& release_behavior(std::string_view family, std::string_view version) {
  if (version.starts_with('v')) version.remove_prefix(1);
  const std::optional<ReleaseNumber> number = release_number_from(version);
  const ReleaseBehavior* newest = nullptr;
  for (const ReleaseBehavior& one : release_table) {
    if (one.family == family && (newest == nullptr || !number || one.first <= *number)) newest = &one;
  }
  ensure(newest != nullptr, "families of engines with releases have a line for their oldest ones");
  return *newest;
}

std::optional<EngineRelease> engine_release(std::string_view engine) {
  for (const FittedReleases& known : fitted) {
    const size_t length = known.family.size();
    if (!equal_ignoring_case(engine.substr(0, length), known.family)) continue;
    const std::string_view version = version_after(engine.substr(length));
    const std::optional<ReleaseNumber> number = release_number_from(version);
    if (number) return EngineRelease{.family = known.family, .version = version, .number = *number};
  }
  return std::nullopt;
}

std::string release_name(const EngineRelease& release) {
  return fmt::format("{}-{}", release.family, release.version);
}

std::string engine_of_version(std::string_view family, std::string_view version) {
  std::string engine = fmt::format("{}-{}", family, version);
  return engine_release(engine) ? std::move(engine) : std::string(release_behavior(family, version).kind);
}

std::string_view family_title(std::string_view family) {
  const FittedReleases* const known = releases_of(family);
  ensure(known != nullptr, "families of engines have a line of releases that were fitted");
  return known->title;
}

std::string release_title(const EngineRelease& release) {
  return fmt::format("{} {}", family_title(release.family), release.version);
}

std::string unfitted_release_note(std::string_view engine) {
  const std::optional<EngineRelease> release = engine_release(engine);
  if (!release) return {};
  for (const FittedReleases& known : fitted) {
    if (known.family != release->family) continue;
    const bool newer = is_newer(release->number, known);
    if (!newer && release->number >= known.oldest) return {};
    return fmt::format(
        "{} {} is {} than the runs that foretoken was fitted to ({}). Its kernels and host costs may differ: "
        "compare with a measured run, or calibrate with one.",
        known.title, release->version, newer ? "newer" : "older", known.what);
  }
  return {};
}

}  // namespace foretoken
