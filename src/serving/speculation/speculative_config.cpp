#include "serving/speculation/speculative_config.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "base/json.h"

namespace foretoken {
namespace {

constexpr int64_t most_drafts = 1000;
constexpr Range<double> a_chance{.least = 0, .most = 1};

const std::initializer_list<std::string_view> keys = {"method",
                                                      "model",
                                                      "num_speculative_tokens",
                                                      "draft_tensor_parallel_size",
                                                      "quantization",
                                                      "disable_by_batch_size",
                                                      "tree_tokens",
                                                      "draft_context",
                                                      "prompt_lookup_max",
                                                      "prompt_lookup_min",
                                                      "rejection_sample_method",
                                                      "synthetic_acceptance_rates",
                                                      "synthetic_acceptance_length",
                                                      "synthetic_acceptance_rate",
                                                      "acceptance_rate",
                                                      "acceptance_decay",
                                                      "acceptance_spread",
                                                      "acceptance_distribution"};

std::vector<double> numbers_of(const JsonView& list, Range<double> allowed) {
  std::vector<double> values;
  for (const JsonView& item : list.items()) values.push_back(item.number(allowed));
  return values;
}

std::optional<Acceptance> read_acceptance(const JsonView& config, int64_t drafts) {
  std::optional<Acceptance> found;
  const auto take = [&](const JsonView& where, Acceptance acceptance) {
    if (found) where.fail("only one setting of the draft acceptance");
    found = std::move(acceptance);
  };
  const auto positions = static_cast<double>(drafts);
  if (const auto rates = config.find("synthetic_acceptance_rates")) {
    Acceptance acceptance(numbers_of(*rates, a_chance), rates->source() + ": " + rates->path());
    if (static_cast<int64_t>(acceptance.reached().size()) != drafts) {
      rates->fail(fmt::format("a rate for each of the {} drafts", drafts));
    }
    take(*rates, std::move(acceptance));
  }
  if (const auto length = config.find("synthetic_acceptance_length")) {
    take(*length, Acceptance::of_mean_length(length->number({.least = 1, .most = positions + 1}), drafts));
  }
  if (const auto rate = config.find("synthetic_acceptance_rate")) {
    take(*rate, Acceptance::of_mean_length(1 + rate->number(a_chance) * positions, drafts));
  }
  const auto decay = config.find("acceptance_decay"), spread = config.find("acceptance_spread");
  if (decay && spread) spread->fail("either acceptance_decay or acceptance_spread");
  if (const auto rate = config.find("acceptance_rate")) {
    const double mean = rate->number(a_chance);
    take(*rate,
         spread ? Acceptance::by_request(mean, spread->number({.least = 0, .most = std::min(mean, 1 - mean)}), drafts)
                : Acceptance::constant(mean, drafts, decay ? decay->number(a_chance) : 1));
  } else if (decay || spread) {
    (decay ? decay : spread)->fail("acceptance_rate together with it");
  }
  if (const auto weights = config.find("acceptance_distribution")) {
    const std::vector<double> values = numbers_of(*weights, {.least = 0, .most = 1e15});
    const bool any = std::any_of(values.begin(), values.end(), [](double weight) { return weight > 0; });
    if (static_cast<int64_t>(values.size()) != drafts + 1 || !any) {
      weights->fail(fmt::format("weights for 0 to {} accepted drafts, at least one above 0", drafts));
    }
    take(*weights, Acceptance::of_distribution(values));
  }
  return found;
}

}  // namespace

void SpeculativeConfig::assume(const UnknownAcceptance& assumed) {
  acceptance = assumed.value;
  unknown_acceptance = {assumed.low, assumed.high};
}

void SpeculativeConfig::assume_usual(PromptTexts texts) {
  assume(usual_acceptance(*method, num_speculative_tokens, texts));
  acceptance_is_usual = true;
}

Speculation SpeculativeConfig::speculation() const {
  ensure(method != nullptr && acceptance.has_value(), "the method and its acceptance are known");
  return {.draft_tokens = num_speculative_tokens,
          .verified_tokens = std::max(num_speculative_tokens, tree_tokens),
          .lookahead_tokens = method->keeps_cache() ? num_speculative_tokens : 0,
          .most_sequences = disable_by_batch_size,
          .draft_context = draft_context,
          .acceptance = *acceptance,
          .unknown_acceptance = unknown_acceptance,
          .same_for_all = same_for_all};
}

int64_t tokens_of_decode(const std::optional<SpeculativeConfig>& config) {
  return config ? 1 + config->speculation().verified_tokens : 1;
}

void SpeculativeConfig::use_own_layer_of(const Model& target) {
  if (method == &draft_method("eagle") && model.empty() && !target.draft_layers.empty()) method = &draft_method("mtp");
}

bool is_speculative_key(std::string_view key) {
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

SpeculativeConfig parse_speculative_config(std::string_view text, const std::string& source) {
  const Json document = parse_json(text, source);
  const JsonView config(document, source);
  config.allow_only(keys);
  const auto text_or_empty = [&](std::string_view key) {
    const auto found = config.find(key);
    return found ? found->string() : std::string();
  };
  const auto count_or_zero = [&](std::string_view key, int64_t most) {
    const auto found = config.find(key);
    return found ? found->integer({.least = 0, .most = most}) : 0;
  };
  SpeculativeConfig result;
  result.model = text_or_empty("model");
  // As in vLLM, a model alone is a draft model.
  result.method =
      &draft_method(!config.has("method") && !result.model.empty() ? "draft_model" : config.at("method").string());
  result.quantization = text_or_empty("quantization");
  result.num_speculative_tokens = result.method->block_drafts > 0 && !config.has("num_speculative_tokens")
                                      ? result.method->block_drafts
                                      : config.at("num_speculative_tokens").integer({.least = 1, .most = most_drafts});
  result.draft_tensor_parallel_size = count_or_zero("draft_tensor_parallel_size", 1'000'000);
  result.disable_by_batch_size = count_or_zero("disable_by_batch_size", 1'000'000'000);
  result.draft_context = count_or_zero("draft_context", 1'000'000'000);
  result.tree_tokens = count_or_zero("tree_tokens", most_drafts);
  if (result.tree_tokens > 0 && result.tree_tokens < result.num_speculative_tokens) {
    config.at("tree_tokens").fail("at least num_speculative_tokens, the depth of the tree");
  }
  result.acceptance = read_acceptance(config, result.num_speculative_tokens);
  return result;
}

}  // namespace foretoken
