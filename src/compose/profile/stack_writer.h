// Profiled steps -> a stack file: which kernels an operator is, and what launching them costs the host.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "compose/profile/trace.h"
#include "compose/stack.h"
#include "kernel/kernel.h"

namespace foretoken {

struct StackImport {
  std::string name;
  std::string extends;               // a stack whose rules stand behind these; empty = none
  std::optional<Dispatch> dispatch;  // nothing = graph where the trace has one, else eager
  // Only what launches cost and the device's gaps, of any trace; kernels and rules are those of the stack that it
  // extends.
  bool costs_only = false;
  // Of the device that was profiled: long elementwise kernels that took another time than it says get more or fewer
  // elements, in proportion. Null = sizes as they are.
  const KernelPredictor* predictor = nullptr;
};

struct ImportedStack {
  Json file;                       // as parse_stack() reads it
  std::vector<std::string> notes;  // what was found, and what could not be told
};

// One step of each phase (prefill, decode, train); with one step only, its rules hold for every phase.
// InputError when two steps are of the same phase, or a step has no layer that can be read (find_layer()).
ImportedStack stack_from_profiles(std::span<const ProfiledStep> steps, const StackImport& request);

}  // namespace foretoken
