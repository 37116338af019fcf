#include "app/cli/flags/model_flags.h"

#include <fmt/format.h>

#include "base/error.h"
#include "model/exchange_name.h"

namespace foretoken {
namespace {

constexpr Range<int64_t> ranks{.least = 1, .most = 1'000'000};

std::vector<std::string> backend_names() {
  std::vector<std::string> names;
  for (const ExchangeName& one : expert_exchange_names()) names.emplace_back(one.name);
  return names;
}

}  // namespace

void ModelFlags::declare_model(Options& options, bool required) {
  options.heading("Model and hardware");
  options.text("--model", model,
               "Built-in name (`foretoken models` lists them), a config.json, or a directory that contains one",
               required);
  options.text("--device", device, "Built-in name (`foretoken devices` lists them) or a device JSON file", required);
  options.text(
      "--quantization,-q", quantization,
      "Number format of the linear layers: " + fmt::format("{}", fmt::join(scheme_names(), ", ")) +
          "; or by part, for example nvfp4,attention=bf16 (parts: attention, mlp, experts) [from the model's config]");
  options.text("--kv-cache-dtype", kv_cache_dtype, "Number format of the KV cache: auto, bf16, fp8, int8, ...");
}

void ModelFlags::declare_parallelism(Options& options) {
  options.heading("Parallelism");
  options.integer("--tensor-parallel-size,-tp", plan.tensor, ranks, "-tp: number of GPUs that share each layer");
  options.integer("--pipeline-parallel-size,-pp", plan.pipeline, ranks,
                  "-pp: number of pipeline stages the layers are divided into");
  options.integer("--data-parallel-size,-dp", plan.data, ranks, "-dp: number of data-parallel ranks");
  options.integer("--expert-parallel-size,-ep", plan.expert, ranks, "-ep: number of GPUs the experts are divided over");
  options.integer("--context-parallel-size,-cp", plan.context, ranks, "-cp: number of GPUs that share each sequence");
  options.flag("--enable-expert-parallel", enable_expert_parallel,
               "Divide the experts over all tensor-parallel x data-parallel ranks, as vLLM does");
  options.text("--expert-popularity", expert_popularity,
               "How tokens are distributed over experts: zipf:A (shares ~ 1/rank^A), a CSV table (columns "
               "expert,tokens), or balancedness:B (mean load of a rank divided by the busiest rank's load, as SGLang "
               "reports it, for example 0.8) [a power law for more than 8 experts, otherwise all equally likely]");
  options.integer("--num-redundant-experts", redundant_experts, {.least = 0, .most = 65'536},
                  "Number of redundant copies of busy experts, placed across the ranks (EPLB)");
  options.choice("--all2all-backend,--moe-a2a-backend", all2all_backend, backend_names(),
                 "How tokens reach experts on other data-parallel ranks. allgather_reducescatter or none: all tokens "
                 "go to all ranks. deepep or all_to_all: each token goes only to the ranks of its experts, with "
                 "DeepEP's low-latency kernels up to 256 tokens per rank and its normal kernels above. "
                 "deepep_high_throughput, deepep_low_latency: always use one kind of kernel");
  options.flag("--sequence-parallel", plan.sequence,
               "Split the tokens of norms over the tensor-parallel ranks, with gather and scatter around each layer");
}

ModelSpec ModelFlags::model_spec() const {
  return {.model = model,
          .quantization = quantization,
          .kv_cache_dtype = kv_cache_dtype,
          .expert_popularity = expert_popularity,
          .redundant_experts = redundant_experts};
}

Model ModelFlags::read_model(const Library& library) const {
  const auto on = device.empty() ? std::nullopt : std::optional(library.hardware().device(device));
  Model result = open_model(library, model_spec(), on, parallel_plan());
  check_experts(result);
  return result;
}

void ModelFlags::check_experts(const Model& parsed) const {
  if (parsed.has_experts()) return;
  const auto refuse = [&](const char* flag) {
    throw InputError({.source = flag,
                      .value = parsed.name,
                      .expected = "a model with routed experts: leave this flag out for a dense model"});
  };
  if (enable_expert_parallel) refuse("--enable-expert-parallel");
  if (all2all_backend != ModelFlags().all2all_backend) refuse("--all2all-backend");
}

DType ModelFlags::kv_dtype(const Model& parsed) const {
  return foretoken::kv_cache_dtype(model_spec(), parsed);
}

ParallelPlan ModelFlags::parallel_plan() const {
  ParallelPlan result = plan;
  if (enable_expert_parallel) result.expert = plan.tensor * plan.data;
  for (const ExchangeName& one : expert_exchange_names()) {
    if (all2all_backend != one.name) continue;
    result.exchange = one.exchange;
    result.exchange_kernels = one.kernels;
  }
  return result;
}

}  // namespace foretoken
