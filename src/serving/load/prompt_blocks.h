// What prompts of made-up load have in common, in the terms of Request::prefix_blocks.
#pragma once

#include <cstdint>

#include "serving/requests/request.h"

namespace foretoken {

// Numbers the blocks of the prompt that have no number yet, so that the same prompt sent again is found whole. The new
// numbers are this request's own: below zero, where neither traces nor made-up load have any.
void describe_whole_prompt(Request& request);

}  // namespace foretoken
