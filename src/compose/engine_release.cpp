#include "compose/engine_release.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"

namespace foretoken {
namespace {

struct FittedReleases {
  std::string_view family, title;
  ReleaseNumber oldest, newest;
  std::string_view what;
};

// Kernels: data/kernels/calibrations; runs: data/stacks.
constexpr FittedReleases fitted[] = {
    {"vllm", "vLLM", {0, 10}, {0, 24}, "kernels of vLLM 0.24 and runs of 0.10 to 0.19"},
    {"sglang", "SGLang", {0, 5}, {0, 5}, "runs of SGLang 0.5"},
    {"trtllm", "TensorRT-LLM", {1, 0}, {1, 3}, "kernels of TensorRT-LLM 1.3 and runs of 1.0 to 1.3"},
};

// Of "-0.12", "-v0.12" (as tags are called) and "==0.12" (as pip wants it).
std::string_view version_after(std::string_view text) {
  if (text.starts_with("==")) return text.substr(2);
  if (!text.starts_with('-')) return {};
  const bool is_tag = text.size() > 1 && (text[1] == 'v' || text[1] == 'V');
  return text.substr(is_tag ? 2 : 1);
}

}  // namespace

std::optional<ReleaseNumber> release_number_from(std::string_view text) {
  const size_t dot = text.find('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const size_t end = std::min(text.find_first_not_of("0123456789", dot + 1), text.size());
  const auto major = parse_integer(text.substr(0, dot)), minor = parse_integer(text.substr(dot + 1, end - dot - 1));
  if (!major || !minor || *major < 0 || *minor < 0) return std::nullopt;
  return ReleaseNumber{*major, *minor};
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

std::string unfitted_release_note(std::string_view engine) {
  const std::optional<EngineRelease> release = engine_release(engine);
  if (!release) return {};
  for (const FittedReleases& known : fitted) {
    if (known.family != release->family) continue;
    if (release->number >= known.oldest && release->number <= known.newest) return {};
    return fmt::format(
        "{} {} is {} than the releases that foretoken was fitted to ({}). Its kernels and host costs may differ: "
        "compare with a measured run, or calibrate with one.",
        known.title, release->version, release->number > known.newest ? "newer" : "older", known.what);
  }
  return {};
}

}  // namespace foretoken
