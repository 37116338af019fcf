#include "compose/model_spec.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "compose/device_formats.h"
#include "library/library.h"
#include "model/expert_popularity.h"

namespace foretoken {
namespace {

Scheme scheme_named(std::string_view name) {
  const std::optional<Scheme> scheme = scheme_from_name(name);
  if (scheme) return *scheme;
  throw InputError({.field = "quantization",
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
      if (others) throw InputError({.field = "quantization", .value = printable(text), .expected = "a single scheme"});
      others = scheme_named(item);
      continue;
    }
    const std::string_view part = item.substr(0, equals);
    if (std::find(std::begin(parts), std::end(parts), part) == std::end(parts)) {
      const std::vector<std::string> known(std::begin(parts), std::end(parts));
      throw InputError({.field = "quantization",
                        .value = printable(part),
                        .expected = fmt::format("one of {}", fmt::join(known, ", ")),
                        .suggestion = nearest_name(part, known).value_or("")});
    }
    schemes[part] = scheme_named(item.substr(equals + 1));
  }
  if (others && model.named_scheme) {
    check_agrees_with_name("quantization", *others, model);
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

std::shared_ptr<const ExpertPopularity> popularity_of(const ModelSpec& spec, const Model& parsed,
                                                      const ParallelPlan& plan) {
  int64_t experts = 0;
  for (const Layer& layer : parsed.layers) {
    if (const auto* moe = std::get_if<Moe>(&layer.feed_forward)) experts = moe->experts;
  }
  const std::string field = spec.expert_popularity.empty() ? "num_redundant_experts" : "expert_popularity";
  if (experts == 0) {
    throw InputError({.field = field, .value = parsed.name, .expected = "a model with routed experts"});
  }
  ExpertPopularity popularity;
  if (constexpr std::string_view balancedness = "balancedness:"; spec.expert_popularity.starts_with(balancedness)) {
    const std::optional<double> share =
        parse_number(std::string_view(spec.expert_popularity).substr(balancedness.size()));
    if (!share || !(*share > 0 && *share <= 1)) {
      throw InputError({.field = field,
                        .value = printable(spec.expert_popularity),
                        .expected = "balancedness:B with B above 0 and at most 1"});
    }
    popularity = zipf_popularity(experts, 0);
    popularity.balancedness = share;
  } else if (constexpr std::string_view zipf = "zipf:";
             spec.expert_popularity.empty() || spec.expert_popularity.starts_with(zipf)) {
    const std::string_view digits =
        std::string_view(spec.expert_popularity).substr(spec.expert_popularity.empty() ? 0 : zipf.size());
    const std::optional<double> exponent = digits.empty() ? std::optional(0.0) : parse_number(digits);
    if (!exponent || !(*exponent >= 0 && *exponent <= 5) || (digits.empty() && !spec.expert_popularity.empty())) {
      throw InputError(
          {.field = field, .value = printable(spec.expert_popularity), .expected = "zipf:A with A from 0 to 5"});
    }
    popularity = zipf_popularity(experts, *exponent);
  } else {
    std::error_code failed;
    if (!std::filesystem::is_regular_file(spec.expert_popularity, failed)) {
      throw InputError({.field = field,
                        .value = printable(spec.expert_popularity) + ", which is not a file",
                        .expected = "zipf:A, balancedness:B, or a CSV file with the share of each expert"});
    }
    popularity = read_expert_popularity(spec.expert_popularity);
  }
  if (std::ssize(popularity.shares) != experts) {
    throw InputError({.source = spec.expert_popularity,
                      .value = fmt::format("{} experts", popularity.shares.size()),
                      .expected = fmt::format("the {} of {}", experts, parsed.name)});
  }
  const int64_t expert_ranks = plan.expert;
  if (spec.redundant_experts > 0 && (expert_ranks == 1 || (experts + spec.redundant_experts) % expert_ranks != 0)) {
    throw InputError({.field = "num_redundant_experts",
                      .value = fmt::format("{} over {} ranks", spec.redundant_experts, expert_ranks),
                      .expected = "the same number of copies on each of several ranks ({enable_expert_parallel})"});
  }
  popularity.redundant = spec.redundant_experts;
  return std::make_shared<const ExpertPopularity>(std::move(popularity));
}

}  // namespace

void check_agrees_with_name(const std::string& field, Scheme asked, const Model& model) {
  if (!model.named_scheme || agrees(asked, *model.named_scheme)) return;
  throw InputError({.field = field,
                    .value = std::string(facts(asked).name),
                    .expected = fmt::format(
                        "{}, the format in the name {}; leave {{{}}} out, or give the model's name without the format",
                        facts(*model.named_scheme).name, model.served_name(), field)});
}

Model open_model(const Library& library, const ModelSpec& spec, const std::optional<Device>& on,
                 const ParallelPlan& plan) {
  Model result = library.models().model(spec.model);
  if (spec.dtype) result.dtype = *spec.dtype;
  if (!spec.quantization.empty()) result = quantized(std::move(result), spec.quantization);
  if (on) result = run_on(std::move(result), *on);
  if (!spec.expert_popularity.empty() || spec.redundant_experts > 0) {
    result.expert_popularity = popularity_of(spec, result, plan);
  }
  return result;
}

DType kv_cache_dtype(const ModelSpec& spec, const Model& parsed) {
  if (lower_case(spec.kv_cache_dtype) == "auto") return parsed.kv_cache_dtype();
  const std::optional<DType> dtype = dtype_from_name(spec.kv_cache_dtype);
  if (!dtype) {
    throw InputError({.field = "kv_cache_dtype",
                      .value = printable(spec.kv_cache_dtype),
                      .expected = fmt::format("auto or one of {}", fmt::join(dtype_names(), ", ")),
                      .suggestion = nearest_name(spec.kv_cache_dtype, dtype_names()).value_or("")});
  }
  return *dtype;
}

}  // namespace foretoken
