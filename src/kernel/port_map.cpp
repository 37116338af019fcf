#include "kernel/port_map.h"

#include <algorithm>

#include "base/portable_math.h"
#include "base/statistics.h"

namespace foretoken {

void PortMap::add(const ScoredKernel& scored) {
  const double roofline = std::max(scored.predicted.compute, scored.predicted.memory).value();
  rows_[{std::string(scored.family), std::string(scored.device)}].push_back(
      {.roofline_seconds = roofline, .efficiency = roofline / (scored.measured_us * 1e-6)});
}

std::vector<FamilyPortability> PortMap::families() const {
  std::vector<FamilyPortability> families;
  for (const auto& [key, unsorted] : rows_) {
    std::vector<Row> rows = unsorted;
    std::stable_sort(rows.begin(), rows.end(),
                     [](const Row& a, const Row& b) { return a.roofline_seconds > b.roofline_seconds; });
    size_t saturated = 0;
    while (saturated < rows.size() && rows[saturated].roofline_seconds >= saturated_seconds) ++saturated;
    if (saturated < least_rows) saturated = std::min(rows.size(), std::max(least_rows, rows.size() / 10));
    std::vector<double> efficiencies;
    for (size_t i = 0; i < saturated; ++i) efficiencies.push_back(rows[i].efficiency);
    if (families.empty() || families.back().family != key.first) families.push_back({.family = key.first});
    families.back().devices.push_back({.device = key.second, .mean = mean(efficiencies), .rows = saturated});
  }
  for (FamilyPortability& family : families) {
    std::vector<double> means, logarithms;
    for (const DeviceEfficiency& device : family.devices) {
      means.push_back(device.mean);
      logarithms.push_back(portable_log(device.mean));
    }
    family.efficiency = mean(means);
    family.spread = standard_deviation(logarithms);
  }
  return families;
}

}  // namespace foretoken
