#include "training/import/config_format.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "training/memory/training_formats.h"

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

void says_recompute_modules(SaidSettings& said, const ConfigValue& value) {
  std::string words = value.text();
  for (const char separator : {',', '[', ']'}) std::ranges::replace(words, separator, ' ');
  LayerModules modules;
  for (const std::string_view word : split_words(words, " ")) {
    const std::optional<LayerModule> module = layer_module_from_name(word);
    const std::vector<std::string> names = layer_module_names();
    if (!module) value.fail(fmt::format("words of {}", fmt::join(names, ", ")), nearest_name(word, names).value_or(""));
    modules.add(*module);
  }
  said.recompute_modules = modules;
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

// flex is DeepEP unless another backend is named; gathers are left to the stack.
void says_token_dispatcher(SaidSettings& said, const ConfigValue& value) {
  static constexpr std::string_view words[] = {"alltoall", "alltoall_seq", "flex", "allgather"};
  const size_t word = one_of(value, words);
  if (word <= 1) said.dispatcher = TokenDispatcher::all_to_all;
  if (word == 2 && !said.dispatcher) said.dispatcher = TokenDispatcher::deepep;
}

void says_flex_dispatcher(SaidSettings& said, const ConfigValue& value) {
  static constexpr std::string_view words[] = {"deepep", "hybridep"};
  said.dispatcher = one_of(value, words) == 0 ? TokenDispatcher::deepep : TokenDispatcher::hybridep;
}

void says_deepep(SaidSettings& said, const ConfigValue& value) {
  if (value.flag()) said.dispatcher = TokenDispatcher::deepep;
}

void says_fp8_recipe(SaidSettings& said, const ConfigValue& value) {
  static constexpr std::string_view words[] = {"delayed", "tensorwise", "current", "blockwise", "mxfp8"};
  static constexpr std::string_view recipes[] = {"fp8-delayed", "fp8-current", "fp8-current", "fp8-block", "mxfp8"};
  said.precision = recipes[one_of(value, words)];
}

void keep_recompute_layers_of_blocks(SaidSettings& said, const ConfigEntry* method) {
  if (method == nullptr || method->value != "block") said.recompute_layers.reset();
}

void take_usual_dropout(SaidSettings& said, std::string_view framework, std::vector<std::string>& notes) {
  std::vector<std::string_view> missing;
  if (!said.hidden_dropout) missing.emplace_back("hidden");
  if (!said.attention_dropout) missing.emplace_back("attention");
  if (missing.empty()) return;
  notes.push_back(fmt::format("no {} dropout is given; {}'s default is 0.1", fmt::join(missing, " or "), framework));
  if (!said.hidden_dropout) said.hidden_dropout = true;
  if (!said.attention_dropout) said.attention_dropout = true;
}

void take_expert_tensor_ranks(SaidSettings& said, std::vector<std::string>& notes) {
  const int64_t tensor = said.tensor.value_or(1), expert = said.expert.value_or(1);
  if (!said.experts && expert == 1) return;
  const int64_t ranks = said.expert_tensor.value_or(tensor), usual = std::max<int64_t>(1, tensor / expert);
  if (ranks == usual) return;
  const int64_t cut = expert * ranks;
  const std::string theirs =
      fmt::format("expert tensor parallelism of {} with {} tensor and {} expert ranks", ranks, tensor, expert);
  if (ranks > 1 && cut > tensor && said.experts && *said.experts % cut == 0) {
    said.expert = cut;
    notes.push_back(fmt::format(
        "{} is predicted as {} expert ranks, so that each GPU holds the same share of the experts", theirs, cut));
  } else {
    notes.push_back(fmt::format("{} is not modeled: {} is assumed", theirs, usual));
  }
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

void says_zero_stage(SaidSettings& said, const ConfigValue& value) {
  said.sharding = static_cast<Sharding>(value.count(0, 3));
}

bool is_offloaded(const ConfigValue& value) {
  static constexpr std::string_view words[] = {"none", "cpu", "nvme"};
  return one_of(value, words) != 0;
}

void says_bf16(SaidSettings& said, const ConfigValue& value) {
  if (equal_ignoring_case(value.text(), "auto") || equal_ignoring_case(value.text(), "full") || value.flag()) {
    said.precision = "bf16";
  }
}

void says_fp16(SaidSettings& said, const ConfigValue& value) {
  if (!equal_ignoring_case(value.text(), "auto") && value.flag()) said.precision = "fp16";
}

void says_gradient_checkpointing(SaidSettings& said, const ConfigValue& value) {
  const std::string& text = value.text();
  const bool offloads = contains_ignoring_case(text, "offload");
  const bool on = offloads || equal_ignoring_case(text, "unsloth") || value.flag();
  // Some frameworks have a second key for it, and either turns it on.
  if (on || !said.recompute) said.recompute = on ? Recompute::full : Recompute::none;
  if (offloads) said.offloads_activations = true;
}

void says_fused_loss(SaidSettings& said, const ConfigValue& value) {
  if (value.flag()) said.logit_bytes = 0;
}

void says_four_bits(SaidSettings& said, const ConfigValue& value) {
  if (value.flag()) said.base_weights = "nf4";
}

void says_eight_bits(SaidSettings& said, const ConfigValue& value) {
  if (value.flag()) said.base_weights = "int8";
}

// Names of transformers' OptimizerNames and of classes (torch.optim.AdamW, bitsandbytes.optim.PagedAdamW8bit).
void says_optimizer(SaidSettings& said, const ConfigValue& value) {
  const std::string name = lower_case(value.text());
  const bool eight_bits = name.find("8bit") != std::string::npos || name.find("adamw8") != std::string::npos;
  if (name.find("muon") != std::string::npos) {
    said.optimizer = "muon";
  } else if (name.find("adam") != std::string::npos && name.find("mini") == std::string::npos) {
    said.optimizer = eight_bits ? "adam-8bit" : "adam";
  } else if (name == "sgd" || name.ends_with(".sgd")) {
    said.optimizer = "sgd";  // none of these frameworks gives it momentum by itself
  }
}

void takes_momentum(SaidSettings& said, const ConfigEntries& entries, std::span<const std::string_view> keys) {
  if (said.optimizer != "sgd") return;
  for (const std::string_view key : keys) {
    const ConfigEntry* const entry = entries.find(key);
    if (entry == nullptr) continue;
    const size_t assigned = entry->value.find("momentum=");
    const std::string number = assigned == std::string::npos ? entry->value : entry->value.substr(assigned + 9);
    if (parse_number(number.substr(0, number.find(','))).value_or(0) > 0) said.optimizer = "sgd-momentum";
  }
}

void says_clipping(SaidSettings& said, const ConfigValue& value) {
  const std::string word = lower_case(value.text());
  said.clips_gradients = word != "null" && word != "none" && word != "~" && !word.empty() && parse_number(word) != 0;
}

void keeps_weights_in_16_bits(SaidSettings& said) {
  if (said.keeps_master_weights.value_or(false) || said.precision.value_or("bf16") != "bf16") return;
  const std::optional<OptimizerState> state = optimizer_state_from_name(said.optimizer.value_or("adam"));
  ensure(state.has_value(), "files say optimizers whose state is known");
  said.optimizer = optimizer_state_name(of_weights_in_16_bits(*state));
}

void runs_on_deepspeed(SaidSettings& said) {
  said.stack = "deepspeed";
  said.keeps_master_weights = true;
}

void note_unknown_optimizer(const SaidSettings& said, const ConfigEntries& entries, std::string_view key,
                            std::vector<std::string>& notes) {
  const ConfigEntry* entry = entries.find(key);
  if (entry == nullptr || said.optimizer) return;
  notes.push_back(fmt::format("optimizer {} is not modeled: the state of Adam is assumed", printable(entry->value)));
}

void note_other_objective(std::string_view key, std::string_view objective, std::vector<std::string>& notes) {
  notes.push_back(
      fmt::format("{} {} is not modeled, but changes time and memory: other models and answers run beside the trained "
                  "ones, and this is the prediction for supervised training",
                  key, printable(objective)));
}

void says_lora_targets(SaidSettings& said, const ConfigValue& value) {
  constexpr std::string_view attention[] = {"q_proj",      "k_proj", "v_proj", "o_proj",     "qkv",
                                            "output_proj", "c_attn", "query",  "linear_proj"};
  constexpr std::string_view mlp[] = {"gate_proj", "up_proj", "down_proj", "fc1", "fc2", "c_fc", "dense_h_to_4h"};
  const std::string& text = value.text();
  const auto names = [&](std::string_view word) { return contains_ignoring_case(text, word); };
  if (contains_ignoring_case(text, "all")) {
    said.lora_on_attention = said.lora_on_mlp = true;
    return;
  }
  const bool on_attention = std::ranges::any_of(attention, names), on_mlp = std::ranges::any_of(mlp, names);
  if (!on_attention && !on_mlp) value.fail("names of linear layers, such as q_proj or up_proj, or all-linear");
  said.lora_on_attention = on_attention;
  said.lora_on_mlp = on_mlp;
}

void says_deepspeed_file(SaidSettings& said, const ConfigValue& value) {
  const std::string name = lower_case(value.text());
  for (int64_t stage = 1; stage <= 3; ++stage) {
    for (const char* spelled : {"zero{}", "zero_{}", "zero-{}", "z{}"}) {
      if (name.find(fmt::format(fmt::runtime(spelled), stage)) == std::string::npos) continue;
      said.sharding = static_cast<Sharding>(stage);
    }
  }
  if (!said.sharding) value.fail("a DeepSpeed file with its stage in its name, such as zero3.json");
  runs_on_deepspeed(said);
  if (name.find("offload") == std::string::npos) return;
  const bool parameters_alone = name.find("params") != std::string::npos;
  said.offloads_optimizer = !parameters_alone;
  said.offloads_parameters = said.sharding == Sharding::parameters;
}

void says_fsdp_words(SaidSettings& said, const ConfigValue& value) {
  const std::string& text = value.text();
  const auto has = [&](std::string_view word) { return contains_ignoring_case(text, word); };
  if (has("offload")) said.offloads_parameters = said.offloads_optimizer = true;
  if (has("shard_grad_op")) {
    said.sharding = Sharding::gradients;
  } else if (has("no_shard")) {
    said.sharding = Sharding::none;
  } else if (has("shard")) {
    said.sharding = Sharding::parameters;
  }
}

void says_fsdp_strategy(SaidSettings& said, const ConfigValue& value) {
  static constexpr std::string_view words[] = {
      "1", "2", "3", "4", "5", "FULL_SHARD", "SHARD_GRAD_OP", "NO_SHARD", "HYBRID_SHARD", "HYBRID_SHARD_ZERO2"};
  constexpr Sharding shardings[] = {Sharding::parameters, Sharding::gradients, Sharding::none, Sharding::parameters,
                                    Sharding::gradients};
  const size_t word = one_of(value, words) % 5;
  said.sharding = shardings[word];
  // A hybrid shards inside each node.
  if (word >= 3 && said.devices_per_node) said.shard_ranks = said.devices_per_node;
}

void says_fsdp_reshard(SaidSettings& said, const ConfigValue& value) {
  if (contains_ignoring_case(value.text(), "shard")) return says_fsdp_strategy(said, value);
  said.sharding = value.flag() ? Sharding::parameters : Sharding::gradients;
}

void says_rotate_method(SaidSettings& said, const ConfigValue& value) {
  static constexpr std::string_view words[] = {"allgather", "alltoall"};
  said.context_exchange = one_of(value, words) == 1 ? ContextExchange::ring : ContextExchange::all_gather;
}

}  // namespace foretoken
