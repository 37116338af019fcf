// The "does it port" map: how efficient a family is, against how much GPUs differ in it.
#pragma once

#include <span>
#include <string>

#include "base/json.h"
#include "kernel/port_map.h"

namespace foretoken {

// Up to this spread constants learned on other GPUs serve; beyond the second only a sweep does.
inline constexpr double spread_that_ports = 0.15, spread_that_needs_a_sweep = 0.35;

std::string port_map_text(std::span<const FamilyPortability> families);
std::string port_map_svg(std::span<const FamilyPortability> families);  // families on one device only are left out
Json port_map_json(std::span<const FamilyPortability> families);

}  // namespace foretoken
