// The flags of outputs that begin with thoughts.
#pragma once

#include <cstdint>

#include "app/cli/grammar/options.h"
#include "serving/load/thinking.h"

namespace foretoken {

struct ThinkingFlags {
  int64_t tokens = 0;  // 0 = nothing is thought
  double sigma = 1, share = 1, hard_share = 0;
  int64_t hard_tokens = 0;

  static constexpr const char* heading = "Load: thinking (--thinking-len)";

  void declare(Options& options);
  // InputError for flags without their feature.
  void check_use(const Options& options) const;
  bool given() const { return tokens > 0; }
  ThinkingSettings settings() const;
};

}  // namespace foretoken
