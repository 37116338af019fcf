// From what boards draw to what a run takes from the grid, costs and emits.
//
//   facility = (boards + host) / supply efficiency x PUE
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/estimate.h"
#include "hardware/node.h"
#include "serving/energy/energy_meter.h"
#include "serving/results/metrics.h"

namespace foretoken {

// Equal replicas, each of so many boards.
struct MeteredBoards {
  std::string device;
  int64_t replicas = 1, boards_each = 1;
  // Of one board:
  double idle_watts = 0;               // with a process alive and clocks up
  double limit_watts = 0;              // as it is set
  double host_watts = 0;               // of the node beside it: processors, memory, network, fans; always on
  std::optional<double> usd_per_hour;  // nothing = not known
  std::string price_source;            // who says so

  int64_t boards() const { return replicas * boards_each; }
};

struct FacilityRates {
  // 80 PLUS Titanium at half load, 230 V internal redundant (Clearesult, 80 PLUS certification levels).
  double supply_efficiency = 0.96;
  // Mean of data centres, 2023; 1.55 to 1.59 since 2020 (Uptime Institute, Global Data Center Survey). Large operators
  // state 1.1.
  double pue = 1.58;
  // World mean of 2024 with upstream emissions (Ember, Global Electricity Review 2025).
  double carbon_g_per_kwh = 473;
  double electricity_usd_per_kwh = 0;  // beyond the price of the boards: rent includes it
};

// W of a node beside each of its boards. A node of 8 H100 at full load drew 8.4 of its rated 10.2 kW at the wall (Latif
// et al. 2025, IEEE Access 13, arXiv 2412.08602); the same share of the rating is taken for others, and where a node
// has none, that node's watts over the limit of its boards. (Google states 0.43 W of host for each of its accelerators:
// Elsworth et al. 2025, arXiv 2508.15734.)
double host_watts_per_board(const Device& device, const std::optional<Node>& node, double supply_efficiency);

// One replica of one board, without a price.
MeteredBoards metered_boards(const Device& device, const std::optional<Node>& node, const PowerModel& power,
                             double supply_efficiency);

struct EnergyAccount {
  int64_t boards = 0;
  double limit_watts = 0;  // of all of them

  JoulesByStep steps_joules = {};  // of the boards, beyond idle; with the doubt about power alone
  Estimate idle_joules;            // what they draw anyway
  Estimate board_joules;           // both
  Estimate host_joules;
  Estimate facility_joules;
  std::vector<double> joules_of_replica;  // of its boards

  Estimate mean_board_watts;
  double peak_board_watts = 0;  // of a whole second; the mean where a run has none
  Estimate board_joules_per_output_token, facility_joules_per_output_token, facility_joules_per_request;
  Estimate kwh;                                     // of the facility
  Estimate carbon_g, carbon_g_per_thousand_tokens;  // tokens: in and out
  // Nothing where the price of a board is not known. A million tokens in and out together, or of output alone.
  std::optional<Estimate> usd, usd_per_million_tokens, usd_per_million_output_tokens;
};

// `duration_s`: of the run, with the doubt about its steps; 0 where no request ran, and then so is all else. Doubts
// about power and time are independent; those about host, facility and prices are not known and not counted.
EnergyAccount energy_account(const EnergyMeter& meter, const std::vector<MeteredBoards>& boards,
                             const FacilityRates& rates, const ServingMetrics& metrics, const Estimate& duration_s);

}  // namespace foretoken
