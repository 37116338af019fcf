#include "report/serving/first_token_note.h"

#include <fmt/format.h>

#include "base/text.h"
#include "serving/serving_run.h"

namespace foretoken {

std::string first_token_note(const SimulationConfig& config) {
  const FirstTokenDoubt doubt = first_token_doubt(config);
  if (doubt.high <= 1) return {};
  return fmt::format(
      "Nine in ten published runs with {} measured {} to {} times the simulated TTFT; why is not known. The interval "
      "of "
      "TTFT includes this.",
      config.disaggregation ? "separate prefill and decode workers" : "attention ranks that take every step together",
      number_text(doubt.low), number_text(doubt.high));
}

}  // namespace foretoken
