// The sizes that an engine captures as CUDA graphs, where its flags say so; or none.
#pragma once

#include <cstdint>

#include "compose/stack.h"

namespace foretoken {

// Sizes above `largest` tokens go; where the stack lists fewer, they go on in its last step. A stack without sizes
// stays as it is.
void capture_up_to(Stack& stack, int64_t largest);

// As with --enforce-eager: Python launches every kernel of every step.
void run_uncompiled(Stack& stack);

}  // namespace foretoken
