// Software stacks for people and for programs.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "compose/stack.h"

namespace foretoken {

std::string stack_list_text(const std::vector<Stack>& stacks);
Json stack_list_json(const std::vector<Stack>& stacks);

std::string stack_text(const Stack& stack);
Json stack_json(const Stack& stack);

}  // namespace foretoken
