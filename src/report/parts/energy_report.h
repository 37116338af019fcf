// What a serving run draws, costs and emits, for people and for programs.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "serving/energy/clock_search.h"
#include "serving/energy/energy_account.h"

namespace foretoken {

struct EnergyReport {
  std::vector<MeteredBoards> boards;
  FacilityRates rates;
  EnergyAccount account;
};

std::string energy_text(const EnergyReport& report);
Json energy_json(const EnergyReport& report);
// What was taken for facility, host and prices, a line for each.
std::string energy_assumptions(const EnergyReport& report);

// All clocks that were tried, and which one is best.
std::string clock_search_text(std::span<const ClockTrial> trials);
Json clock_search_json(std::span<const ClockTrial> trials);

}  // namespace foretoken
