#include "kernel/measured_rows.h"

#include <algorithm>
#include <cmath>

#include "kernel/forms/call.h"
#include "kernel/measurement_files.h"

namespace foretoken {
namespace {

double distance_between(const FormCall& a, const FormCall& b) {
  const auto left = raw_features(a), right = raw_features(b);
  double sum = 0;
  for (size_t i = 0; i < left.size(); ++i) {
    const double difference = static_cast<double>(left[i]) - static_cast<double>(right[i]);
    sum += difference * difference;
  }
  return std::sqrt(sum);
}

}  // namespace

std::vector<MeasuredRow> measured_rows_like(const KernelShape& shape, const std::string& device,
                                            const std::filesystem::path& folder, const HardwareCatalogue& hardware,
                                            const PredictorMaker& make_predictor) {
  const FormCall asked{.shape = shape, .variant = {}};
  const std::string formats = call_formats(asked);
  std::vector<MeasuredRow> rows;
  for (const MeasurementFile& file : find_measurement_files(folder).files) {
    const bool same_family = file.family != nullptr && file.family->name == family_name(shape);
    if (comparable_name(file.device) != comparable_name(device) || !same_family) continue;
    validate_kernels({.data = file.path, .threads = 1}, hardware, make_predictor, [&](const ScoredKernel& scored) {
      FormCall call{.shape = *scored.shape, .variant = {}};
      if (call_formats(call) != formats) return;
      const double distance = distance_between(asked, call);
      rows.push_back({.file = std::string(scored.file),
                      .row = scored.row,
                      .device = std::string(scored.device),
                      .variant = std::string(scored.variant),
                      .shape = std::move(call.shape),
                      .measured_seconds = scored.measured_us * 1e-6,
                      .predicted = scored.predicted,
                      .distance = distance});
    });
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const MeasuredRow& a, const MeasuredRow& b) { return a.distance < b.distance; });
  return rows;
}

}  // namespace foretoken
