#include "validate/serving/public_facts.h"

#include "base/json.h"
#include "base/normal_distribution.h"
#include "base/portable_math.h"
#include "base/text.h"

namespace foretoken {
namespace {

// SGLang's cookbook: commits of 2026-02-11 and 2026-04-28, and pages that were there before 2026-04-20 and on
// 2026-04-29.
constexpr SglangBuild builds[] = {
    {"947927bdb", "", "0.5.9"},
    {"7d99af439", "", "0.5.10"},
    {"main", "Qwen3.5-397B", "0.5.10"},
    {"", "Mistral-Medium-3.5", "0.5.10"},
};

// SGLang's cookbook, DeepSeek-V4: "both the 0731 and 0813 checkpoints resolve to five proposed tokens".
constexpr BundledDrafter drafters[] = {{"dspark", "DeepSeek-V4", 5}};

// DeepSeek-V4 at concurrency 1,024 and 4,096, on every GPU: requests in flight (throughput / output length x (TTFT +
// TPOT x output length)) are 0.62 and 0.30 of the concurrency with fixed lengths, 0.99 and 0.54 with uniform ones; one
// and a half are due where twice and once the concurrency is sent. The one table of means has 0.87 requests in flight
// at concurrency 1 with fixed lengths. The page notes for its latest checkpoint alone that it ran "a true fixed
// length".
constexpr UniformLengths uniform_tables[] = {{"SGLang cookbook", "DeepSeek-V4", "-0813"}};

constexpr Range<int64_t> some{.least = 1, .most = 1'000'000};

PublicRecipe read_recipe(const JsonView& json) {
  json.allow_only({"benchmark", "engine", "model", "generation", "weights", "version", "arrival", "since", "until",
                   "gpus", "tensor", "expert", "adds", "replaces", "flags", "source"});
  const auto text = [&](std::string_view key) {
    const std::optional<JsonView> found = json.find(key);
    return found ? found->string() : std::string();
  };
  PublicRecipe recipe{.benchmark = json.at("benchmark").string(),
                      .engine = json.at("engine").string(),
                      .model = json.at("model").string(),
                      .generation = text("generation"),
                      .flags = json.at("flags").string(),
                      .since = text("since"),
                      .until = text("until"),
                      .version = text("version"),
                      .weights = text("weights"),
                      .arrival = text("arrival"),
                      .source = json.at("source").string()};
  if (const auto adds = json.find("adds")) recipe.adds = adds->boolean();
  if (const auto replaces = json.find("replaces")) recipe.replaces = replaces->boolean();
  if (const auto ranks = json.find("tensor")) recipe.tensor = ranks->integer(some);
  if (const auto ranks = json.find("expert")) recipe.expert = ranks->integer(some);
  if (const auto gpus = json.find("gpus")) {
    for (const JsonView& gpu : gpus->items()) recipe.gpus.push_back(gpu.string());
  }
  return recipe;
}

// Of one benchmark's layouts.
void read_workers(const JsonView& json, std::vector<WorkerLimits>& into) {
  json.allow_only({"benchmark", "engine", "model", "layouts", "source"});
  for (const JsonView& layout : json.at("layouts").items()) {
    layout.allow_only({"gpu", "weights", "input", "output", "prefill_workers", "decode_workers", "decode_ranks",
                       "attention_dp", "decode_seats", "prefill_seats", "prefill_tokens", "prefill_memory",
                       "decode_memory", "decode_graphs", "stream_interval"});
    WorkerLimits one{.benchmark = json.at("benchmark").string(),
                     .engine = json.at("engine").string(),
                     .model = json.at("model").string(),
                     .gpu = layout.at("gpu").string(),
                     .weights = layout.at("weights").string(),
                     .input = layout.at("input").integer(some),
                     .output = layout.at("output").integer(some),
                     .prefill_workers = layout.at("prefill_workers").integer(some),
                     .decode_workers = layout.at("decode_workers").integer(some),
                     .decode_ranks = layout.at("decode_ranks").integer(some),
                     .attends_apart = layout.at("attention_dp").boolean(),
                     .decode_seats = {},
                     .source = json.at("source").string()};
    for (const auto& [concurrency, seats] : layout.at("decode_seats").members()) {
      const std::optional<int64_t> clients = parse_integer(concurrency);
      if (!clients || !some.holds(*clients)) seats.fail("seats by concurrency");
      one.decode_seats.emplace(*clients, seats.integer(some));
    }
    if (const auto seats = layout.find("prefill_seats")) one.prefill_seats = seats->integer(some);
    if (const auto tokens = layout.find("prefill_tokens")) one.prefill_tokens = tokens->integer(some);
    if (const auto most = layout.find("decode_graphs")) one.decode_graphs = most->integer(some);
    if (const auto tokens = layout.find("stream_interval")) one.stream_interval = tokens->integer(some);
    constexpr Range<double> shares{.least = 0.01, .most = 1};
    if (const auto share = layout.find("prefill_memory")) one.prefill_memory = share->number(shares);
    if (const auto share = layout.find("decode_memory")) one.decode_memory = share->number(shares);
    into.push_back(std::move(one));
  }
}

LognormalLength read_law(const JsonView& json) {
  json.allow_only({"mean", "sigma", "most"});
  constexpr double longest = 1e6;
  return {.mean = json.at("mean").number({.least = 1, .most = longest}),
          .sigma = json.at("sigma").number({.least = 0, .most = 3}),
          .most = json.at("most").integer({.least = 1, .most = 1'000'000})};
}

DataSetLengths read_data_set(const JsonView& json) {
  json.allow_only({"spec", "samples", "input", "output", "output_means", "source"});
  DataSetLengths set{.spec = json.at("spec").string(),
                     .input = with_mean_after_cut(read_law(json.at("input"))),
                     .output = with_mean_after_cut(read_law(json.at("output"))),
                     .output_by_weights = {},
                     .samples = json.at("samples").integer({.least = 1}),
                     .source = json.at("source").string()};
  if (const auto means = json.find("output_means")) {
    for (const auto& [weights, mean] : means->members()) {
      LognormalLength law = read_law(json.at("output"));
      law.mean = mean.number({.least = 1, .most = static_cast<double>(law.most)});
      set.output_by_weights.emplace(weights, with_mean_after_cut(law));
    }
  }
  return set;
}

LatencyLimit read_limit(const JsonView& json) {
  json.allow_only({"benchmark", "model", "arrival", "ttft_ms", "tpot_ms", "source"});
  constexpr Range<double> some_ms{.least = 1, .most = 1e6};
  return {.benchmark = json.at("benchmark").string(),
          .model = json.at("model").string(),
          .arrival = json.at("arrival").string(),
          .ttft_ms = json.at("ttft_ms").number(some_ms),
          .tpot_ms = json.at("tpot_ms").number(some_ms),
          .source = json.at("source").string()};
}

}  // namespace

std::span<const UniformLengths> uniform_lengths_of_tables() {
  return uniform_tables;
}

// First turns of ShareGPT as sglang.bench_serving and vLLM's generator pick them: prompts of at most 1,024 tokens,
// 2,048 with the answer. The spread is assumed.
LognormalLength sharegpt_prompts(double mean_tokens) {
  return {.mean = mean_tokens, .sigma = 1.4, .most = 1024};
}

LognormalLength sharegpt_answers(double mean_tokens) {
  return {.mean = mean_tokens, .sigma = 1, .most = 2048};
}

LognormalLength with_mean_after_cut(LognormalLength law) {
  if (law.sigma <= 0) return law;
  const auto most = static_cast<double>(law.most);
  // Of min(X, most) with X lognormal of this mean.
  const auto cut_mean = [&](double mean) {
    const double mu = portable_log(mean) - law.sigma * law.sigma / 2;
    const double z = (portable_log(most) - mu) / law.sigma;
    return mean * normal_below(z - law.sigma) + most * normal_below(-z);
  };
  double low = law.mean, high = 20 * law.mean;
  if (cut_mean(high) < law.mean) return law;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (cut_mean(middle) < law.mean ? low : high) = middle;
  }
  law.mean = high;
  return law;
}

std::span<const SglangBuild> sglang_builds() {
  return builds;
}

std::span<const BundledDrafter> bundled_drafters() {
  return drafters;
}

PublicFacts read_public_facts(const std::filesystem::path& data) {
  const std::filesystem::path path = data / "serving" / "recipes.json";
  const Json document = read_json_file(path);
  const JsonView view(document, path.string());
  view.allow_only({"format", "recipes", "workers", "data_sets", "limits"});
  view.at("format").integer({.least = 1, .most = 1});
  PublicFacts facts;
  for (const JsonView& recipe : view.at("recipes").items()) facts.recipes.push_back(read_recipe(recipe));
  if (const auto found = view.find("workers")) {
    for (const JsonView& workers : found->items()) read_workers(workers, facts.workers);
  }
  for (const JsonView& set : view.at("data_sets").items()) facts.data_sets.push_back(read_data_set(set));
  for (const JsonView& limit : view.at("limits").items()) facts.limits.push_back(read_limit(limit));
  return facts;
}

const LognormalLength& DataSetLengths::output_of(std::string_view weights) const {
  const auto found = output_by_weights.find(weights);
  return found == output_by_weights.end() ? output : found->second;
}

}  // namespace foretoken
