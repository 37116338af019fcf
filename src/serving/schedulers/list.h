// One make_ function per kind; list.cpp names them.
#pragma once

#include <memory>

#include "serving/scheduler.h"

namespace foretoken {

std::unique_ptr<Scheduler> make_vllm(const SchedulerOptions& options);
std::unique_ptr<Scheduler> make_vllm_v0(const SchedulerOptions& options);
std::unique_ptr<Scheduler> make_vidur_vllm(const SchedulerOptions& options);
std::unique_ptr<Scheduler> make_sarathi(const SchedulerOptions& options);

}  // namespace foretoken
