#include "serving/results/thinking_metrics.h"

#include <algorithm>

namespace foretoken {

void ThinkingMetrics::request_ended(const RequestRecord& record) {
  if (record.outcome != RequestOutcome::completed || record.thinking_tokens == 0) return;
  ++counts_.requests;
  counts_.tokens += std::min(record.thinking_tokens, record.output_tokens);
  if (record.answered > 0) {
    answer_.add(record.answered - record.arrival);
  } else {
    ++counts_.cut;
  }
}

ThinkingSummary ThinkingMetrics::summary(const std::vector<double>& percentiles) const {
  ThinkingSummary result = counts_;
  result.answer = latency_summary(answer_, percentiles);
  return result;
}

}  // namespace foretoken
