// Outputs that begin with thoughts: how long those are.
#pragma once

#include <cstdint>
#include <memory>

#include "serving/load/lengths.h"

namespace foretoken {

// Thoughts of reasoning models have heavy tails: easy questions and hard ones, each lognormal.
struct ThinkingSettings {
  LognormalLength usual;  // tokens
  LognormalLength hard;   // of hard questions
  double hard_share = 0;  // of those that think, 0 to 1
  double share = 1;       // of outputs that begin with thoughts, 0 to 1
};

// Lengths of `inner`, whose outputs are the answers; thoughts come on top.
std::unique_ptr<LengthSource> with_thinking(std::unique_ptr<LengthSource> inner, const ThinkingSettings& settings,
                                            uint64_t seed);

}  // namespace foretoken
