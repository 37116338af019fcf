#include "serving/results/latency_curves.h"

namespace foretoken {

void LatencyCurves::request_ended(const RequestRecord& record) {
  if (record.outcome != RequestOutcome::completed) return;
  ttft_.add(record.ttft());
  e2el_.add(record.e2el());
  if (record.has_gaps()) tpot_.add(record.tpot());
}

LatencyCurves::Curve LatencyCurves::curve(const LatencyDistribution& values) {
  Curve result;
  if (values.count() == 0) return result;
  // Every percent, and the tail more finely.
  std::vector<double> shares;
  for (int percent = 0; percent < 99; ++percent) shares.push_back(percent / 100.0);
  for (int tenth = 0; tenth <= 10; ++tenth) shares.push_back(0.99 + tenth / 1000.0);
  const std::vector<double> seconds = values.quantiles_seconds(shares);
  for (size_t i = 0; i < shares.size(); ++i) result.emplace_back(seconds[i] * 1e3, shares[i] * 100);
  return result;
}

}  // namespace foretoken
