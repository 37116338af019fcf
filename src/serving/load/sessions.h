// Conversations: each turn is sent some time after the answer to the one before, with all that was said so far.
#pragma once

#include <cstdint>
#include <memory>

#include "serving/load/arrivals.h"
#include "serving/load/lengths.h"
#include "serving/requests/request.h"

namespace foretoken {

struct SessionSettings {
  ArrivalSettings starts;     // of conversations; its count is that of conversations
  int64_t turns = 4;          // requests of one conversation
  int64_t system_tokens = 0;  // shared by all conversations, in front of the first turn
  double think_s = 10;        // mean time a person reads and types before the next turn; exponential
  double tool_s = 1;          // mean time a tool runs instead; exponential
  double tool_share = 0;      // of turns that follow a tool call rather than a person, 0 to 1
  // After such a share of its turns a conversation hands work to so many agents at once, each a conversation of its own
  // that begins with the system prompt. It goes on when all have ended, with their last answers in its next prompt.
  int64_t subagents = 0;
  int64_t subagent_turns = 1;
  double subagent_share = 1;
  int64_t longest = 1'000'000;  // a conversation ends once it has so many tokens, or at a turn that is rejected
};

// InputError names the flag.
void check_sessions(const SessionSettings& settings);

// `lengths` gives the new tokens of each turn and the output. Prefix blocks tell that a turn repeats what came before,
// the outputs included. What was thought is not repeated: the answer behind it then stands elsewhere, and is computed
// again.
std::unique_ptr<RequestSource> session_load(const SessionSettings& settings, std::unique_ptr<LengthSource> lengths,
                                            uint64_t seed);

}  // namespace foretoken
