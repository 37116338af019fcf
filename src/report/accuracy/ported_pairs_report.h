// Kernels ported from one GPU's measurements to another's, for each two GPUs.
#pragma once

#include <span>
#include <string>

#include "base/json.h"
#include "kernel/ported_time.h"

namespace foretoken {

std::string ported_pairs_text(std::span<const PortedPair> pairs);
Json ported_pairs_json(std::span<const PortedPair> pairs);

}  // namespace foretoken
