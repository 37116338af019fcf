// A generation that calibrations have never seen, by both tiers: from its spec sheets, and with a sweep.
#pragma once

#include <string>

#include "base/json.h"
#include "validate/withheld/withheld_calibrations.h"

namespace foretoken {

std::string withheld_text(const WithheldValidation& table);
Json withheld_json(const WithheldValidation& table);

}  // namespace foretoken
