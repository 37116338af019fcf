// One kernel prediction, explained.
#pragma once

#include <span>
#include <string>
#include <utility>

#include "base/json.h"
#include "kernel/family.h"
#include "kernel/kernel.h"
#include "report/json_parts.h"

namespace foretoken {

using GivenParameters = std::span<const std::pair<std::string, std::string>>;

std::string kernel_text(const KernelFamily& family, GivenParameters given, const KernelEstimate& estimate,
                        const Device& device);
Json kernel_json(const KernelFamily& family, GivenParameters given, const KernelEstimate& estimate,
                 const Device& device);

}  // namespace foretoken
