#include "training/import/config_format.h"

#include <fmt/format.h>

#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace foretoken {
namespace {

constexpr std::pair<std::string_view, ContextExchange> megatron_exchanges[] = {
    {"p2p", ContextExchange::ring},
    {"all_gather", ContextExchange::all_gather},
    {"allgather", ContextExchange::all_gather},
    {"a2a", ContextExchange::all_to_all},
    {"a2a+p2p", ContextExchange::all_to_all}};

}  // namespace

size_t one_of(const ConfigValue& value, std::span<const std::string_view> words) {
  for (size_t i = 0; i < words.size(); ++i) {
    if (equal_ignoring_case(value.text(), words[i])) return i;
  }
  const std::vector<std::string> names(words.begin(), words.end());
  value.fail(fmt::format("one of {}", fmt::join(names, ", ")), nearest_name(value.text(), names).value_or(""));
}

void says_recompute_granularity(SaidSettings& said, const ConfigValue& value) {
  static constexpr std::string_view words[] = {"full", "selective"};
  said.recompute = one_of(value, words) == 0 ? Recompute::full : Recompute::selective;
}

void says_tokenizer(SaidSettings& said, const ConfigValue& value) {
  constexpr std::pair<std::string_view, int64_t> vocabularies[] = {
      {"GPT2BPETokenizer", 50257}, {"Llama2Tokenizer", 32000}, {"meta-llama/Llama-2-7b-hf", 32000}};
  for (const auto& [name, size] : vocabularies) {
    if (value.text() == name && !said.vocabulary) said.vocabulary = size;
  }
}

void says_normalization(SaidSettings& said, const ConfigValue& value) {
  static constexpr std::string_view words[] = {"RMSNorm", "LayerNorm", "layernorm1p", "low_precision_layernorm",
                                               "low_precision_rmsnorm"};
  const size_t word = one_of(value, words);
  said.layer_norm = word != 0 && word != 4;
}

void says_positions(SaidSettings& said, const ConfigValue& value) {
  static constexpr std::string_view words[] = {"learned_absolute", "rope", "yarn", "mrope", "none"};
  said.learned_positions = one_of(value, words) == 0;
}

std::vector<std::string_view> megatron_exchange_names() {
  std::vector<std::string_view> names;
  for (const auto& [name, exchange] : megatron_exchanges) names.push_back(name);
  return names;
}

std::optional<ContextExchange> exchange_from_megatron_name(std::string_view name) {
  for (const auto& [known, exchange] : megatron_exchanges) {
    if (equal_ignoring_case(known, name)) return exchange;
  }
  return std::nullopt;
}

void says_context_exchange(SaidSettings& said, const ConfigValue& value) {
  one_of(value, megatron_exchange_names());
  said.context_exchange = exchange_from_megatron_name(value.text());
}

void says_fp8_recipe(SaidSettings& said, const ConfigValue& value) {
  static constexpr std::string_view words[] = {"delayed", "tensorwise", "current", "blockwise", "mxfp8"};
  static constexpr std::string_view recipes[] = {"fp8-delayed", "fp8-current", "fp8-current", "fp8-block", "mxfp8"};
  said.precision = recipes[one_of(value, words)];
}

void keep_recompute_layers_of_blocks(SaidSettings& said, const ConfigEntry* method) {
  if (method == nullptr || method->value != "block") said.recompute_layers.reset();
}

void says_optimizer_sharding(SaidSettings& said, const ConfigValue& value) {
  if (value.flag() && !said.sharding) said.sharding = Sharding::optimizer;
}

void says_full_sharding(SaidSettings& said, const ConfigValue& value) {
  if (value.flag() && said.sharding.value_or(Sharding::optimizer) == Sharding::optimizer) {
    said.sharding = Sharding::parameters;
  }
}

std::span<const std::string_view> sharding_strategy_names() {
  static constexpr std::string_view words[] = {"no_shard", "optim", "optim_grads", "optim_grads_params"};
  return words;
}

void says_sharding_strategy(SaidSettings& said, const ConfigValue& value) {
  said.sharding = static_cast<Sharding>(one_of(value, sharding_strategy_names()));
}

}  // namespace foretoken
