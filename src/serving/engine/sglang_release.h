// What older releases of SGLang do otherwise.
#pragma once

#include <string_view>

namespace foretoken {

// The stack of a release ("0.5.9"; what is no number is the newest), with drafts or without. Before 0.5.11 the host's
// part of steps with drafts ran between those of the device.
std::string_view sglang_stack(std::string_view version, bool drafts);

}  // namespace foretoken
