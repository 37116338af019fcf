#include "report/serving/fleet_report.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "base/counted.h"
#include "base/units.h"
#include "report/serving/serving_series.h"

namespace foretoken {
namespace {

constexpr size_t columns = 60;
using Count = int64_t FleetSize::*;

struct Replicas {
  double mean = 0;
  int64_t least = 0, most = 0;
};

// Mean of the count over a span of the run.
double mean_between(const FleetReport& report, Count count, double from_s, double to_s) {
  const std::vector<FleetSize>& sizes = report.totals.sizes;
  double sum = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const double begin = std::max(from_s, to_seconds(sizes[i].from).value());
    const double end = std::min(to_s, i + 1 < sizes.size() ? to_seconds(sizes[i + 1].from).value() : to_s);
    if (end > begin) sum += (end - begin) * static_cast<double>(sizes[i].*count);
  }
  return to_s > from_s ? sum / (to_s - from_s) : 0;
}

Replicas replicas(const FleetReport& report, Count count) {
  const std::vector<FleetSize>& sizes = report.totals.sizes;
  const auto [least, most] = std::minmax_element(
      sizes.begin(), sizes.end(), [&](const FleetSize& a, const FleetSize& b) { return a.*count < b.*count; });
  return {.mean = mean_between(report, count, 0, report.end_s), .least = (*least).*count, .most = (*most).*count};
}

std::string over_time(const FleetReport& report, const char* label, Count count) {
  std::vector<double> values;
  for (size_t i = 0; i < columns; ++i) {
    const double each = report.end_s / columns;
    values.push_back(mean_between(report, count, static_cast<double>(i) * each, static_cast<double>(i + 1) * each));
  }
  return series_line(label, values);
}

// Of all members held from the first to the last moment.
double most_gpu_seconds(const FleetReport& report) {
  double devices = 0;
  for (const FleetMember& member : report.config.members) devices += static_cast<double>(member.devices);
  return devices * report.end_s;
}

}  // namespace

std::string fleet_text(const FleetReport& report) {
  const FleetTotals& totals = report.totals;
  std::string text = "Fleet\n";
  for (const auto& [label, count] :
       {std::pair("Replicas serving", &FleetSize::serving), std::pair("Replicas paid for", &FleetSize::held)}) {
    const Replicas of = replicas(report, count);
    text += fmt::format("{:<28} {:>10.2f}   mean, {} to {}\n", label, of.mean, of.least, of.most);
  }
  const double most = most_gpu_seconds(report);
  text += fmt::format("{:<28} {:>10.3f}   {:.0f}% of running all {} replicas throughout\n", "GPU-hours",
                      totals.gpu_seconds / seconds_per_hour, most > 0 ? 100 * totals.gpu_seconds / most : 100,
                      report.config.members.size());
  text += fmt::format("{:<28} {:>10}   of {:.1f} s each\n", "Cold starts", totals.starts,
                      to_seconds(report.config.members.front().cold_start).value());
  text += fmt::format("{:<28} {:>10}\n", "Drained and stopped", totals.stops);
  if (report.config.failures.gpu_mtbf_hours > 0) {
    text += fmt::format("{:<28} {:>10}   {} restarted, {} wasted\n", "Failures", totals.failures,
                        counted(totals.retried, "request"), counted(totals.lost_tokens, "output token"));
  }
  if (report.config.region_policy.spill != Spill::never) {
    text += fmt::format("{:<28} {:>10}   requests\n", "Served outside their region", totals.remote);
  }
  if (totals.sizes.size() > 1 && report.end_s > 0) {
    text += fmt::format("Over time, {:.4g} s per column\n", report.end_s / columns);
    text += over_time(report, "serving replicas", &FleetSize::serving);
    text += over_time(report, "paid for", &FleetSize::held);
  }
  return text;
}

Json fleet_json(const FleetReport& report) {
  const FleetTotals& totals = report.totals;
  Json sizes = Json::array();
  for (const FleetSize& size : totals.sizes) {
    sizes.push(
        Json::object({{"from_s", to_seconds(size.from).value()}, {"serving", size.serving}, {"paid_for", size.held}}));
  }
  Json json = Json::object({{"autoscaler", report.config.scaling.kind},
                            {"gpu_hours", totals.gpu_seconds / seconds_per_hour},
                            {"cold_start_s", to_seconds(report.config.members.front().cold_start).value()},
                            {"starts", totals.starts},
                            {"stops", totals.stops},
                            {"failures", totals.failures},
                            {"retried_requests", totals.retried},
                            {"lost_tokens", totals.lost_tokens},
                            {"served_outside_their_region", totals.remote}});
  for (const auto& [key, count] :
       {std::pair("replicas_serving", &FleetSize::serving), std::pair("replicas_paid_for", &FleetSize::held)}) {
    const Replicas of = replicas(report, count);
    json.set(key, Json::object({{"mean", of.mean}, {"least", of.least}, {"most", of.most}}));
  }
  return json.set("sizes", std::move(sizes));
}

}  // namespace foretoken
