// What the files of several frameworks say alike, and what several frameworks cannot do.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "base/error.h"
#include "plan/training_launch.h"
#include "training/estimate/training_estimate.h"

namespace foretoken {

int64_t launched_nodes(const TrainingQuestion& question);
int64_t launched_devices_of_a_node(const TrainingQuestion& question);
// How often what is sharded exists: once among each shard_ranks of the ranks.
int64_t shard_copies(const TrainingPlan& plan);

// How PyTorch's context parallelism calls the exchange of keys and values.
std::string_view rotate_method(const TrainingPlan& plan);

// Frozen weights below adapters in fewer bits than the job multiplies in.
bool has_quantized_base(const TrainingQuestion& question);
// Adam whose moments take 8 bits each.
bool has_eight_bit_moments(const TrainingQuestion& question);
// Adam of weights in 16 bits without a copy in fp32.
bool has_weights_in_16_bits(const TrainingQuestion& question);

// Whether the job multiplies in bf16 alone, so that files which load weights in bf16 train them in it.
bool job_in_bf16(const TrainingQuestion& question);

// Why the framework cannot run the plan; empty = it can.
std::string without_adapters(const TrainingQuestion& question, std::string_view framework);
std::string without_pipeline(const TrainingQuestion& question, std::string_view framework);
std::string without_other_schedules(const TrainingPlan& plan, std::string_view framework);    // than Megatron's
std::string without_selection(const TrainingQuestion& question, std::string_view framework);  // all layers or none
// Context ranks that share out heads (all_to_all).
std::string without_exchange_of_heads(const TrainingPlan& plan, std::string_view framework);
std::string without_low_precision(const TrainingQuestion& question, std::string_view framework);
std::string without_quantized_base(const TrainingQuestion& question, std::string_view framework);
std::string without_other_offloads(const TrainingQuestion& question, std::string_view framework,
                                   const HostMemoryUse& host_memory);
std::string without_other_optimizers(const TrainingQuestion& question, std::string_view framework);  // than Adam
// Other than Adam with fp32 master weights, its moments in fp32 or in 8 bits.
std::string without_other_moments(const TrainingQuestion& question, std::string_view framework);
// Of files that load the weights in bf16 and train those: other than Adam of such weights, or with moments in 8 bits.
std::string without_fp32_weights(const TrainingQuestion& question, std::string_view framework);
// The first that is not empty.
std::string first_reason(std::initializer_list<std::string> reasons);

// Of Megatron-Core: an optimizer in host memory must be the precision-aware one, and that must be sharded
// (megatron/training/arguments.py).
inline constexpr HostMemoryUse megatron_host_memory{.optimizer = true, .parts_of_optimizer = true};
std::string unsharded_offload(const TrainingQuestion& question);
// The plan, sharded in name where a single replica's optimizer is in host memory.
TrainingPlan plan_for_megatron(const TrainingQuestion& question);

InputError no_format_like(std::string_view recipe, std::string_view framework);

}  // namespace foretoken
