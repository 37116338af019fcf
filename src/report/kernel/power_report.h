// What a kernel draws, and what a fit of a board's power reached, kernel by kernel.
#pragma once

#include <string>

#include "base/json.h"
#include "kernel/fit/power_fit.h"

namespace foretoken {

// On a cool board, and with `sustained` when it runs on and on.
std::string power_text(const KernelPower& power, const Device& device, bool sustained);
Json power_json(const KernelPower& power, bool sustained);

std::string power_fit_text(const PowerFit& fit);
Json power_fit_json(const PowerFit& fit);

}  // namespace foretoken
