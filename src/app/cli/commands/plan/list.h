// One make_ function per kind of question that `plan` answers; each is defined in the file of its name.
#pragma once

#include "app/cli/grammar/command.h"

namespace foretoken {

std::unique_ptr<Command> make_plan_accel();
std::unique_ptr<Command> make_plan_hardware();
std::unique_ptr<Command> make_plan_serve();
std::unique_ptr<Command> make_plan_train();

}  // namespace foretoken
