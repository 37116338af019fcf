// A many-turn agent, where nobody says more.
#pragma once

#include <cstdint>

namespace foretoken {

// Turns: SWE-agent solves its tasks in 12 steps (median; arXiv 2405.15793, section 5). Tokens: Mooncake's trace of
// tools and agents has outputs of 182 and prompts of 8,596 tokens in the mean (FAST 2025, table 1); with 12 turns
// behind 1,000 tokens of instructions that is 1,015 new ones each turn. All turns but the first follow a tool call.
struct AgentDefaults {
  int64_t turns = 12;
  int64_t system_tokens = 1000;
  int64_t input_tokens = 1015;
  int64_t output_tokens = 182;
  double tool_share = 1;
};

}  // namespace foretoken
