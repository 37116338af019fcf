#include "app/cli/model_flags.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"

namespace foretoken {
namespace {

constexpr Range<int64_t> ranks{.least = 1, .most = 1'000'000};

}  // namespace

void ModelFlags::declare_model(Options& options) {
  options.heading("Model and hardware");
  options.text("--model", model, "Built-in name (foretoken models), config.json, or a directory with one", true);
  options.text("--device", device, "Built-in name (foretoken devices) or a device JSON file", true);
  options.text("--quantization,-q", quantization,
               "Scheme of the linear layers: " + fmt::format("{}", fmt::join(scheme_names(), ", ")) +
                   "; default: as the config says");
  options.text("--kv-cache-dtype", kv_cache_dtype, "Element type of the KV cache: auto, bf16, fp8, int8, ...");
}

void ModelFlags::declare_parallelism(Options& options) {
  options.heading("Parallelism");
  options.integer("--tensor-parallel-size,-tp", plan.tensor, ranks, "-tp: devices that share each layer");
  options.integer("--pipeline-parallel-size,-pp", plan.pipeline, ranks, "-pp: stages the layers are cut into");
  options.integer("--data-parallel-size,-dp", plan.data, ranks, "-dp: replicas");
  options.integer("--expert-parallel-size,-ep", plan.expert, ranks, "-ep: devices the experts are spread over");
  options.integer("--context-parallel-size,-cp", plan.context, ranks, "-cp: devices that share each sequence");
  options.flag("--enable-expert-parallel", enable_expert_parallel,
               "Spread experts over all tensor x data ranks, as vLLM does");
  options.choice("--all2all-backend", all2all_backend, {"allgather_reducescatter", "all_to_all"},
                 "How tokens get to experts of other data-parallel ranks: all to all ranks, or each to its experts' "
                 "(DeepEP)");
  options.flag("--sequence-parallel", plan.sequence,
               "Norms on a share of the tokens; gather and scatter around layers");
}

Model ModelFlags::read_model(const Library& library) const {
  Model result = library.models().model(model);
  if (!quantization.empty()) {
    const std::optional<Scheme> scheme = scheme_from_name(quantization);
    if (!scheme) {
      throw InputError({.source = "--quantization",
                        .value = printable(quantization),
                        .expected = fmt::format("one of {}", fmt::join(scheme_names(), ", ")),
                        .suggestion = nearest_name(quantization, scheme_names()).value_or("")});
    }
    result = with_scheme(std::move(result), *scheme, *scheme);
  }
  return result;
}

DType ModelFlags::kv_dtype(const Model& parsed) const {
  if (lower_case(kv_cache_dtype) == "auto") return parsed.dtype;
  const std::optional<DType> dtype = dtype_from_name(kv_cache_dtype);
  if (!dtype) {
    throw InputError({.source = "--kv-cache-dtype",
                      .value = printable(kv_cache_dtype),
                      .expected = fmt::format("auto or one of {}", fmt::join(dtype_names(), ", ")),
                      .suggestion = nearest_name(kv_cache_dtype, dtype_names()).value_or("")});
  }
  return *dtype;
}

ParallelPlan ModelFlags::parallel_plan() const {
  ParallelPlan result = plan;
  if (enable_expert_parallel) result.expert = plan.tensor * plan.data;
  if (all2all_backend != "all_to_all") result.exchange = ExpertExchange::all_gather;
  return result;
}

}  // namespace foretoken
