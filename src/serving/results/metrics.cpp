#include "serving/results/metrics.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/simulated_time.h"

namespace foretoken {
namespace {

constexpr Picoseconds one_second = 1'000'000'000'000;

bool within(const std::optional<double>& limit_ms, Picoseconds time) {
  return !limit_ms || to_seconds(time).value() * 1e3 <= *limit_ms;
}

}  // namespace

LatencySummary latency_summary(const LatencyDistribution& values, const std::vector<double>& percentiles) {
  std::vector<double> shares = {0.5};
  for (const double percentile : percentiles) shares.push_back(percentile / 100);
  std::vector<double> quantiles = values.quantiles_seconds(shares);
  for (double& value : quantiles) value *= 1e3;
  return {.mean_ms = values.mean_seconds() * 1e3,
          .median_ms = quantiles.front(),
          .deviation_ms = values.deviation_seconds() * 1e3,
          .percentiles_ms = {quantiles.begin() + 1, quantiles.end()}};
}

MetricsCollector::MetricsCollector(Picoseconds first_arrival, const LatencyGoals& goals)
    : begin_(first_arrival), goals_(goals), end_(first_arrival) {}

void MetricsCollector::request_ended(const RequestRecord& record) {
  if (record.outcome == RequestOutcome::rejected) {
    ++totals_.rejected;
    ++totals_.rejected_for[static_cast<size_t>(record.rejection)];
    return;
  }
  ++totals_.completed;
  totals_.input_tokens += record.input_tokens;
  totals_.output_tokens += record.output_tokens;
  totals_.preemptions += record.preemptions;
  totals_.shortened += record.shortened ? 1 : 0;
  totals_.cached_tokens += record.cached_tokens;
  const Picoseconds ttft = record.ttft(), tpot = record.tpot(), e2el = record.e2el();
  ttft_.add(ttft);
  e2el_.add(e2el);
  queue_.add(record.scheduled - record.arrival);
  if (record.has_gaps()) tpot_.add(tpot);
  if (meets_goals(ttft, tpot, e2el)) ++good_;
  end_ = std::max(end_, record.last_token);
  count_tokens(record.first_token, record.output_tokens > 0 ? 1 : 0);  // embeddings end without a token
  const size_t last = second_of(record.last_token) + 1;
  if (in_flight_.size() <= last) in_flight_.resize(last + 1);
  ++in_flight_[second_of(record.arrival)];
  --in_flight_[last];
}

void MetricsCollector::step_ran(const StepRecord& step) {
  if (step.decode_tokens == 0) return;
  const Picoseconds length = step.end - step.begin;
  // Steps of one length: those that have ended by a time.
  const auto ended_by = [&](Picoseconds time) -> int64_t {
    if (time >= step.end) return step.repeats;
    return static_cast<int64_t>(static_cast<double>(time - step.begin) / static_cast<double>(length) *
                                static_cast<double>(step.repeats));
  };
  int64_t counted = 0;
  Picoseconds time = step.begin;
  while (counted < step.repeats) {
    const Picoseconds second_end = begin_ + static_cast<Picoseconds>(second_of(time) + 1) * one_second;
    const int64_t ended = ended_by(second_end - 1);
    count_tokens(time, (ended - counted) * (step.decode_tokens + step.accepted_tokens));
    counted = ended;
    time = second_end;
  }
}

bool MetricsCollector::meets_goals(Picoseconds ttft, Picoseconds tpot, Picoseconds e2el) const {
  return within(goals_.ttft_ms, ttft) && within(goals_.tpot_ms, tpot) && within(goals_.e2el_ms, e2el);
}

size_t MetricsCollector::second_of(Picoseconds time) const {
  ensure(time >= begin_, "nothing happens before the first request is sent");
  return static_cast<size_t>((time - begin_) / one_second);
}

void MetricsCollector::count_tokens(Picoseconds time, int64_t tokens) {
  if (tokens == 0) return;
  const size_t second = second_of(time);
  if (tokens_.size() <= second) tokens_.resize(second + 1);
  tokens_[second] += tokens;
}

ServingMetrics MetricsCollector::metrics(const std::vector<double>& percentiles) const {
  ServingMetrics result = totals_;
  result.duration_s = to_seconds(end_ - begin_).value();
  if (result.duration_s > 0) {
    result.request_throughput = static_cast<double>(result.completed) / result.duration_s;
    result.output_throughput = static_cast<double>(result.output_tokens) / result.duration_s;
    result.total_token_throughput = static_cast<double>(result.input_tokens + result.output_tokens) / result.duration_s;
    if (goals_.any()) result.goodput = static_cast<double>(good_) / result.duration_s;
  }
  if (!tokens_.empty()) {
    result.peak_output_tokens_per_s = static_cast<double>(*std::max_element(tokens_.begin(), tokens_.end()));
  }
  int64_t in_flight = 0;
  for (const int64_t change : in_flight_) {
    in_flight += change;
    result.peak_concurrent_requests = std::max(result.peak_concurrent_requests, in_flight);
  }
  result.ttft = latency_summary(ttft_, percentiles);
  result.tpot = latency_summary(tpot_, percentiles);
  result.itl = latency_summary(itl_, percentiles);
  result.e2el = latency_summary(e2el_, percentiles);
  result.queue = latency_summary(queue_, percentiles);
  result.exact = ttft_.is_exact() && itl_.is_exact();
  return result;
}

}  // namespace foretoken
