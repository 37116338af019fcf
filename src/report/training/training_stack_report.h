// Training software for people and for programs.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "training/training_stack.h"

namespace foretoken {

std::string training_stack_list_text(const std::vector<TrainingStack>& stacks);
Json training_stack_list_json(const std::vector<TrainingStack>& stacks);

std::string training_stack_text(const TrainingStack& stack);
Json training_stack_json(const TrainingStack& stack);

}  // namespace foretoken
