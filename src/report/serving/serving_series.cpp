#include "report/serving/serving_series.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/text.h"

namespace foretoken {
namespace {

constexpr size_t fewest_points = 4;
constexpr size_t most_columns = 60;
constexpr std::string_view shades = " .:-=+*#%@";

struct Series {
  const char* name;  // in CSV and JSON
  const char* label;
  double TimePoint::*value;
};
constexpr Series all_series[] = {
    {"running", "running requests", &TimePoint::running},
    {"waiting", "waiting requests", &TimePoint::waiting},
    {"kv_blocks_used", "KV blocks used", &TimePoint::kv_blocks_used},
    {"prefill_tokens_per_s", "prompt tokens/s", &TimePoint::prefill_tokens_per_s},
    {"decode_tokens_per_s", "output tokens/s", &TimePoint::decode_tokens_per_s},
};

// Means of so many points each, the last of what is left.
std::vector<double> column_means(const std::vector<TimePoint>& points, size_t points_each, double TimePoint::*value) {
  std::vector<double> result;
  for (size_t first = 0; first < points.size(); first += points_each) {
    const size_t end = std::min(first + points_each, points.size());
    double sum = 0;
    for (size_t i = first; i < end; ++i) sum += points[i].*value;
    result.push_back(sum / static_cast<double>(end - first));
  }
  return result;
}

// Nothing is blank but zero.
char shade(double value, double most) {
  if (value <= 0 || most <= 0) return shades.front();
  const auto darkest = static_cast<double>(shades.size() - 1);
  return shades[static_cast<size_t>(std::clamp(std::ceil(value / most * darkest), 1.0, darkest))];
}

}  // namespace

std::string series_line(std::string_view label, std::span<const double> values) {
  const double most = *std::max_element(values.begin(), values.end());
  std::string line;
  for (const double value : values) line += shade(value, most);
  const std::string largest = most < 9.95 ? fmt::format("{:.2g}", most) : fmt::format("{:.0f}", most);
  return fmt::format("{:<18}|{}| to {}\n", label, line, largest);
}

std::string time_series_text(const ServingRun& run) {
  if (run.series.size() < fewest_points) return "";
  const size_t points_each = (run.series.size() + most_columns - 1) / most_columns;
  std::string text =
      fmt::format("\nOver time, {} s per column\n", number_text(run.interval_s * static_cast<double>(points_each)));
  for (const Series& series : all_series) {
    text += series_line(series.label, column_means(run.series, points_each, series.value));
  }
  return text;
}

std::string time_series_csv(const ServingRun& run) {
  std::string text = "begin_s";
  for (const Series& series : all_series) text.append(",").append(series.name);
  text += "\n";
  for (const TimePoint& point : run.series) {
    text += number_text(point.begin_s);
    for (const Series& series : all_series) text += "," + number_text(point.*series.value);
    text += "\n";
  }
  return text;
}

Json time_series_json(const ServingRun& run) {
  Json points = Json::array();
  for (const TimePoint& point : run.series) {
    Json one = Json::object({{"begin_s", point.begin_s}});
    for (const Series& series : all_series) one.set(series.name, point.*series.value);
    points.push(std::move(one));
  }
  return Json::object({{"interval_s", run.interval_s}, {"points", std::move(points)}});
}

}  // namespace foretoken
