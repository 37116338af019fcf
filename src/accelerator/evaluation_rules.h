// Where we count otherwise than Timeloop.
#pragma once

namespace foretoken {

struct EvaluationRules {
  // A tile that slides keeps its overlap with the one before also when loops that do not touch the tensor ran in
  // between. Timeloop 3.0.3 fetches it again, its later versions do not.
  bool halo_across_unrelated_loops = true;
  // Instances without work, where a dimension leaves a remainder, read nothing. In Timeloop they read in step.
  bool idle_instances_rest = true;
  // Multipliers, and instances of a level that a mapping leaves without work, leak as well. Timeloop counts neither.
  bool idle_parts_leak = true;
};

// The rules of Timeloop, for comparisons with it.
constexpr EvaluationRules timeloop_rules{.idle_instances_rest = false, .idle_parts_leak = false};

}  // namespace foretoken
