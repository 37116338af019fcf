// vLLM's --speculative-config, with what only a simulation needs to be told: how many drafts are accepted.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "serving/speculation/draft_method.h"
#include "serving/speculation/speculation.h"
#include "serving/speculation/usual_acceptance.h"

namespace foretoken {

struct SpeculativeConfig {
  const DraftMethod* method = nullptr;
  std::string model;                       // of the drafter; empty = the method's own
  std::string quantization;                // of it; empty = as its config says
  int64_t draft_tensor_parallel_size = 0;  // 0 = the target's
  int64_t num_speculative_tokens = 0;
  int64_t tree_tokens = 0;            // drafts verified in a step; 0 = one chain
  int64_t disable_by_batch_size = 0;  // 0 = never
  int64_t draft_context = 0;          // 0 = the drafter reads its whole cache
  std::optional<Acceptance> acceptance;
  std::vector<Acceptance> unknown_acceptance = {};  // low and high, where it is the method's usual one
  bool acceptance_is_usual = false;                 // assumed of the method alone: the texts decide
  bool same_for_all = false;                        // of Speculation

  // SGLang calls the prediction layer that a model was trained with EAGLE too: without a drafter, that is meant.
  void use_own_layer_of(const Model& target);
  void assume(const UnknownAcceptance& assumed);
  // What is usual for the method over such texts.
  void assume_usual(PromptTexts texts = PromptTexts::natural);
  // As schedulers take it. The acceptance must be known.
  Speculation speculation() const;
};

// New tokens of one decode in a step: its own, and the drafts it verifies.
int64_t tokens_of_decode(const std::optional<SpeculativeConfig>& config);

// JSON with the keys of the struct, as in vLLM (tree_tokens and draft_context are ours), and for the acceptance one of
//   synthetic_acceptance_rates   chances that all drafts up to each position are accepted (vLLM)
//   synthetic_acceptance_length  mean tokens of a verification (vLLM)
//   synthetic_acceptance_rate    mean share of the drafts accepted (vLLM)
//   acceptance_rate              chance of each draft given those before it; acceptance_decay times it further on, or
//                                acceptance_spread more or less from request to request
//   acceptance_distribution      weights of 0, 1, 2, ... accepted drafts
// num_speculative_tokens may be left out for methods that draft a block: the method's usual one less its first token.
// InputError with path, value and expectation.
SpeculativeConfig parse_speculative_config(std::string_view text, const std::string& source);
// Whether it reads such a key.
bool is_speculative_key(std::string_view key);

}  // namespace foretoken
