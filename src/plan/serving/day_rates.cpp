#include "plan/serving/day_rates.h"

#include <algorithm>
#include <numeric>

#include "base/csv.h"
#include "base/error.h"
#include "serving/load/arrivals.h"

namespace foretoken {
namespace {

constexpr int64_t sine_parts = 96, file_parts = 288;

struct RateStep {
  double begin = 0;  // hour
  double rate = 0;   // until the next one
};

// From `first` on, which is advanced to the last step that begins by `to`.
double mean_rate(const std::vector<RateStep>& steps, size_t& first, double from, double to) {
  const double before = steps[first].rate;
  double mean = before;
  while (first + 1 < steps.size() && steps[first + 1].begin <= to) {
    ++first;
    const double end = first + 1 < steps.size() ? std::min(to, steps[first + 1].begin) : to;
    mean += (steps[first].rate - before) * (end - std::max(from, steps[first].begin)) / (to - from);
  }
  return std::max(0.0, mean);
}

}  // namespace

double DayRates::peak() const {
  return std::max(highest, *std::max_element(requests_per_s.begin(), requests_per_s.end()));
}

double DayRates::mean() const {
  return std::accumulate(requests_per_s.begin(), requests_per_s.end(), 0.0) /
         static_cast<double>(requests_per_s.size());
}

double DayRates::at(double second) const {
  const auto part = static_cast<size_t>(std::max(0.0, second / part_seconds()));
  return requests_per_s[std::min(part, requests_per_s.size() - 1)];
}

DayRates sine_day(double mean, double swing) {
  DayRates day;
  for (int64_t i = 0; i < sine_parts; ++i) {
    const double turns = static_cast<double>(i) / sine_parts;  // one of them is the peak itself
    day.requests_per_s.push_back(mean * (1 + swing * sine_of_turns(turns)));
  }
  return day;
}

DayRates read_day(const std::filesystem::path& file) {
  CsvReader rows(file);
  const size_t hour = rows.column("hour"), rate = rows.column("requests_per_s");
  std::vector<RateStep> steps;
  DayRates day;
  while (rows.next()) {
    const double begin = rows.number(hour, {.least = 0, .most = 24});
    const bool is_next = steps.empty() ? begin == 0 : begin > steps.back().begin;
    if (!is_next) rows.fail(hour, steps.empty() ? "0 in the first row" : "an hour later than in the previous row");
    steps.push_back({.begin = begin, .rate = rows.number(rate, {.least = 0, .most = 1e9})});
    if (begin < 24) day.highest = std::max(day.highest, steps.back().rate);
  }
  size_t step = 0;
  for (int64_t i = 0; i < file_parts && !steps.empty(); ++i) {
    const auto part = static_cast<double>(i);
    day.requests_per_s.push_back(mean_rate(steps, step, 24 * part / file_parts, 24 * (part + 1) / file_parts));
  }
  if (steps.empty() || day.peak() <= 0) {
    throw InputError(
        {.source = file.string(), .expected = "a row for each change of the rate, with at least one rate above 0"});
  }
  return day;
}

}  // namespace foretoken
