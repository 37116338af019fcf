#include "app/page/page_flags.h"

namespace foretoken {
namespace {

constexpr Range<int64_t> some_requests{.least = 1, .most = 20'000};
constexpr Range<int64_t> some_tokens{.least = 1, .most = 1'000'000};
constexpr Range<int64_t> some_replicas{.least = 1, .most = 256};

constexpr PageFlag step_flags[] = {
    {"model", PageFlagKind::model},
    {"device", PageFlagKind::device},
    {"quantization"},
    {"kv-cache-dtype"},
    {"phase"},
    {"batch"},
    {"input-len"},
    {"context-len"},
    {"prompts"},
    {"routing"},
    {"tensor-parallel-size"},
    {"pipeline-parallel-size"},
    {"data-parallel-size"},
    {"expert-parallel-size"},
    {"context-parallel-size"},
    {"enable-expert-parallel"},
    {"sequence-parallel"},
    {"stack", PageFlagKind::stack},
    {"dispatch"},
    {"host-factor"},
    {"tier"},
    {"memory"},
    {"engine"},
    {"gpu-memory-utilization"},
    {"max-num-batched-tokens"},
    {"max-num-seqs"},
    {"max-model-len"},
    {"sustained"},
};

constexpr PageFlag serve_flags[] = {
    {"model", PageFlagKind::model},
    {"device", PageFlagKind::device},
    {"quantization"},
    {"kv-cache-dtype"},
    {"tensor-parallel-size"},
    {"pipeline-parallel-size"},
    {"data-parallel-size"},
    {"enable-expert-parallel"},
    {.name = "num-prompts", .allowed = some_requests},
    {"request-rate"},
    {"burstiness"},
    {"max-concurrency"},
    {"seed"},
    {"dataset-name"},
    {.name = "random-input-len", .allowed = some_tokens},
    {.name = "random-output-len", .allowed = some_tokens},
    {"random-range-ratio"},
    {"lognormal-sigma"},
    {"random-prefix-len"},
    {"engine"},
    {"scheduler"},
    {"gpu-memory-utilization"},
    {"max-num-batched-tokens"},
    {"max-num-seqs"},
    {"max-model-len"},
    {"enable-chunked-prefill"},
    {"enable-prefix-caching"},
    {"memory"},
    {.name = "replicas", .allowed = some_replicas},
    {"router"},
    {"energy"},
    {"goodput"},
    {"percentile-metrics"},
    {"metric-percentiles"},
    {"intervals"},
    {"breakdown"},
    {"trace-in-json"},
};

constexpr PageFlag train_flags[] = {
    {"model", PageFlagKind::model},
    {"cluster", PageFlagKind::cluster},
    {"devices"},
    {"nodes"},
    {"stack", PageFlagKind::job_stack},
    {"seq-length"},
    {"precision"},
    {"micro-batch-size"},
    {"global-batch-size"},
    {"tensor-parallel-size"},
    {"pipeline-parallel-size"},
    {"context-parallel-size"},
    {"expert-parallel-size"},
    {"sequence-parallel"},
    {"sharding"},
    {"recompute-granularity"},
    {"train-tokens"},
};

constexpr PageFlag plan_serve_flags[] = {
    {"model", PageFlagKind::model},
    {"hardware", PageFlagKind::device_count},
    {"slo"},
    {"budget-usd-hour"},
    {"objective"},
    {"request-rate"},
    {.name = "num-prompts", .allowed = some_requests},
    {"burstiness"},
    {"seed"},
    {"dataset-name"},
    {.name = "random-input-len", .allowed = some_tokens},
    {.name = "random-output-len", .allowed = some_tokens},
    {"random-range-ratio"},
    {"lognormal-sigma"},
    {"engines"},
    {"quantizations"},
    {"kv-cache-dtype"},
    {"disaggregate"},
    {"max-model-len"},
    {.name = "most-simulated", .allowed = {.least = 1, .most = 500}},
    {.name = "finalists", .allowed = {.least = 1, .most = 50}},
};

constexpr PageFlag suite_flags[] = {{"only"}, {"list"}};

// Add a command here. A test reads the help of each flag and fails on one that speaks of files.
constexpr PageCommand allowed_commands[] = {{"step", step_flags},
                                            {"serve", serve_flags},
                                            {"plan serve", plan_serve_flags},
                                            {"train", train_flags},
                                            {"suite", suite_flags}};

}  // namespace

std::span<const PageCommand> page_commands() {
  return allowed_commands;
}

}  // namespace foretoken
