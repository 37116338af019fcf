#include "validate/images/validate_images.h"

#include <chrono>

#include "base/csv.h"
#include "base/error.h"
#include "compose/diffusion/image_estimate.h"

namespace foretoken {
namespace {

ScoredImageRow score(const CsvReader& table, const Library& library) {
  const auto text = [&](const char* column) { return std::string(table.cell(table.column(column))); };
  const auto number = [&](const char* column) { return table.number(table.column(column), {1e-6, 1e9}); };
  ScoredImageRow row{.device = text("device"),
                     .model = text("model"),
                     .part = text("part"),
                     .images = table.integer(table.column("images"), {1, 1024}),
                     .side = table.integer(table.column("side"), {16, 8192}),
                     .measured_ms = number("sustained_ms"),
                     .measured_gb = number("peak_gb")};
  if (row.part != "step" && row.part != "decoder") table.fail(table.column("part"), "step or decoder");
  const ImageSetup setup{.model = find_image_model(row.model, library),
                         .size = {.height = row.side, .width = row.side, .images = row.images}};
  const KernelPredictor predictor = library.predictor(row.device);
  const ImageEstimate estimate = estimate_image(setup, predictor, library.power_model(predictor.device()));
  const bool step = row.part == "step";
  const Estimate& seconds = step ? estimate.step.seconds : estimate.decoder.seconds;
  row.predicted_ms = 1e3 * seconds.value;
  row.low_ms = 1e3 * seconds.low;
  row.high_ms = 1e3 * seconds.high;
  const ImagePhaseMemory& memory = step ? estimate.memory.step : estimate.memory.decoder;
  row.predicted_gb = (memory.weights + memory.activations) / 1e9;
  return row;
}

}  // namespace

Validation validate_images(const std::filesystem::path& data, const Library& library, const ScoredImageSink& sink) {
  CsvReader table{data};
  Validation validation;
  ValidationTally tally(0.02);
  while (table.next()) {
    if (table.cell(table.column("mode")) != "compiled") continue;
    const auto start = std::chrono::steady_clock::now();
    try {
      const ScoredImageRow row = score(table, library);
      const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
      tally.add(row.part,
                {.measured = row.measured_ms, .predicted = row.predicted_ms, .low = row.low_ms, .high = row.high_ms},
                spent.count());
      if (sink) sink(row);
    } catch (const InputError& error) {
      validation.skipped.push_back({.file = table.source(), .row = table.row(), .why = error.sentence()});
    }
  }
  tally.write(validation);
  return validation;
}

}  // namespace foretoken
