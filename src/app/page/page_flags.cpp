#include "app/page/page_flags.h"

#include <algorithm>
#include <array>
#include <deque>
#include <iterator>
#include <string>
#include <vector>

#include "kernel/family.h"

namespace foretoken {
namespace {

// A day of traffic. Runs whose trace is wanted are shorter: run_request.cpp.
constexpr Range<int64_t> some_requests{.least = 1, .most = 500'000};
constexpr Range<int64_t> some_tokens{.least = 1, .most = 1'000'000};
constexpr Range<int64_t> some_replicas{.least = 1, .most = 256};
constexpr Range<int64_t> some_devices{.least = 0, .most = 131'072};

constexpr PageFlag step_flags[] = {
    {"model", PageFlagKind::model},
    {"device", PageFlagKind::device},
    {"quantization"},
    {"kv_cache_dtype"},
    {"phase"},
    {"batch"},
    {"input_len"},
    {"context_len"},
    {"prompts"},
    {"routing"},
    {"tensor_parallel_size"},
    {"pipeline_parallel_size"},
    {"data_parallel_size"},
    {"expert_parallel_size"},
    {"context_parallel_size"},
    {"enable_expert_parallel"},
    {"sequence_parallel"},
    {"stack", PageFlagKind::stack},
    {"dispatch"},
    {"host_factor"},
    {"tier"},
    {"memory"},
    {"engine"},
    {"gpu_memory_utilization"},
    {"max_num_batched_tokens"},
    {"max_num_seqs"},
    {"max_model_len"},
    {"sustained"},
};

constexpr PageFlag serve_flags[] = {
    {"model", PageFlagKind::model},
    {"device", PageFlagKind::device},
    {"quantization"},
    {"kv_cache_dtype"},
    {"tensor_parallel_size"},
    {"pipeline_parallel_size"},
    {"data_parallel_size"},
    {"enable_expert_parallel"},
    {.name = "num_prompts", .allowed = some_requests},
    {"request_rate"},
    {"burstiness"},
    {"max_concurrency"},
    {"seed"},
    {"dataset_name"},
    {.name = "random_input_len", .allowed = some_tokens},
    {.name = "random_output_len", .allowed = some_tokens},
    {"random_range_ratio"},
    {"lognormal_sigma"},
    {"random_prefix_len"},
    {"engine"},
    {"scheduler"},
    {"gpu_memory_utilization"},
    {"max_num_batched_tokens"},
    {"max_num_seqs"},
    {"max_model_len"},
    {"enable_chunked_prefill"},
    {"enable_prefix_caching"},
    {"memory"},
    {.name = "replicas", .allowed = some_replicas},
    {"router"},
    {"energy"},
    {"goodput"},
    {"percentile_metrics"},
    {"metric_percentiles"},
    {"intervals"},
    {"breakdown"},
    {"trace_in_json"},
    {"ramp_up_strategy"},
    {"daily_swing"},
    {"daily_period"},
    {"autoscaler"},
    {"min_replicas"},
    {.name = "max_replicas", .allowed = {.least = 0, .most = 256}},
    {"scale_target"},
    {"scale_period"},
    {"cold_start"},
};

constexpr PageFlag train_flags[] = {
    {"model", PageFlagKind::model},
    {"cluster", PageFlagKind::cluster},
    {"device", PageFlagKind::device},
    {.name = "devices", .allowed = some_devices},
    {"nodes"},
    {"stack", PageFlagKind::job_stack},
    {"seq_length"},
    {"precision"},
    {"micro_batch_size"},
    {"global_batch_size"},
    {"tensor_parallel_size"},
    {"pipeline_parallel_size"},
    {"context_parallel_size"},
    {"expert_parallel_size"},
    {"sequence_parallel"},
    {"sharding"},
    {"recompute_granularity"},
    {"lora_rank"},
    {"lora_target"},
    {"base_weights"},
    {"optimizer"},
    {"train_tokens"},
};

constexpr PageFlag plan_train_flags[] = {
    {"model", PageFlagKind::model},
    {"cluster", PageFlagKind::cluster},
    {"device", PageFlagKind::device},
    {.name = "devices", .allowed = {.least = 0, .most = 16'384}},
    {"stack", PageFlagKind::job_stack},
    {"seq_length"},
    {"precision"},
    {"global_batch_size"},
    {"lora_rank"},
    {"lora_target"},
    {"base_weights"},
    {"optimizer"},
};

constexpr PageFlag collective_flags[] = {
    {"cluster", PageFlagKind::cluster},
    {.name = "nodes", .allowed = {.least = 0, .most = 4096}},
    {"op"},
    {"bytes"},
    {"sizes"},
    {.name = "ranks", .allowed = some_devices},
    {"stride"},
    {"algorithm"},
    {"protocol"},
};

constexpr PageFlag plan_serve_flags[] = {
    {"model", PageFlagKind::model},
    {"hardware", PageFlagKind::device_count},
    {"slo"},
    {"price"},
    {"budget_usd_hour"},
    {"objective"},
    {"request_rate"},
    {.name = "num_prompts", .allowed = {.least = 1, .most = 20'000}},
    {"burstiness"},
    {"seed"},
    {"dataset_name"},
    {.name = "random_input_len", .allowed = some_tokens},
    {.name = "random_output_len", .allowed = some_tokens},
    {"random_range_ratio"},
    {"lognormal_sigma"},
    {"engines"},
    {"quantizations"},
    {"kv_cache_dtype"},
    {"disaggregate"},
    {"max_num_seqs"},
    {"max_num_batched_tokens"},
    {"gpu_memory_utilization"},
    {"max_model_len"},
    {.name = "most_simulated", .allowed = {.least = 1, .most = 500}},
    {.name = "finalists", .allowed = {.least = 1, .most = 50}},
};

constexpr PageFlag suite_flags[] = {{"only"}, {"list"}};

constexpr PageFlag accel_flags[] = {
    {"arch", PageFlagKind::design},
    {"gemm"},
    {"conv"},
    {"network", PageFlagKind::layers},
    {"model", PageFlagKind::model},
    {"phase"},
    {"batch"},
    {"input_len"},
    {"context_len"},
    {"objective"},
    {.name = "tries", .allowed = {.least = 1, .most = 300'000}},
    {.name = "time_limit", .allowed = {.least = 1, .most = 120}},
    {"seed"},
};

constexpr PageFlag edge_flags[] = {
    {"onnx", PageFlagKind::graph_upload},
    {"bind"},
    {"model", PageFlagKind::model},
    {"quantization"},
    {"phase"},
    {"batch"},
    {"input_len"},
    {"context_len"},
    {"batch_sizes"},
    {"device", PageFlagKind::edge_device},
    {"fusion", PageFlagKind::fusion},
    {"threads"},
};

// The deployment that served a measured run.
constexpr PageFlag measured_deployment_flags[] = {
    {"model", PageFlagKind::model},
    {"device", PageFlagKind::device},
    {"quantization"},
    {"kv_cache_dtype"},
    {"tensor_parallel_size"},
    {"pipeline_parallel_size"},
    {"data_parallel_size"},
    {"engine"},
    {"max_model_len"},
};

template <size_t count>
constexpr auto and_its_deployment(const PageFlag (&flags)[count]) {
  std::array<PageFlag, count + std::size(measured_deployment_flags)> all{};
  std::copy(std::begin(measured_deployment_flags), std::end(measured_deployment_flags),
            std::copy(std::begin(flags), std::end(flags), all.begin()));
  return all;
}

constexpr auto replay_run_flags = and_its_deployment({{"run", PageFlagKind::run_upload}});
constexpr auto calibrate_flags = and_its_deployment({{"runs", PageFlagKind::run_upload}, {"name"}});

// Add a command here. A test reads the help of each flag and fails on one that speaks of files.
constexpr PageCommand allowed_commands[] = {{"step", step_flags},
                                            {"serve", serve_flags},
                                            {"plan serve", plan_serve_flags},
                                            {"train", train_flags},
                                            {"plan train", plan_train_flags},
                                            {"collective", collective_flags},
                                            {"suite", suite_flags},
                                            {"accel", accel_flags, R"({"time_limit": 60})"},
                                            {"edge", edge_flags},
                                            {"replay-run", replay_run_flags},
                                            {"calibrate", calibrate_flags}};

// Of each kernel family, its own parameters.
class KernelCommands {
 public:
  KernelCommands() {
    for (const KernelFamily& family : kernel_families()) {
      std::vector<PageFlag>& flags = flags_.emplace_back();
      flags = {{"device", PageFlagKind::device}, {"tier"}, {"sustained"}};
      for (const KernelParameter& parameter : family.parameters) flags.push_back({parameter.name});
      commands_.push_back({names_.emplace_back("kernel " + family.name), flags});
    }
  }
  std::span<const PageCommand> all() const { return commands_; }

 private:
  std::deque<std::string> names_;
  std::deque<std::vector<PageFlag>> flags_;
  std::vector<PageCommand> commands_;
};

}  // namespace

std::span<const PageCommand> page_commands() {
  static const KernelCommands kernels;
  static const std::vector<PageCommand> all = [] {
    std::vector<PageCommand> commands(std::begin(allowed_commands), std::end(allowed_commands));
    commands.insert(commands.end(), kernels.all().begin(), kernels.all().end());
    return commands;
  }();
  return all;
}

}  // namespace foretoken
