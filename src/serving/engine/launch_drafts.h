// Speculative decoding in launch lines: what engines call methods, read and written.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "compose/serving_engine.h"
#include "serving/speculation/speculative_config.h"

namespace foretoken {

// What a line of SGLang or TensorRT-LLM says of drafts, flag by flag.
struct SaidDrafts {
  std::string algorithm;
  std::optional<int64_t> steps, draft_tokens, top_k;
  std::optional<std::string> model;
};
// The same with vLLM's keys, and the engine's numbers where it says none.
Json draft_config(LaunchStyle style, const SaidDrafts& said);

// The method in the engine's word, as the line names it; empty = the engine has none.
std::string draft_word(LaunchStyle style, const DraftMethod& method);

// Draft weights that no method brings along: the placeholder where `config` names none; empty = none are needed.
std::string draft_weights(const SpeculativeConfig& config);
inline constexpr const char* draft_placeholder = "DRAFT-MODEL";

// What turns `config` on: fields of launch_flags.h for vLLM and SGLang, one line of its options file for TensorRT-LLM.
std::vector<std::pair<std::string_view, std::string>> draft_flags(LaunchStyle style, const SpeculativeConfig& config);
std::string draft_option_line(const SpeculativeConfig& config);

}  // namespace foretoken
