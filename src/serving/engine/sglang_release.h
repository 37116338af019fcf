// Which stack stands for SGLang, by its release and flags.
#pragma once

#include <string_view>

namespace foretoken {

// The stack of a release ("0.5.9"; what is no number is the newest), with drafts or without. Before 0.5.11 the host's
// part of steps with drafts ran between those of the device.
std::string_view sglang_stack(std::string_view version, bool drafts);

// With moe_a2a_backend megamoe: tokens are exchanged inside the kernel of the experts.
inline constexpr std::string_view sglang_mega_moe_stack = "sglang-megamoe";

}  // namespace foretoken
