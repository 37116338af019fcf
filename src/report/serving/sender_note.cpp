#include "report/serving/sender_note.h"

#include <fmt/format.h>

#include "base/text.h"

namespace foretoken {

std::string sender_note(std::string_view stack, Seconds piece, int64_t piece_tokens, double servers,
                        const ServingMetrics& metrics) {
  if (piece.value() <= 0 || metrics.duration_s <= 0) return {};
  const double most = static_cast<double>(piece_tokens) / piece.value();
  const double made = metrics.peak_output_tokens_per_s / servers;
  const double busy = static_cast<double>(metrics.output_tokens) / metrics.duration_s / servers / most;
  constexpr double often = 0.3;  // phases of prompts leave it idle
  if (made < most || busy < often) return {};
  return fmt::format(
      "One process of {} sends the answers and needs {} for {} of each request, so a server sends at most "
      "{:.0f} tokens/s. Its engine made up to {:.0f} tokens/s: the process limits the latency between tokens. More "
      "servers ({{replicas}}) or larger pieces ({{stream_interval}}) raise the limit.",
      stack, duration_text(piece.value()),
      piece_tokens == 1 ? std::string("each token") : fmt::format("every {} tokens", piece_tokens), most, made);
}

}  // namespace foretoken
