// What the evaluator knows of an architecture and a problem before it sees a mapping: plain numbers in fixed arrays.
#pragma once

#include <array>
#include <cstdint>

#include "accelerator/architecture.h"
#include "accelerator/evaluation_rules.h"
#include "accelerator/problem.h"

namespace foretoken {

struct RankPlan {
  int terms = 0;
  std::array<int, max_rank_terms> dimension{};
  std::array<double, max_rank_terms> coefficient{};
  double full_extent = 1;
};

struct TensorPlan {
  bool written = false;
  double words = 1;
  bool sums_differ = false;  // partial sums are wider than what is complete, at some level
  // Words of a level that an element takes, and that a partial sum takes.
  std::array<double, max_accelerator_levels> element_words{}, sum_words{};
  uint32_t dimensions = 0;  // bits
  int ranks = 0;
  std::array<RankPlan, max_tensor_ranks> rank;
};

struct LevelPlan {
  bool stores = false;
  double held = 0;  // 0 = unlimited
  double fanout_x = 1, fanout_y = 1, instances = 1;
  double words_per_access = 1;
  double clusters = 1;                                    // memories that the instances are parts of
  double read_rate = 0, write_rate = 0, shared_rate = 0;  // 0 = no limit
  double access_cycles = 0, hop_cycles = 0;
  double operation_cycles = 1;
  bool single_buffer = true, multicast = true, reduces = true, links = false;
  MeshLinks mesh;
  DramRows rows;
  AccessEnergy energy;
};

struct EvaluationPlan {
  const Architecture* architecture = nullptr;
  const Problem* problem = nullptr;
  EvaluationRules rules;
  int levels = 0;  // above the compute level
  int tensors = 0;
  int dimensions = 0;
  double operations = 1;
  std::array<double, max_problem_dimensions> size{};
  std::array<LevelPlan, max_accelerator_levels> level;
  std::array<TensorPlan, max_problem_tensors> tensor;

  // Both must outlive the plan. InternalError when either has a fault.
  EvaluationPlan(const Architecture& of_architecture, const Problem& of_problem, EvaluationRules of_rules);
};

}  // namespace foretoken
