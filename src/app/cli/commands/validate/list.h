// What can be compared with measurements: one make_ function per layer, each defined in the file of its name.
#pragma once

#include "app/cli/grammar/command.h"

namespace foretoken {

std::unique_ptr<Command> make_validate_kernels();
std::unique_ptr<Command> make_validate_steps();
std::unique_ptr<Command> make_validate_collectives();
std::unique_ptr<Command> make_validate_training();
std::unique_ptr<Command> make_validate_memory();
std::unique_ptr<Command> make_validate_images();
std::unique_ptr<Command> make_validate_moe_layer();
std::unique_ptr<Command> make_validate_schedules();
std::unique_ptr<Command> make_validate_serving();
std::unique_ptr<Command> make_validate_calibration();
std::unique_ptr<Command> make_validate_accelerator();
std::unique_ptr<Command> make_validate_edge();

}  // namespace foretoken
