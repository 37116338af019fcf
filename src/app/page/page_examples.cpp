#include "app/page/page_examples.h"

namespace foretoken {
namespace {

// A test asks each of them.
constexpr PageExample examples[] = {
    {"Chat on 8 H100", R"({"command": "serve", "model": "Llama-3.1-70B", "device": "h100_sxm",
      "tensor_parallel_size": 4, "replicas": 2, "request_rate": 5, "num_prompts": 400, "random_input_len": 1024,
      "random_output_len": 256, "random_range_ratio": 0.5, "quantization": "fp8", "max_model_len": 8192,
      "goodput": ["ttft:500", "tpot:50"]})"},
    {"R1 on 8 H200", R"({"command": "serve", "model": "DeepSeek-R1", "device": "h200_sxm",
      "tensor_parallel_size": 8, "request_rate": 1, "num_prompts": 200, "random_input_len": 1024,
      "random_output_len": 1024, "random_range_ratio": 0.5, "max_model_len": 16384,
      "goodput": ["ttft:2000", "tpot:50"]})"},
    {"Train 70B on 256 H100", R"({"command": "train", "model": "Llama-3.1-70B", "cluster": "h100_ib_rail",
      "devices": 256, "seq_length": 4096, "micro_batch_size": 1, "global_batch_size": 512, "tensor_parallel_size": 8,
      "pipeline_parallel_size": 4, "sequence_parallel": true, "sharding": "optimizer", "train_tokens": 1e12})"},
    {"LoRA on 8 RTX 4090", R"({"command": "train", "model": "Llama-3.1-8B", "device": "rtx_4090", "devices": 8,
      "seq_length": 2048, "micro_batch_size": 1, "global_batch_size": 64, "lora_rank": 16, "base_weights": "nf4",
      "train_tokens": 1e8})"},
    {"My own chip", R"({"command": "step", "model": "Llama-3.1-8B", "device": "h100_sxm", "phase": "decode",
      "batch": 32, "context_len": 2048})"},
    {"Find a layout", R"({"command": "plan serve", "model": "Llama-3.1-8B", "hardware": "h100_sxm:2",
      "request_rate": 8, "num_prompts": 400, "random_input_len": 1024, "random_output_len": 256,
      "random_range_ratio": 0.5, "engines": "vllm", "slo": ["ttft<500ms@p99", "tpot<50ms@p99"]})"},
    {"All-reduce", R"({"command": "collective", "cluster": "h100_ib_rail", "op": "all_reduce",
      "sizes": "1K:4G"})"},
    {"One GEMM", R"({"command": "kernel gemm", "device": "h100_sxm", "dtype": "bf16", "m": "4096", "n": "8192",
      "k": "8192"})"},
    {"One day", R"({"command": "serve", "model": "Llama-3.1-8B", "device": "h100_sxm", "request_rate": 16,
      "num_prompts": 230400, "random_input_len": 1024, "random_output_len": 256, "random_range_ratio": 0.5,
      "max_model_len": 2048, "ramp_up_strategy": "daily", "daily_swing": 0.8, "daily_period": 14400,
      "autoscaler": "reactive", "max_replicas": 8})"},
    {"TPU v4", R"({"command": "accel", "arch": "tpu_v4", "network": "resnet50"})"},
};

}  // namespace

std::string_view drawn_fields() {
  return R"({"memory": true, "breakdown": true, "percentile_metrics": ["ttft", "tpot", "itl", "e2el"],
             "metric_percentiles": [1, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 99]})";
}

std::span<const PageExample> page_examples() {
  return examples;
}

}  // namespace foretoken
