// How far measurements lie from the roofline: central 90% factors by family and by size of the kernel, fitted from
// measured rows and kept in data/kernels/roofline_intervals.json.
#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace foretoken {

// measured / roofline lies between low and high for 90% of kernels; low <= 1 <= high, so that the interval holds the
// roofline itself.
struct IntervalFactors {
  double low = 0.5;
  double high = 1000;
  double rows = 0;  // measurements behind it; 0 = the stated default
};

// Small kernels are dominated by launch and latency, large ones by the roofline, so the factors go by roofline time.
inline constexpr double interval_edges_us[] = {0, 1, 10, 100};  // lower edges
inline constexpr size_t interval_bins = std::size(interval_edges_us);

struct FamilyIntervals {
  IntervalFactors bins[interval_bins];
  double rows = 0;
  std::map<std::string, double> left_out_coverage;  // device -> % of its rows inside factors fitted without it
};

struct RooflineIntervals {
  std::string source;     // where the measurements came from
  std::string fitted_on;  // date
  std::vector<std::string> devices;
  std::map<std::string, FamilyIntervals, std::less<>> families;
  FamilyIntervals other;  // families without measurements

  IntervalFactors factors(std::string_view family, double roofline_seconds) const;
};

struct RooflineSample {
  std::string_view device;
  double measured_seconds = 0;
  double roofline_seconds = 0;
};

// Quantiles of measured / roofline per bin; bins with few rows borrow from the nearest one that has enough.
// 5% and 95%; where the 5% quantile lies above 1, low is 1 and high leaves 10% outside in all.
FamilyIntervals fit_family_intervals(std::span<const RooflineSample> samples);

// Factors for families without measurements: per bin the widest of the fitted families.
FamilyIntervals widest_intervals(const std::map<std::string, FamilyIntervals, std::less<>>& families);

RooflineIntervals read_roofline_intervals(const std::filesystem::path& path);
std::string roofline_intervals_json(const RooflineIntervals& intervals);

}  // namespace foretoken
