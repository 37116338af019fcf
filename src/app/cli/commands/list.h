// One make_ function per command; each is defined in the file of its name.
#pragma once

#include "app/cli/grammar/command.h"

namespace foretoken {

std::unique_ptr<Command> make_accel();
std::unique_ptr<Command> make_adapt();
std::unique_ptr<Command> make_calibrate();
std::unique_ptr<Command> make_check();
std::unique_ptr<Command> make_check_run();
std::unique_ptr<Command> make_chip();
std::unique_ptr<Command> make_collective();
std::unique_ptr<Command> make_compare();
std::unique_ptr<Command> make_completions();
std::unique_ptr<Command> make_dataflow();
std::unique_ptr<Command> make_demo();
std::unique_ptr<Command> make_devices();
std::unique_ptr<Command> make_explain();
std::unique_ptr<Command> make_edge();
std::unique_ptr<Command> make_endpoint();
std::unique_ptr<Command> make_observe();
std::unique_ptr<Command> make_ui();
std::unique_ptr<Command> make_fit();
std::unique_ptr<Command> make_image();
std::unique_ptr<Command> make_import();
std::unique_ptr<Command> make_kernel();
std::unique_ptr<Command> make_man();
std::unique_ptr<Command> make_models();
std::unique_ptr<Command> make_pim();
std::unique_ptr<Command> make_plan();
std::unique_ptr<Command> make_port();
std::unique_ptr<Command> make_profile();
std::unique_ptr<Command> make_replay();
std::unique_ptr<Command> make_schedules();
std::unique_ptr<Command> make_replay_run();
std::unique_ptr<Command> make_rlhf();
std::unique_ptr<Command> make_schema();
std::unique_ptr<Command> make_serve();
std::unique_ptr<Command> make_speculate();
std::unique_ptr<Command> make_stacks();
std::unique_ptr<Command> make_step();
std::unique_ptr<Command> make_study();
std::unique_ptr<Command> make_suite();
std::unique_ptr<Command> make_bench();
std::unique_ptr<Command> make_systolic();
std::unique_ptr<Command> make_train();
std::unique_ptr<Command> make_validate();

}  // namespace foretoken
