#include "report/serving/sender_note.h"

#include <fmt/format.h>

#include "base/text.h"

namespace foretoken {

std::string sender_note(std::string_view stack, Seconds piece, double servers, const ServingMetrics& metrics) {
  if (piece.value() <= 0 || metrics.duration_s <= 0) return {};
  const double most = 1 / piece.value(), made = metrics.peak_output_tokens_per_s / servers;
  const double busy = static_cast<double>(metrics.output_tokens) / metrics.duration_s / servers / most;
  constexpr double often = 0.3;  // phases of prompts leave it idle
  if (made < most || busy < often) return {};
  return fmt::format(
      "One process of {} sends the answers and needs {} for each token of each request, so a server sends at most "
      "{:.0f} tokens/s. Its engine made up to {:.0f} tokens/s: the process limits the latency between tokens. More "
      "servers raise the limit; a larger stream interval would too, but it is not simulated.",
      stack, duration_text(piece.value()), most, made);
}

}  // namespace foretoken
