#include "kernel/edge/validate_edge.h"

#include <chrono>

#include <fmt/format.h>

namespace foretoken {

void EdgeScores::add(ScoredEdge scored, const std::function<Estimate()>& predict) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  scored.predicted = predict();
  const double spent = std::chrono::duration<double>(Clock::now() - start).count();
  tally_.add(scored.group,
             {.measured = scored.measured,
              .predicted = scored.predicted.value,
              .low = scored.predicted.low,
              .high = scored.predicted.high},
             spent);
  if (sink_) sink_(scored);
}

Validation EdgeScores::result() const {
  Validation validation{.skipped = skipped_};
  tally_.write(validation);
  return validation;
}

void score_edge_kernels(const EdgePredictor& predictor, std::span<const EdgeRow> rows, const std::string& file,
                        EdgeScores& scores) {
  for (const EdgeRow& row : rows) {
    const std::string_view kind = edge_kind_name(row.kernel.kind);
    if (!predictor.knows(row.kernel)) {
      scores.skip({.file = file, .row = row.row, .why = fmt::format("no sweep of kind {}", kind)});
      continue;
    }
    const std::string parameters = edge_parameters(row.kernel), group = fmt::format("{}/{}", predictor.device, kind);
    scores.add({.group = group, .name = kind, .parameters = parameters, .row = row.row, .measured = row.seconds},
               [&] { return predictor.kernel_seconds(row.kernel); });
  }
}

}  // namespace foretoken
