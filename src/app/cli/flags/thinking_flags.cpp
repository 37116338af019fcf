#include "app/cli/flags/thinking_flags.h"

#include "base/error.h"

namespace foretoken {

void ThinkingFlags::declare(Options& options) {
  constexpr Range<int64_t> lengths{.least = 0, .most = 1'000'000};
  options.heading(heading);
  options.integer("--thinking-len", tokens, lengths,
                  "Mean number of thinking tokens before each answer, in addition to the output (lognormal). Later "
                  "turns of a conversation do not repeat them");
  options.number("--thinking-sigma", sigma, {.least = 0, .most = 10},
                 "Standard deviation of the logarithm of the number of thinking tokens");
  options.number("--thinking-share", share, {.least = 0, .most = 1}, "Share of requests that think");
  options.number("--thinking-hard-share", hard_share, {.least = 0, .most = 1},
                 "Share of thinking requests with a hard question, which think for --thinking-hard-len tokens instead");
  options.integer("--thinking-hard-len", hard_tokens, lengths, "Mean number of thinking tokens for a hard question");
}

void ThinkingFlags::check_use(const Options& options) const {
  if (!given()) options.refuse_without("--thinking-len", {}, {heading});
  if ((hard_share > 0) != (hard_tokens > 0)) {
    throw InputError({.source = hard_share > 0 ? "--thinking-hard-len" : "--thinking-hard-share",
                      .expected = "both --thinking-hard-share and --thinking-hard-len, or neither"});
  }
}

ThinkingSettings ThinkingFlags::settings() const {
  return {.usual = {.mean = static_cast<double>(tokens), .sigma = sigma},
          .hard = {.mean = static_cast<double>(hard_tokens > 0 ? hard_tokens : tokens), .sigma = sigma},
          .hard_share = hard_share,
          .share = share};
}

}  // namespace foretoken
