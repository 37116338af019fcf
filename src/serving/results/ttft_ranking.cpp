#include "serving/results/ttft_ranking.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace foretoken {

void TtftRanking::request_ended(const RequestRecord& record) {
  if (record.outcome == RequestOutcome::completed) completed_.push_back(record);
}

std::vector<RequestRecord> TtftRanking::between(double from, double to) const {
  if (completed_.empty()) return {};
  std::vector<RequestRecord> sorted = completed_;
  std::sort(sorted.begin(), sorted.end(), [](const RequestRecord& a, const RequestRecord& b) {
    return std::pair(a.ttft(), a.id) < std::pair(b.ttft(), b.id);
  });
  const auto place = [&](double percentile) {
    return static_cast<size_t>(std::lround(percentile / 100 * static_cast<double>(sorted.size() - 1)));
  };
  return {sorted.begin() + static_cast<std::ptrdiff_t>(place(from)),
          sorted.begin() + static_cast<std::ptrdiff_t>(place(to)) + 1};
}

std::optional<int64_t> TtftRanking::request_at(double percentile) const {
  const std::vector<RequestRecord> found = between(percentile, percentile);
  return found.empty() ? std::nullopt : std::optional(found.front().id);
}

}  // namespace foretoken
