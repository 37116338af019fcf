#include "kernel/edge/validate_edge.h"

#include <chrono>

#include <fmt/format.h>

namespace foretoken {
namespace {

// Collects predictions and the time they took.
class EdgeScores {
 public:
  explicit EdgeScores(const ScoredEdgeSink& sink) : sink_(sink) {}

  void add(ScoredEdge scored, const std::function<Estimate()>& predict) {
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

  void write(Validation& validation) const { tally_.write(validation); }

 private:
  const ScoredEdgeSink& sink_;
  ValidationTally tally_{20e-6};
};

}  // namespace

Validation validate_edge_kernels(const EdgePredictor& predictor, std::span<const EdgeRow> rows, const std::string& file,
                                 const ScoredEdgeSink& sink) {
  Validation validation;
  EdgeScores scores(sink);
  for (const EdgeRow& row : rows) {
    const std::string_view kind = edge_kind_name(row.kernel.kind);
    if (!predictor.knows(row.kernel)) {
      validation.skipped.push_back({.file = file, .row = row.row, .why = fmt::format("no sweep of kind {}", kind)});
      continue;
    }
    const std::string parameters = edge_parameters(row.kernel);
    scores.add({.group = kind, .name = kind, .parameters = parameters, .row = row.row, .measured = row.seconds},
               [&] { return predictor.kernel_seconds(row.kernel); });
  }
  scores.write(validation);
  return validation;
}

Validation validate_edge_models(const EdgePredictor& predictor, std::span<const EdgeModelCase> models,
                                const ScoredEdgeSink& sink) {
  Validation validation;
  EdgeScores scores(sink);
  size_t row = 0;
  for (const EdgeModelCase& model : models) {
    scores.add({.group = model.name, .name = model.name, .row = ++row, .measured = model.seconds},
               [&] { return predictor.model_seconds(model.kernels); });
  }
  scores.write(validation);
  return validation;
}

}  // namespace foretoken
