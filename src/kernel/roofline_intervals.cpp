#include "kernel/roofline_intervals.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "base/error.h"
#include "base/json.h"
#include "base/statistics.h"

namespace foretoken {
namespace {

constexpr size_t enough_rows = 50;  // for a 5% quantile that rests on more than a row or two

size_t bin_of(double roofline_seconds) {
  size_t bin = 0;
  while (bin + 1 < interval_bins && roofline_seconds * 1e6 >= interval_edges_us[bin + 1]) ++bin;
  return bin;
}

// Central 90% of `ratios`; low never above 1.
IntervalFactors central_factors(std::vector<double> ratios) {
  std::sort(ratios.begin(), ratios.end());
  const auto rows = static_cast<double>(ratios.size());
  const double low = quantile_of_sorted(ratios, 0.05);
  if (low <= 1) return {.low = low, .high = std::max(1.0, quantile_of_sorted(ratios, 0.95)), .rows = rows};
  const double below_one = static_cast<double>(std::lower_bound(ratios.begin(), ratios.end(), 1.0) - ratios.begin());
  return {.low = 1, .high = quantile_of_sorted(ratios, below_one / rows + 0.9), .rows = rows};
}

// Fits the bins from samples, leaving out one device (an empty name: none).
FamilyIntervals fit_without(std::span<const RooflineSample> samples, std::string_view left_out) {
  std::vector<double> ratios[interval_bins];
  FamilyIntervals result;
  for (const RooflineSample& sample : samples) {
    if (sample.device == left_out) continue;
    ratios[bin_of(sample.roofline_seconds)].push_back(sample.measured_seconds / sample.roofline_seconds);
    result.rows += 1;
  }
  // Too few rows in a bin: those of the nearest bins join, smaller kernels first (their factors are the wider).
  for (size_t bin = 0; bin < interval_bins; ++bin) {
    std::vector<double> pooled = ratios[bin];
    for (size_t distance = 1; distance < interval_bins && pooled.size() < enough_rows; ++distance) {
      const std::vector<double>* near = nullptr;
      if (bin >= distance) near = &ratios[bin - distance];
      if ((!near || near->empty()) && bin + distance < interval_bins) near = &ratios[bin + distance];
      if (near) pooled.insert(pooled.end(), near->begin(), near->end());
    }
    if (!pooled.empty()) result.bins[bin] = central_factors(std::move(pooled));
    result.bins[bin].rows = static_cast<double>(ratios[bin].size());
  }
  return result;
}

Json to_json(const FamilyIntervals& family) {
  Json bins = Json::array();
  for (size_t bin = 0; bin < interval_bins; ++bin) {
    const auto rounded = [](double value) { return std::round(value * 1e4) / 1e4; };
    bins.push(Json::object({{"from_us", interval_edges_us[bin]},
                            {"low", rounded(family.bins[bin].low)},
                            {"high", rounded(family.bins[bin].high)},
                            {"rows", family.bins[bin].rows}}));
  }
  Json result = Json::object({{"rows", family.rows}, {"bins", std::move(bins)}});
  if (family.left_out_coverage.empty()) return result;
  Json coverage = Json::object();
  for (const auto& [device, percent] : family.left_out_coverage) coverage.set(device, std::round(percent * 10) / 10);
  result.set("left_out_coverage", std::move(coverage));
  return result;
}

FamilyIntervals read_family(const JsonView& view) {
  view.allow_only({"rows", "bins", "left_out_coverage"});
  FamilyIntervals family;
  family.rows = view.at("rows").number({0, 1e15});
  const std::vector<JsonView> bins = view.at("bins").items();
  if (bins.size() != interval_bins) view.at("bins").fail(fmt::format("{} bins", interval_bins));
  for (size_t bin = 0; bin < interval_bins; ++bin) {
    bins[bin].allow_only({"from_us", "low", "high", "rows"});
    const double from = bins[bin].at("from_us").number();
    if (from != interval_edges_us[bin]) bins[bin].at("from_us").fail(fmt::format("{}", interval_edges_us[bin]));
    family.bins[bin] = {.low = bins[bin].at("low").number({0, 1}),
                        .high = bins[bin].at("high").number({1, 1e9}),
                        .rows = bins[bin].at("rows").number({0, 1e15})};
  }
  if (const std::optional<JsonView> coverage = view.find("left_out_coverage")) {
    for (const auto& [device, percent] : coverage->members()) {
      family.left_out_coverage[device] = percent.number({0, 100});
    }
  }
  return family;
}

}  // namespace

IntervalFactors RooflineIntervals::factors(std::string_view family, double roofline_seconds) const {
  const auto found = families.find(family);
  return (found == families.end() ? other : found->second).bins[bin_of(roofline_seconds)];
}

FamilyIntervals fit_family_intervals(std::span<const RooflineSample> samples) {
  std::set<std::string_view> devices;
  for (const RooflineSample& sample : samples) {
    ensure(sample.measured_seconds > 0 && sample.roofline_seconds > 0, "a ratio of times needs two of them");
    devices.insert(sample.device);
  }
  FamilyIntervals result = fit_without(samples, "");
  if (devices.size() < 2) return result;
  for (const std::string_view device : devices) {
    const FamilyIntervals others = fit_without(samples, device);
    double rows = 0, inside = 0;
    for (const RooflineSample& sample : samples) {
      if (sample.device != device) continue;
      const IntervalFactors& factors = others.bins[bin_of(sample.roofline_seconds)];
      const double ratio = sample.measured_seconds / sample.roofline_seconds;
      rows += 1;
      if (ratio >= factors.low && ratio <= factors.high) inside += 1;
    }
    result.left_out_coverage[std::string(device)] = 100 * inside / rows;
  }
  return result;
}

FamilyIntervals widest_intervals(const std::map<std::string, FamilyIntervals, std::less<>>& families) {
  FamilyIntervals widest;
  if (families.empty()) return widest;
  for (IntervalFactors& factors : widest.bins) factors = {.low = 1, .high = 1};
  for (const auto& [name, family] : families) {
    for (size_t bin = 0; bin < interval_bins; ++bin) {
      widest.bins[bin].low = std::min(widest.bins[bin].low, family.bins[bin].low);
      widest.bins[bin].high = std::max(widest.bins[bin].high, family.bins[bin].high);
    }
  }
  return widest;
}

RooflineIntervals read_roofline_intervals(const std::filesystem::path& path) {
  const Json document = read_json_file(path);
  const JsonView view(document, path.string());
  view.allow_only({"about", "source", "fitted_on", "devices", "families", "other"});
  RooflineIntervals intervals;
  intervals.source = view.at("source").string();
  intervals.fitted_on = view.at("fitted_on").string();
  for (const JsonView& device : view.at("devices").items()) intervals.devices.push_back(device.string());
  for (const auto& [name, family] : view.at("families").members())
    intervals.families.emplace(name, read_family(family));
  intervals.other = read_family(view.at("other"));
  return intervals;
}

std::string roofline_intervals_json(const RooflineIntervals& intervals) {
  Json devices = Json::array(), families = Json::object();
  for (const std::string& device : intervals.devices) devices.push(device);
  for (const auto& [name, family] : intervals.families) families.set(name, to_json(family));
  return Json::object({{"about",
                        "Central 90% of measured / roofline, by kernel family and roofline time in microseconds. "
                        "`other` holds for families without measurements: the widest factors of all families. "
                        "left_out_coverage: % of a device's rows inside factors fitted without that device."},
                       {"source", intervals.source},
                       {"fitted_on", intervals.fitted_on},
                       {"devices", std::move(devices)},
                       {"other", to_json(intervals.other)},
                       {"families", std::move(families)}})
             .dump() +
         "\n";
}

}  // namespace foretoken
