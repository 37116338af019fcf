// One make_ function per kind; list.cpp names them.
#pragma once

#include <memory>

#include "serving/scheduling/scheduler.h"

namespace foretoken {

std::unique_ptr<Scheduler> make_vllm(const SchedulerOptions& options);
std::unique_ptr<Scheduler> make_vllm_v0(const SchedulerOptions& options);
std::unique_ptr<Scheduler> make_vidur_vllm(const SchedulerOptions& options);
std::unique_ptr<Scheduler> make_sarathi(const SchedulerOptions& options);
std::unique_ptr<Scheduler> make_orca(const SchedulerOptions& options);
std::unique_ptr<Scheduler> make_static_batch(const SchedulerOptions& options);
std::unique_ptr<Scheduler> make_sglang(const SchedulerOptions& options);
std::unique_ptr<Scheduler> make_tensorrt_llm(const SchedulerOptions& options);
std::unique_ptr<Scheduler> make_tensorrt_llm_max_utilization(const SchedulerOptions& options);
std::unique_ptr<Scheduler> make_tensorrt_llm_static(const SchedulerOptions& options);

// Ranks of one kind that take every step together (lock_step_ranks.cpp).
std::unique_ptr<Scheduler> make_lock_step_ranks(const SchedulerKind& kind, const SchedulerOptions& options);

}  // namespace foretoken
