// Operators of a step + a stack -> the kernels that are launched.
#pragma once

#include <string>
#include <vector>

#include "base/units.h"
#include "compose/stack.h"
#include "model/step.h"

namespace foretoken {

// Launches of one shape. Those of one operator follow each other; `call` is that operator's place in the list.
struct Launch {
  size_t call = 0;
  std::string name;
  std::string variant;
  KernelShape shape;
  int64_t count = 1;    // in the whole step
  Seconds host;         // of one launch
  Seconds host_before;  // of the operator itself, before its first kernel
  bool waits = false;   // the host waits for its end
};

// `operators` in the order of stage_operators(). InputError where a rule asks for a field that its operator lacks.
// A name in a rule is a field of its operator, else one of the nearest attention (heads, kv_heads, head_dim, kv_len).
std::vector<Launch> lower(const Stack& stack, const std::vector<Operator>& operators, const LoweredStep& step);

}  // namespace foretoken
