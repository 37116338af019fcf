// Published evaluations of mappings (Timeloop's): architecture, problem, energies, loop nest, and what came out.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "accelerator/architecture.h"
#include "accelerator/evaluator.h"
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

// The version that made the cases fetches a sliding tile's overlap again when unrelated loops ran in between.
constexpr EvaluationRules timeloop_3_0_3_rules{.halo_across_unrelated_loops = false,
                                               .idle_instances_rest = timeloop_rules.idle_instances_rest,
                                               .idle_parts_leak = timeloop_rules.idle_parts_leak};

// It also charges a multiplication in every cycle of every multiplier with work, where remainders leave none.
double timeloop_3_0_3_energy_pj(const Evaluation& evaluation, const Architecture& architecture);

// A file of cases; later ones may say "as first case" for what they share with it.
std::vector<LoopNestCase> read_loop_nest_cases(const JsonView& document);

}  // namespace foretoken
