// A generation that calibrations have never seen, by both tiers: from its spec sheets, and with a sweep.
#pragma once

#include <string>

#include "base/json.h"
#include "base/validation.h"

namespace foretoken {

struct WithheldValidation {
  std::string layer, generation;
  Validation cross, measured;  // of the same rows
};

std::string withheld_text(const WithheldValidation& table);
Json withheld_json(const WithheldValidation& table);

}  // namespace foretoken
