#include "report/serving/first_token_note.h"

#include <fmt/format.h>

#include "base/text.h"
#include "serving/serving_run.h"

namespace foretoken {

std::string first_token_note(const SimulationConfig& config) {
  const FirstTokenDoubt doubt = first_token_doubt(config);
  if (doubt.high <= 1) return {};
  const bool is_apart = config.disaggregation.has_value();
  return fmt::format(
      "Published runs with {} measured {} to {} times the simulated TTFT (nine in ten), because {}. The interval of "
      "TTFT "
      "includes this.",
      is_apart ? "separate prefill and decode workers" : "attention ranks that take every step together",
      number_text(doubt.low), number_text(doubt.high),
      is_apart ? "requests also wait for routers and for places in workers, which depend on settings that are not known"
               : "how long ranks wait for each other's prompts depends on settings that are not known");
}

}  // namespace foretoken
