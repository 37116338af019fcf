#include "plan/serving/trial_observers.h"

namespace foretoken {

LateRequests::LateRequests(const std::vector<LatencySlo>& slos, int64_t requests) : requests_(requests) {
  for (const LatencySlo& slo : slos) {
    if (slo.metric == SloMetric::itl) continue;
    const auto place = static_cast<int64_t>(slo.percentile / 100 * static_cast<double>(requests - 1));
    limits_.push_back({.metric = slo.metric,
                       .most = static_cast<Picoseconds>(std::min(slo.limit_ms * 1e9 * (1 + 1e-9), 9e18)),
                       .until_lost = requests - place});
  }
}

void LateRequests::request_ended(const RequestRecord& record) {
  ++ended_;
  if (record.outcome != RequestOutcome::completed) return;
  for (Limit& limit : limits_) {
    const Picoseconds took = limit.metric == SloMetric::ttft   ? record.ttft()
                             : limit.metric == SloMetric::tpot ? record.tpot()
                                                               : record.e2el();
    if (took > limit.most && --limit.until_lost == 0) throw LimitIsLost();
  }
}

void SteadyOutput::request_ended(const RequestRecord& record) {
  if (record.outcome != RequestOutcome::completed) return;
  const Picoseconds within = std::min(record.last_token, end_) - std::max(record.first_token, begin_);
  if (within <= 0) return;
  tokens_ += static_cast<double>(record.output_tokens) * static_cast<double>(within) /
             static_cast<double>(std::max<Picoseconds>(1, record.last_token - record.first_token));
}

}  // namespace foretoken
