// Accelergy's results: energy reference tables (ERT) and area reference tables (ART), applied to an architecture.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "accelerator/architecture.h"
#include "base/json.h"

namespace foretoken {

struct AccelergyTable {
  std::string component;  // without the path before it and its range: system.chip.PE[0..167].mac -> mac
  std::string source;
  int line = 0;
  std::map<std::string, double> actions;  // picojoules; of several entries for one action the most expensive
};

// The list of v0.3 and v0.4 and the nested maps of v0.2.
std::vector<AccelergyTable> read_energy_tables(const JsonView& ert);
std::map<std::string, double> read_area_tables(const JsonView& art);  // component -> um2 of one instance

// Every storage level needs read and write, the compute level needs compute (or mac, mac_random); InputError names the
// level and the action that is missing, so that no energy is ever a default. Partial sums cost what a write costs where
// the table has no update; such readings of the table are returned, one sentence each.
std::vector<std::string> apply_energy_tables(std::span<const AccelergyTable> tables, Architecture& architecture);
// Levels without a table keep their area; returns one sentence for each.
std::vector<std::string> apply_area_tables(const std::map<std::string, double>& areas, Architecture& architecture);

}  // namespace foretoken
