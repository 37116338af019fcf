#include "app/cli/commands/plan/serving/layout_flags.h"

#include <algorithm>

#include <fmt/format.h>

#include "app/cli/flags/model_flags.h"
#include "base/error.h"
#include "base/text.h"
#include "compose/device_formats.h"
#include "compose/serving_engine.h"
#include "plan/serving/layout_engines.h"
#include "serving/engine/engine_setup.h"

namespace foretoken {
namespace {

std::vector<int64_t> listed_sizes(const char* flag, const std::vector<std::string>& texts, int64_t least) {
  std::vector<int64_t> numbers;
  numbers.reserve(texts.size());
  for (const std::string& text : texts)
    numbers.push_back(parse_size(flag, text, {.least = least, .most = 100'000'000}));
  return numbers;
}

void sort_and_unify(std::vector<int64_t>& sizes) {
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
}

void check_engine_name(const std::string& engine) {
  try {
    engine_kind(engine);
  } catch (const InputError& error) {
    InputProblem problem = error.problem();
    problem.field = "engines";
    throw InputError(problem);
  }
}

template <typename T>
void add_once(std::vector<T>& list, const T& one) {
  if (std::find(list.begin(), list.end(), one) == list.end()) list.push_back(one);
}

// Not their older versions.
std::vector<std::string> newest_engines() {
  std::vector<std::string> names = engine_names();
  std::erase_if(names, [](const std::string& name) { return engine_family(name) != name; });
  return names;
}

}  // namespace

void LayoutFlags::declare(Options& options) {
  options.list("--engines", engines, "Engines to try: vllm, sglang, trtllm [all]");
  options.list(
      "--quantizations", schemes,
      "Weight formats to try: config (the model's own), fp8, int4_wo, ...; default: config, and fp8 if the model "
      "is not quantized and the device multiplies in fp8");
  options.list("--kv-cache-dtype", kv_dtypes, "Formats of the KV cache to try [auto (the model's format) and fp8]");
  options.list("--tensor-parallel-sizes,--tensor-parallel-size,-tp", tensor,
               "Tensor-parallel sizes to try [powers of two within a node]");
  options.list("--pipeline-parallel-sizes,--pipeline-parallel-size,-pp", pipeline,
               "Pipeline-parallel sizes to try [1, 2, 4]");
  options.list("--max-num-seqs", seqs,
               "Maximum numbers of sequences per step to try [the engine's default, 32, 64, 128, 256]");
  options.list("--max-num-batched-tokens", tokens,
               "Maximum numbers of tokens per step to try [the engine's default, 2048, 8192]");
  options.flag("--disaggregate", separate_pools, "Also try separate engines for prefill and decode [on]");
  options.flag("--mix-hardware", mixed_pools, "Also try different devices for prefill and decode");
  options.list(
      "--kv-offloading-per-gpu", offloading,
      "Sizes of host memory for KV offloading to try, in GiB per GPU; 0 = none [0; if prompts share prefixes, also "
      "the size of the GPU's memory]");
  options.integer("--max-model-len", max_model_len, {.least = 0, .most = 100'000'000},
                  "Maximum length of a sequence in tokens, prompt and output together; 0 = what the requests need");
  options.number("--gpu-memory-utilization,--mem-fraction-static,--free-gpu-memory-fraction", memory_fraction,
                 {.least = 0, .most = 1}, "Share of GPU memory that an engine may use; 0 = the engine's default");
  speculation.declare(options);
  lora.declare(options, &slots);
  placement.declare(options);
  declare_host_factor(options, host_factor);
}

LayoutChoices LayoutFlags::choices(const Model& model, bool closed_form) const {
  LayoutChoices result{.engines = engines.empty() ? newest_engines() : engines,
                       .schemes = {},
                       .kv_dtypes = {},
                       .tensor = listed_sizes("--tensor-parallel-sizes", tensor, 1),
                       .pipeline = listed_sizes("--pipeline-parallel-sizes", pipeline, 1),
                       .max_num_seqs = listed_sizes("--max-num-seqs", seqs, 0),
                       .max_num_batched_tokens = listed_sizes("--max-num-batched-tokens", tokens, 0),
                       .separate_pools = separate_pools,
                       .mixed_pools = mixed_pools};
  const auto usual_limits = [&](std::vector<int64_t> usual) { return closed_form ? std::vector<int64_t>{0} : usual; };
  // Layouts and their results come in one order, however limits were listed.
  sort_and_unify(result.max_num_seqs);
  sort_and_unify(result.max_num_batched_tokens);
  if (seqs.empty()) result.max_num_seqs = usual_limits({0, 32, 64, 128, 256});
  if (tokens.empty()) result.max_num_batched_tokens = usual_limits({0, 2048, 8192});
  for (const std::string& engine : result.engines) check_engine_name(engine);
  result.schemes = weight_formats(model);
  const auto types = kv_dtypes.empty() ? std::vector<std::string>{"auto", "fp8"} : kv_dtypes;
  for (const std::string& name : types) {
    ModelFlags flags;
    flags.kv_cache_dtype = name;
    add_once(result.kv_dtypes, flags.kv_dtype(model));
  }
  return result;
}

std::vector<std::optional<Scheme>> LayoutFlags::weight_formats(const Model& model) const {
  // Nobody quantizes a checkpoint once more that is published quantized, unless asked to.
  const auto usual = model.is_quantized() || model.named_scheme ? std::vector<std::string>{"config"}
                                                                : std::vector<std::string>{"config", "fp8"};
  std::vector<std::optional<Scheme>> formats;
  for (const std::string& name : schemes.empty() ? usual : schemes) {
    std::optional<Scheme> scheme;
    if (lower_case(name) != "config") {
      scheme = scheme_from_name(name);
      if (!scheme) {
        throw InputError({.source = "--quantizations",
                          .value = printable(name),
                          .expected = fmt::format("config or one of {}", fmt::join(scheme_names(), ", ")),
                          .suggestion = nearest_name(name, scheme_names()).value_or("")});
      }
      check_agrees_with_name("quantizations", *scheme, model);
      if (*scheme == model.scheme || model.named_scheme) scheme.reset();
    }
    add_once(formats, scheme);
  }
  return formats;
}

void LayoutFlags::check_runs_somewhere(const ServingQuestion& asked) const {
  const auto& offered = asked.hardware;
  for (const HardwareChoice& one : offered) {
    if (one.device.memory || one.device.allocatable_memory) continue;
    throw InputError({.field = "hardware",
                      .value = one.device.name,
                      .expected = "a device whose memory size is known (memory_gb in its file)"});
  }
  const bool any_engine =
      std::any_of(asked.choices.engines.begin(), asked.choices.engines.end(), [&](const std::string& engine) {
        return std::any_of(offered.begin(), offered.end(),
                           [&](const HardwareChoice& one) { return runs_on(engine_kind(engine), one.device); });
      });
  if (!any_engine) check_engine_runs_on("engines", asked.choices.engines.front(), offered.front().device);
  for (const std::optional<Scheme>& scheme : asked.choices.schemes) {
    if (!scheme || schemes.empty()) continue;
    const bool computes = std::any_of(offered.begin(), offered.end(),
                                      [&](const HardwareChoice& one) { return multiplies_in(one.device, *scheme); });
    if (!computes) check_multiplies_in("quantizations", *scheme, offered.front().device, facts(*scheme).name);
  }
  const bool is_own_format = asked.choices.schemes == std::vector<std::optional<Scheme>>{std::nullopt};
  const bool runs = std::any_of(offered.begin(), offered.end(),
                                [&](const HardwareChoice& one) { return loads_on(asked.model, one.device); });
  if (is_own_format && !runs) run_on(asked.model, offered.front().device);  // says what is wrong
}

// Where prompts share prefixes, also as much host memory as the GPUs have themselves: servers usually have that.
void LayoutFlags::choose_host_memory(ServingPlanner& planner) const {
  LayoutChoices& choices = planner.question.choices;
  const bool closed_form = planner.limits.closed_form;
  if (closed_form && planner.traffic.lengths().shared_tokens > 0) {
    planner.question.assumptions.emplace_back(
        "Prompts share prefixes: at the low end of the intervals, the KV cache keeps none of them; at the high end, "
        "all.");
  }
  if (!offloading.empty()) {
    choices.host_gib = listed_sizes("--kv-offloading-per-gpu", offloading, 0);
    sort_and_unify(choices.host_gib);  // of layouts that do the same, the first is kept: the one with less
    return;
  }
  choices.host_as_gpu = !closed_form && !lora.enabled && planner.traffic.lengths().shared_tokens > 0;
  if (!choices.host_as_gpu) return;
  planner.question.assumptions.emplace_back(
      "Prompts share prefixes, so layouts that keep KV blocks in host memory were also tried, with as much host memory "
      "per GPU as the GPU has memory (set other sizes with {kv_offloading_per_gpu}; 0 = no host memory).");
}

void LayoutFlags::choose_slots(ServingPlanner& planner) const {
  ServingQuestion& question = planner.question;
  const int64_t adapters = std::max<int64_t>(1, planner.traffic.lengths().adapters);
  std::vector<int64_t>& tried = question.choices.max_loras;
  tried = listed_sizes("--max-loras", slots, 1);
  if (tried.empty()) {
    for (const int64_t usual : {4, 16, 64}) tried.push_back(std::min(usual, adapters));
  }
  sort_and_unify(tried);
  LoraFlags flags = lora;
  flags.settings.max_loras = tried.back();
  if (flags.settings.max_cpu_loras == 0) {
    flags.settings.max_cpu_loras = std::max(adapters, tried.back());
    question.assumptions.push_back(
        fmt::format("Host memory is assumed to hold all {} adapters (change this with {{max_cpu_loras}}).", adapters));
  }
  question.lora = flags.read();
}

}  // namespace foretoken
