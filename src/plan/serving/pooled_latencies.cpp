#include "plan/serving/pooled_latencies.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/error.h"
#include "base/normal_distribution.h"

namespace foretoken {
namespace {

// A limit is exceeded by more than what rounding of picoseconds may add.
bool is_late(Picoseconds took, const LatencySlo& slo) {
  return static_cast<double>(took) > slo.limit_ms * 1e9 * (1 + 1e-9);
}

// The least value of a convex function between two places.
double least_of_convex(const std::function<double(double place)>& value, double low, double high) {
  constexpr int thirds = 60;
  for (int i = 0; i < thirds; ++i) {
    const double third = (high - low) / 3;
    const bool falls = value(low + third) > value(high - third);
    (falls ? low : high) = falls ? low + third : high - third;
  }
  return value((low + high) / 2);
}

}  // namespace

// The first terms of its expansion in the degrees of freedom (Abramowitz and Stegun, 26.7.5).
double student_95(size_t values) {
  constexpr double z = normal_half_width_90, cube = z * z * z, fifth = cube * z * z;
  const auto freedom = static_cast<double>(values - 1);
  return z + (cube + z) / (4 * freedom) + (5 * fifth + 16 * cube + 3 * z) / (96 * freedom * freedom);
}

Picoseconds LatencyLog::Took::of(SloMetric metric) const {
  switch (metric) {
    case SloMetric::ttft:
      return ttft;
    case SloMetric::tpot:
      return tpot;
    case SloMetric::e2el:
      return e2el;
    case SloMetric::itl:
      break;
  }
  return none;
}

void LatencyLog::request_ended(const RequestRecord& record) {
  if (record.outcome != RequestOutcome::completed) return;
  const auto place = static_cast<size_t>(record.id);
  // Of conversations, nobody knows before how many requests there will be.
  if (place >= took_.size()) took_.resize(place + 1);
  took_[place] = {.ttft = record.ttft(), .tpot = record.has_gaps() ? record.tpot() : none, .e2el = record.e2el()};
}

void LatencyLog::set(size_t request, SloMetric metric, Picoseconds took) {
  Took& one = took_.at(request);
  (metric == SloMetric::ttft ? one.ttft : metric == SloMetric::tpot ? one.tpot : one.e2el) = took;
}

// Those above a percentile of all runs may all be of this one; percentile_ms() takes two of the values.
LatencyLog LatencyLog::thinned(std::span<const LatencySlo> limits, int64_t runs) const {
  LatencyLog thin(static_cast<int64_t>(took_.size()));
  for (const LatencySlo& slo : limits) {
    if (slo.metric == SloMetric::itl) continue;
    std::vector<Picoseconds> longest;
    for (const Took& one : took_) {
      if (one.of(slo.metric) != none) longest.push_back(one.of(slo.metric));
    }
    const double above = (1 - slo.percentile / 100) * static_cast<double>(took_.size()) * static_cast<double>(runs);
    const size_t kept = std::min(longest.size(), static_cast<size_t>(above) + 3);
    std::nth_element(longest.begin(), longest.begin() + static_cast<std::ptrdiff_t>(kept) - (kept > 0 ? 1 : 0),
                     longest.end(), std::greater<>());
    const Picoseconds least = kept > 0 ? longest[kept - 1] : 0;
    for (size_t i = 0; i < took_.size(); ++i) {
      const Picoseconds took = took_[i].of(slo.metric);
      const bool is_kept = took == none || took >= least || is_late(took, slo);
      const bool is_kept_already = thin.took_[i].of(slo.metric) > 0;
      if (!is_kept_already) thin.set(i, slo.metric, is_kept ? took : 0);
    }
  }
  return thin;
}

void PooledLatencies::add(const LatencyLog& run) {
  runs_.push_back(run.requests());
}

double PooledLatencies::percentile_ms(const LatencySlo& slo) const {
  ensure(slo.metric != SloMetric::itl, "gaps between tokens are not kept for each request");
  std::vector<Picoseconds> all;
  for (const std::vector<LatencyLog::Took>& run : runs_) {
    for (const LatencyLog::Took& one : run) {
      if (one.of(slo.metric) != LatencyLog::none) all.push_back(one.of(slo.metric));
    }
  }
  if (all.empty()) return 0;
  const double place = slo.percentile / 100 * static_cast<double>(all.size() - 1);
  const auto below = static_cast<size_t>(place);
  const auto middle = all.begin() + static_cast<std::ptrdiff_t>(below);
  std::nth_element(all.begin(), middle, all.end());
  const auto low = static_cast<double>(*middle);
  if (below + 1 >= all.size()) return low / 1e9;
  const auto high = static_cast<double>(*std::min_element(middle + 1, all.end()));
  return (low + (high - low) * (place - static_cast<double>(below))) / 1e9;
}

std::vector<PooledLatencies::Batch> PooledLatencies::batches(std::span<const LatencySlo> limits) const {
  std::vector<Batch> all;
  for (const std::vector<LatencyLog::Took>& run : runs_) {
    // Equal ones, of which none spans two runs.
    const auto requests = static_cast<int64_t>(run.size());
    const int64_t number = std::max<int64_t>(1, requests / batch);
    const size_t first = all.size();
    all.resize(first + static_cast<size_t>(number));
    for (int64_t i = 0; i < requests; ++i) {
      Batch& own = all[first + static_cast<size_t>(i * number / requests)];
      bool has_any = false, late = false;
      for (const LatencySlo& slo : limits) {
        const Picoseconds took = run[static_cast<size_t>(i)].of(slo.metric);
        if (took == LatencyLog::none) continue;
        has_any = true;
        late = late || is_late(took, slo);
      }
      own.all += has_any ? 1 : 0;
      own.late += late ? 1 : 0;
    }
  }
  return all;
}

PooledLatencies::Batch PooledLatencies::sum_of(const std::vector<Batch>& batches) {
  Batch sum;
  for (const Batch& one : batches) {
    sum.late += one.late;
    sum.all += one.all;
  }
  return sum;
}

double PooledLatencies::late_share(std::span<const LatencySlo> limits) const {
  const Batch sum = sum_of(batches(limits));
  return sum.all > 0 ? sum.late / sum.all : 0;
}

double PooledLatencies::late_share_at_most(std::span<const LatencySlo> limits) const {
  return at_most(batches(limits));
}

// Batches that are all alike make the least of their mean and of its error.
double PooledLatencies::late_share_at_most_of(size_t runs, std::span<const LatencySlo> limits) const {
  const std::vector<Batch> known = batches(limits);
  if (runs <= runs_.size() || known.empty()) return at_most(known);
  const size_t others = known.size() / runs_.size() * (runs - runs_.size());
  const double most = static_cast<double>(runs_.front().size()) /
                      (static_cast<double>(known.size()) / static_cast<double>(runs_.size()));
  return least_of_convex(
      [&](double late) {
        std::vector<Batch> all = known;
        all.insert(all.end(), others, {.late = late, .all = most});
        return at_most(all);
      },
      0, most);
}

double PooledLatencies::at_most(const std::vector<Batch>& all) {
  const Batch sum = sum_of(all);
  if (sum.all <= 0) return 0;
  const double share = sum.late / sum.all;
  if (all.size() < 2) return share;
  double squares = 0;
  for (const Batch& one : all) {
    const double apart = one.late - share * one.all;
    squares += apart * apart;
  }
  const auto number = static_cast<double>(all.size());
  const double error = std::sqrt(squares * number / (number - 1)) / sum.all;
  return share + student_95(all.size()) * error;
}

}  // namespace foretoken
