// Published evaluations of mappings (Timeloop's): architecture, problem, energies, loop nest, and what came out.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "accelerator/architecture.h"
#include "accelerator/mapping.h"
#include "accelerator/problem.h"
#include "base/json.h"

namespace foretoken {

struct ExpectedTraffic {
  std::string level, tensor;
  double utilized_words = 0, instances = 0;
  double reads = 0, fills = 0, updates = 0;  // of one instance
  double energy_pj = 0;
};

struct LoopNestCase {
  std::string id;
  Architecture architecture;
  Problem problem;
  Mapping mapping;
  // Expected.
  double cycles = 0, operations = 0, energy_pj = 0;
  std::vector<ExpectedTraffic> traffic;
  std::map<std::string, double> replaced;  // figures a later version gives instead, by name
};

// A file of cases; later ones may say "as first case" for what they share with it.
std::vector<LoopNestCase> read_loop_nest_cases(const JsonView& document);

}  // namespace foretoken
