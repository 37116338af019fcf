#include "kernel/fewshot/failed_rows.h"

#include <algorithm>

#include "base/statistics.h"
#include "kernel/fewshot/linear_fit.h"

namespace foretoken {
namespace {

constexpr double failed_share = 0.2;        // of the median
constexpr double unexplained_share = 1e-6;  // of the variance: less than any measurement leaves
constexpr size_t most_rows_looked_at = 2000;

}  // namespace

std::vector<size_t> far_below_median(std::span<const double> milliseconds) {
  std::vector<size_t> result;
  if (milliseconds.empty()) return result;
  const double median = quantile({milliseconds.begin(), milliseconds.end()}, 0.5);
  for (size_t i = 0; i < milliseconds.size(); ++i) {
    if (milliseconds[i] < failed_share * median) result.push_back(i);
  }
  return result;
}

bool is_sum_of_blocks(const ArchitectureSpace& space, const ArchitectureTable& architectures,
                      const DeviceLatencies& latencies) {
  if (space.block_prefix.empty()) return false;
  std::vector<size_t> blocks;
  const std::vector<std::string> names = space.feature_names();
  for (size_t f = 0; f < names.size(); ++f) {
    if (names[f].starts_with(space.block_prefix)) blocks.push_back(f);
  }
  const size_t count = std::min(latencies.rows.size(), most_rows_looked_at);
  if (count < 2 * blocks.size()) return false;
  std::vector<std::vector<double>> features;
  std::vector<size_t> rows;
  for (size_t i = 0; i < count; ++i) {
    std::vector<double> chosen;
    for (const size_t block : blocks) chosen.push_back(architectures.features[latencies.rows[i]][block]);
    features.push_back(std::move(chosen));
    rows.push_back(i);
  }
  const std::span<const double> targets(latencies.milliseconds.data(), count);
  constexpr double no_penalty = 1e-6;
  const LinearModel model = LinearFitter(features, rows, no_penalty).fit(targets);
  double unexplained = 0, total = 0;
  const double level = mean(targets);
  for (size_t i = 0; i < count; ++i) {
    const double error = targets[i] - model.at(features[i]);
    unexplained += error * error;
    total += (targets[i] - level) * (targets[i] - level);
  }
  return unexplained < unexplained_share * total;
}

UsableRows usable_rows(const ArchitectureSpace& space, const ArchitectureTable& architectures,
                       const DeviceLatencies& latencies) {
  UsableRows usable{.sum_of_blocks = is_sum_of_blocks(space, architectures, latencies)};
  const std::vector<size_t> failed =
      usable.sum_of_blocks ? std::vector<size_t>{} : far_below_median(latencies.milliseconds);
  usable.failed = failed.size();
  for (size_t i = 0; i < latencies.rows.size(); ++i) {
    if (!std::binary_search(failed.begin(), failed.end(), i)) usable.positions.push_back(i);
  }
  return usable;
}

}  // namespace foretoken
