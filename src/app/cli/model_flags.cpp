#include "app/cli/model_flags.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "compose/device_formats.h"
#include "model/expert_popularity.h"

namespace foretoken {
namespace {

constexpr Range<int64_t> ranks{.least = 1, .most = 1'000'000};

Scheme scheme_named(std::string_view name) {
  const std::optional<Scheme> scheme = scheme_from_name(name);
  if (scheme) return *scheme;
  throw InputError({.source = "--quantization",
                    .value = printable(name),
                    .expected = fmt::format("one of {}", fmt::join(scheme_names(), ", ")),
                    .suggestion = nearest_name(name, scheme_names()).value_or("")});
}

// Whether a scheme that is asked for is the one that the checkpoint's name states: fp8 says nothing of its scales.
bool agrees(Scheme asked, Scheme named) {
  const bool both_fp8 =
      (asked == Scheme::fp8 || asked == Scheme::fp8_block) && (named == Scheme::fp8 || named == Scheme::fp8_block);
  return asked == named || both_fp8;
}

// "fp8", or parts apart: "nvfp4,attention=bf16". A scheme alone is that of all parts which are not named.
Model quantized(Model model, std::string_view text) {
  constexpr std::string_view parts[] = {"attention", "mlp", "experts"};
  std::map<std::string_view, Scheme> schemes;
  std::optional<Scheme> others;
  for (const std::string_view item : split(text, ",")) {
    const size_t equals = item.find('=');
    if (equals == std::string_view::npos) {
      if (others) throw InputError({.source = "--quantization", .value = printable(text), .expected = "one scheme"});
      others = scheme_named(item);
      continue;
    }
    const std::string_view part = item.substr(0, equals);
    if (std::find(std::begin(parts), std::end(parts), part) == std::end(parts)) {
      const std::vector<std::string> known(std::begin(parts), std::end(parts));
      throw InputError({.source = "--quantization",
                        .value = printable(part),
                        .expected = fmt::format("one of {}", fmt::join(known, ", ")),
                        .suggestion = nearest_name(part, known).value_or("")});
    }
    schemes[part] = scheme_named(item.substr(equals + 1));
  }
  if (others && model.named_scheme) {
    check_agrees_with_name("--quantization", *others, model);
    if (schemes.empty()) return model;
    others.reset();
  }
  if (others && schemes.empty()) return with_scheme(std::move(model), *others);
  const auto of = [&](std::string_view part, Scheme as_config_says) {
    const auto found = schemes.find(part);
    return found != schemes.end() ? found->second : others.value_or(as_config_says);
  };
  const Scheme attention = of("attention", model.mixer_scheme());
  model = with_scheme(std::move(model), of("mlp", model.scheme), of("experts", model.expert_scheme));
  if (attention != model.scheme) model.attention_scheme = attention;
  return model;
}

}  // namespace

void check_agrees_with_name(const std::string& flag, Scheme asked, const Model& model) {
  if (!model.named_scheme || agrees(asked, *model.named_scheme)) return;
  throw InputError({.source = flag,
                    .value = std::string(facts(asked).name),
                    .expected = fmt::format("{}, the format that the name {} states; leave {} out, or give the model's "
                                            "name without the format",
                                            facts(*model.named_scheme).name, model.served_name(), flag)});
}

void ModelFlags::declare_model(Options& options) {
  options.heading("Model and hardware");
  options.text("--model", model, "Built-in name (foretoken models), config.json, or a directory with one", true);
  options.text("--device", device, "Built-in name (foretoken devices) or a device JSON file", true);
  options.text("--quantization,-q", quantization,
               "Scheme of the linear layers: " + fmt::format("{}", fmt::join(scheme_names(), ", ")) +
                   "; by part as in nvfp4,attention=bf16 (attention, mlp, experts); default: as the config says");
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
  options.text(
      "--expert-popularity", expert_popularity,
      "How tokens choose experts: zipf:A (shares ~ 1/rank^A), or a CSV table expert,tokens; default: by chance");
  options.integer("--num-redundant-experts", redundant_experts, {.least = 0, .most = 65'536},
                  "Copies of busy experts, spread over the ranks (EPLB)");
  options.choice("--all2all-backend", all2all_backend, {"allgather_reducescatter", "all_to_all"},
                 "How tokens get to experts of other data-parallel ranks: all to all ranks, or each to its experts' "
                 "(DeepEP)");
  options.flag("--sequence-parallel", plan.sequence,
               "Norms on a share of the tokens; gather and scatter around layers");
}

Model ModelFlags::read_model(const Library& library) const {
  Model result = library.models().model(model);
  if (!quantization.empty()) result = quantized(std::move(result), quantization);
  if (!device.empty()) {
    const Device on = library.hardware().device(device);
    if (!quantization.empty()) {
      // Nobody quantizes to fp4 for a device without it; fp8 weights at least are loaded there.
      for (const Scheme scheme : {result.scheme, result.mixer_scheme(), result.expert_scheme}) {
        if (facts(scheme).math == DType::fp4 && !result.named_scheme) {
          check_multiplies_in("--quantization", DType::fp4, on, quantization);
        }
      }
    }
    result = run_on(std::move(result), on);
  }
  if (!expert_popularity.empty() || redundant_experts > 0) result.expert_popularity = popularity_of(result);
  return result;
}

std::shared_ptr<const ExpertPopularity> ModelFlags::popularity_of(const Model& parsed) const {
  int64_t experts = 0;
  for (const Layer& layer : parsed.layers) {
    if (const auto* moe = std::get_if<Moe>(&layer.feed_forward)) experts = moe->experts;
  }
  const std::string flag = expert_popularity.empty() ? "--num-redundant-experts" : "--expert-popularity";
  if (experts == 0) {
    throw InputError({.source = flag, .value = parsed.name, .expected = "a model with routed experts"});
  }
  ExpertPopularity popularity;
  if (constexpr std::string_view zipf = "zipf:"; expert_popularity.empty() || expert_popularity.starts_with(zipf)) {
    const std::string_view digits =
        std::string_view(expert_popularity).substr(expert_popularity.empty() ? 0 : zipf.size());
    const std::optional<double> exponent = digits.empty() ? std::optional(0.0) : parse_number(digits);
    if (!exponent || !(*exponent >= 0 && *exponent <= 5) || (digits.empty() && !expert_popularity.empty())) {
      throw InputError(
          {.source = flag, .value = printable(expert_popularity), .expected = "zipf:A with A from 0 to 5"});
    }
    popularity = zipf_popularity(experts, *exponent);
  } else {
    popularity = read_expert_popularity(expert_popularity);
  }
  if (std::ssize(popularity.shares) != experts) {
    throw InputError({.source = expert_popularity,
                      .value = fmt::format("{} experts", popularity.shares.size()),
                      .expected = fmt::format("the {} of {}", experts, parsed.name)});
  }
  const int64_t expert_ranks = parallel_plan().expert;
  if (redundant_experts > 0 && (expert_ranks == 1 || (experts + redundant_experts) % expert_ranks != 0)) {
    throw InputError({.source = "--num-redundant-experts",
                      .value = fmt::format("{} over {} ranks", redundant_experts, expert_ranks),
                      .expected = "copies on several ranks (--enable-expert-parallel), as many on each"});
  }
  popularity.redundant = redundant_experts;
  return std::make_shared<const ExpertPopularity>(std::move(popularity));
}

DType ModelFlags::kv_dtype(const Model& parsed) const {
  if (lower_case(kv_cache_dtype) == "auto") return parsed.kv_cache_dtype();
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
