// How many requests come over a day.
#pragma once

#include <filesystem>
#include <vector>

namespace foretoken {

inline constexpr double seconds_of_day = 86400;

// In equal parts of 24 hours.
struct DayRates {
  std::vector<double> requests_per_s;  // the mean of each
  double highest = 0;                  // of shorter times within parts, where known

  double peak() const;
  double mean() const;
  double part_seconds() const { return seconds_of_day / static_cast<double>(requests_per_s.size()); }
  double at(double second) const;
};

// Quarters of an hour of mean x (1 + swing x sine), from the mean upwards.
DayRates sine_day(double mean, double swing);

// A CSV file with the columns hour (0 to 24, rising, the first 0) and
// requests_per_s, each rate until the next hour. The peak is that of the rows,
// however short.
DayRates read_day(const std::filesystem::path& file);

}  // namespace foretoken
