#include "serving/runs/measured_run.h"

#include <algorithm>

#include "base/kinds.h"
#include "base/statistics.h"

namespace foretoken {
namespace {

struct StatusKind {
  std::string_view name;
  MeasuredStatus status;
};
constexpr StatusKind status_kinds[] = {{"completed", MeasuredStatus::completed},
                                       {"failed", MeasuredStatus::failed},
                                       {"timed_out", MeasuredStatus::timed_out},
                                       {"cancelled", MeasuredStatus::cancelled}};

constexpr double summary_percentiles[] = {50, 75, 90, 95, 99};

MeasuredLatency latency_of(std::vector<double> seconds) {
  MeasuredLatency latency;
  if (seconds.empty()) return latency;
  std::sort(seconds.begin(), seconds.end());
  latency.mean = mean(seconds);
  for (const double percentile : summary_percentiles) {
    latency.percentiles[percentile] = quantile_of_sorted(seconds, percentile / 100);
  }
  return latency;
}

}  // namespace

std::string_view measured_status_name(MeasuredStatus status) {
  return status_kinds[static_cast<size_t>(status)].name;
}

std::optional<MeasuredStatus> measured_status_from_name(std::string_view name) {
  const StatusKind* const kind = find_kind(status_kinds, name);
  return kind == nullptr ? std::nullopt : std::optional(kind->status);
}

std::vector<std::string> measured_status_names() {
  return kind_names(status_kinds);
}

MeasuredSummary summarize(const MeasuredRun& run, int64_t stage) {
  std::vector<double> ttft, tpot, itl, e2e;
  int64_t completed = 0, failed = 0, input_tokens = 0, output_tokens = 0;
  std::optional<double> begin, end;
  for (const MeasuredRequest& request : run.requests) {
    if (stage >= 0 && request.stage != stage) continue;
    begin = std::min(begin.value_or(request.sent()), request.sent());
    if (request.status != MeasuredStatus::completed) {
      ++failed;
      continue;
    }
    if (!request.has_times()) continue;
    ++completed;
    input_tokens += request.input_tokens;
    output_tokens += request.output_tokens;
    end = std::max(end.value_or(0), request.sent() + *request.e2e_s);
    ttft.push_back(*request.ttft_s);
    e2e.push_back(*request.e2e_s);
    if (const auto mean_gap = request.tpot_s()) tpot.push_back(*mean_gap);
    itl.insert(itl.end(), request.gaps_s.begin(), request.gaps_s.end());
  }
  MeasuredSummary summary{.ttft = latency_of(std::move(ttft)),
                          .tpot = latency_of(std::move(tpot)),
                          .itl = latency_of(std::move(itl)),
                          .e2e = latency_of(std::move(e2e))};
  if (completed == 0) return summary;
  summary.completed = completed;
  summary.failed = failed;
  if (const double seconds = *end - *begin; seconds > 0) {
    summary.request_throughput = static_cast<double>(completed) / seconds;
    summary.output_throughput = static_cast<double>(output_tokens) / seconds;
    summary.total_throughput = static_cast<double>(input_tokens + output_tokens) / seconds;
  }
  return summary;
}

}  // namespace foretoken
