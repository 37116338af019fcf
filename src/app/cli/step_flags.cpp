#include "app/cli/step_flags.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"

namespace foretoken {
namespace {

constexpr Range<int64_t> positive{.least = 1, .most = 1'000'000'000};
constexpr Range<int64_t> zero_or_more{.least = 0, .most = 1'000'000'000};
constexpr Range<int64_t> ranks{.least = 1, .most = 1'000'000};

}  // namespace

void StepFlags::declare(Options& options) {
  options.heading("Model and hardware");
  options.text("--model", model, "Built-in name (foretoken models), config.json, or a directory with one", true);
  options.text("--device", device, "Built-in name (foretoken devices) or a device JSON file", true);
  options.text("--quantization,-q", quantization,
               "Scheme of the linear layers: " + fmt::format("{}", fmt::join(scheme_names(), ", ")) +
                   "; default: as the config says");
  options.text("--kv-cache-dtype", kv_cache_dtype, "Element type of the KV cache: auto, bf16, fp8, int8, ...");

  options.heading("Step");
  options.choice("--phase", phase, step_phase_names(), "What the step does");
  options.integer("--batch", request.batch, positive, "Sequences per data-parallel rank");
  options.integer("--input-len", request.input_len, positive, "New tokens of each prompt (prefill, mixed, train)");
  options.integer("--context-len", request.context_len, zero_or_more, "Tokens already in the cache of each sequence");
  options.integer("--prompts", request.prompts, zero_or_more,
                  "mixed: how many of the batch are prompts; the rest decode");
  options.choice("--routing", routing, {"balanced", "pl1.01", "pl1.2"}, "How tokens spread over experts");
  options.integer("--lora-rank", request.lora.rank, zero_or_more,
                  "Rank of a LoRA adapter on all linear layers; 0 = none");
  options.flag("--recompute", request.recompute, "train: run the forward again in the backward pass");

  options.heading("Parallelism");
  options.integer("--tensor-parallel-size,-tp", plan.tensor, ranks, "-tp: devices that share each layer");
  options.integer("--pipeline-parallel-size,-pp", plan.pipeline, ranks, "-pp: stages the layers are cut into");
  options.integer("--data-parallel-size,-dp", plan.data, ranks, "-dp: replicas");
  options.integer("--expert-parallel-size,-ep", plan.expert, ranks, "-ep: devices the experts are spread over");
  options.integer("--context-parallel-size,-cp", plan.context, ranks, "-cp: devices that share each sequence");
  options.flag("--enable-expert-parallel", enable_expert_parallel,
               "Spread experts over all tensor x data ranks, as vLLM does");
  options.flag("--sequence-parallel", plan.sequence,
               "Norms on a share of the tokens; gather and scatter around layers");
}

Model StepFlags::read_model(const Library& library) const {
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

StepRequest StepFlags::step_request(const Model& parsed) const {
  StepRequest result = request;
  result.phase = step_phase_from_name(phase).value();  // one of the choices
  result.kv_dtype = parsed.dtype;
  if (lower_case(kv_cache_dtype) != "auto") {
    const std::optional<DType> dtype = dtype_from_name(kv_cache_dtype);
    if (!dtype) {
      throw InputError({.source = "--kv-cache-dtype",
                        .value = printable(kv_cache_dtype),
                        .expected = fmt::format("auto or one of {}", fmt::join(dtype_names(), ", ")),
                        .suggestion = nearest_name(kv_cache_dtype, dtype_names()).value_or("")});
    }
    result.kv_dtype = *dtype;
  }
  if (routing != "balanced") {
    result.routing = Routing::power_law;
    result.power_law_exponent = parse_number(std::string_view(routing).substr(2)).value();
  }
  if (result.phase == StepPhase::mixed && (result.prompts < 1 || result.prompts > result.batch)) {
    throw InputError({.source = "--prompts",
                      .value = fmt::format("{}", result.prompts),
                      .expected = fmt::format("between 1 and the batch of {} in a mixed step", result.batch)});
  }
  return result;
}

ParallelPlan StepFlags::parallel_plan() const {
  ParallelPlan result = plan;
  if (enable_expert_parallel) result.expert = plan.tensor * plan.data;
  return result;
}

}  // namespace foretoken
