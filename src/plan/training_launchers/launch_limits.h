// What the files of several frameworks say alike, and what several frameworks cannot do.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "base/error.h"
#include "training/estimate/training_estimate.h"

namespace foretoken {

int64_t launched_nodes(const TrainingQuestion& question);
int64_t launched_devices_of_a_node(const TrainingQuestion& question);
// How often what is sharded exists: once among each shard_ranks of the ranks.
int64_t shard_copies(const TrainingPlan& plan);

// Why the framework cannot run the plan; empty = it can.
std::string without_adapters(const TrainingQuestion& question, std::string_view framework);
std::string without_pipeline(const TrainingQuestion& question, std::string_view framework);
std::string without_other_schedules(const TrainingPlan& plan, std::string_view framework);    // than Megatron's
std::string without_selection(const TrainingQuestion& question, std::string_view framework);  // all layers or none
std::string without_low_precision(const TrainingQuestion& question, std::string_view framework);
// The first that is not empty.
std::string first_reason(std::initializer_list<std::string> reasons);

InputError no_format_like(std::string_view recipe, std::string_view framework);

}  // namespace foretoken
