// A training plan as Megatron-LM's command line says it.
#pragma once

#include <string>
#include <string_view>

#include "compose/training_lowering.h"
#include "training/training_plan.h"

namespace foretoken {

// One line. Schedules that Megatron-LM does not have are left out; --sharding of gradients and parameters is that of
// Megatron-FSDP. The dispatcher of published runs is no name there: tokens go to their experts by all-to-all.
std::string megatron_flags(const TrainingPlan& plan);
// With the dropout of the job, which Megatron-LM would set to 0.1 if it were left out.
std::string megatron_flags(const TrainingPlan& plan, const Dropout& dropout);

// What --cp-comm-type calls it.
std::string_view megatron_exchange_name(ContextExchange exchange);

// A job knows whether it drops, and not how much.
std::string_view dropout_rate(bool drops);

}  // namespace foretoken
