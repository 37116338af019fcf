#include "serving/engine/launch_drafts.h"

#include <fmt/format.h>

#include "base/text.h"

namespace foretoken {
namespace {

struct DraftWord {
  LaunchStyle style;
  std::string_view method, word;
};
// Lines are written with the first. Methods that TensorRT-LLM's PyTorch backend lacks (eagle, medusa) have no word
// there: its Eagle is EAGLE-3.
constexpr DraftWord words[] = {
    {LaunchStyle::sglang, "mtp", "NEXTN"},
    {LaunchStyle::sglang, "draft_model", "STANDALONE"},
    {LaunchStyle::sglang, "eagle", "EAGLE"},
    {LaunchStyle::sglang, "eagle3", "EAGLE3"},
    {LaunchStyle::sglang, "dspark", "DSPARK"},
    {LaunchStyle::sglang, "dflash", "DFLASH"},
    {LaunchStyle::sglang, "ngram", "NGRAM"},
    {LaunchStyle::trtllm, "mtp", "MTP"},
    {LaunchStyle::trtllm, "eagle3", "Eagle3"},
    {LaunchStyle::trtllm, "eagle3", "Eagle"},
    {LaunchStyle::trtllm, "draft_model", "Draft_Target"},
    {LaunchStyle::trtllm, "ngram", "NGram"},
};

std::string method_of_word(LaunchStyle style, std::string_view word) {
  for (const DraftWord& known : words) {
    if (known.style == style && equal_ignoring_case(known.word, word)) return std::string(known.method);
  }
  return lower_case(word);
}

}  // namespace

Json draft_config(LaunchStyle style, const SaidDrafts& said) {
  const std::string method = method_of_word(style, said.algorithm);
  Json config = Json::object({{"method", method}});
  if (said.top_k.value_or(1) > 1 && said.draft_tokens) config.set("tree_tokens", *said.draft_tokens);
  if (said.steps) {
    config.set("num_speculative_tokens", *said.steps);
  } else if (said.draft_tokens) {
    config.set("num_speculative_tokens", *said.draft_tokens - 1);
  } else if (style == LaunchStyle::sglang &&
             (method == "mtp" || method == "draft_model" || method.starts_with("eagle"))) {
    // server_args.py: auto_choose_speculative_params. Heads beside the model draft a tree, all others a chain.
    const bool has_head = method.starts_with("eagle") && said.model;
    config.set("num_speculative_tokens", has_head ? 5 : 3);
    if (has_head) config.set("tree_tokens", 8);
  }
  if (said.model) config.set("model", *said.model);
  return config;
}

std::string draft_word(LaunchStyle style, const DraftMethod& method) {
  if (style == LaunchStyle::vllm) return method.block_drafts > 0 ? "" : std::string(method.name);
  for (const DraftWord& known : words) {
    if (known.style == style && known.method == method.name) return std::string(known.word);
  }
  return "";
}

std::string draft_weights(const SpeculativeConfig& config) {
  const bool brings_weights = config.method->network == nullptr || config.method == &draft_method("mtp") ||
                              config.method == &draft_method("dspark");
  return config.model.empty() && !brings_weights ? draft_placeholder : config.model;
}

std::vector<std::pair<std::string_view, std::string>> draft_flags(LaunchStyle style, const SpeculativeConfig& config) {
  const std::string word = draft_word(style, *config.method), weights = draft_weights(config);
  if (style == LaunchStyle::vllm) {
    const std::string model = weights.empty() ? "" : fmt::format(R"("model":"{}",)", weights);
    return {{"speculative_config", fmt::format(R"('{{"method":"{}",{}"num_speculative_tokens":{}}}')", word, model,
                                               config.num_speculative_tokens)}};
  }
  std::vector<std::pair<std::string_view, std::string>> flags = {{"speculative_algorithm", word}};
  if (!weights.empty()) flags.emplace_back("speculative_draft_model_path", weights);
  // Of these, one pass or a lookup makes all drafts.
  const bool has_steps = config.method->network != nullptr && config.method->block_drafts == 0;
  const int64_t verified = config.tree_tokens > 0 ? config.tree_tokens : config.num_speculative_tokens + 1;
  if (has_steps) {
    constexpr int64_t branches = 4;  // of a tree, as SGLang has by default
    flags.emplace_back("speculative_num_steps", fmt::format("{}", config.num_speculative_tokens));
    flags.emplace_back("speculative_eagle_topk", fmt::format("{}", config.tree_tokens > 0 ? branches : 1));
  }
  flags.emplace_back("speculative_num_draft_tokens", fmt::format("{}", verified));
  return flags;
}

std::string draft_option_line(const SpeculativeConfig& config) {
  const bool is_own_layer = config.method == &draft_method("mtp");
  const std::string weights = draft_weights(config);
  return fmt::format("speculative_config: {{decoding_type: {}, {}: {}{}}}",
                     draft_word(LaunchStyle::trtllm, *config.method),
                     is_own_layer ? "num_nextn_predict_layers" : "max_draft_len", config.num_speculative_tokens,
                     weights.empty() ? "" : ", speculative_model_dir: " + weights);
}

}  // namespace foretoken
