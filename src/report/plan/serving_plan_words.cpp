#include "report/plan/serving_plan_words.h"

#include <cmath>

#include <fmt/format.h>

#include "base/counted.h"
#include "base/text.h"

namespace foretoken {

std::string rate_number(double requests_per_s) {
  if (requests_per_s <= 0) return "0";
  return requests_per_s >= 100  ? fmt::format("{:.0f}", requests_per_s)
         : requests_per_s >= 10 ? fmt::format("{:.1f}", requests_per_s)
                                : fmt::format("{:.2f}", requests_per_s);
}

std::string asked_rate_number(double requests_per_s) {
  constexpr double least_whole = 100;
  return requests_per_s >= least_whole ? fmt::format("{:.0f}", requests_per_s) : fmt::format("{:.3g}", requests_per_s);
}

int64_t devices_for_rate(double rate, const PlanPoint& point) {
  const int64_t parts = point.layout.decode ? 1 : point.layout.pool.replicas;
  const double each = point.capacity.value / static_cast<double>(parts);
  return static_cast<int64_t>(std::ceil(rate / each)) * (point.layout.devices() / parts);
}

std::string capacity_interval(const Headline& capacity) {
  if (capacity.low == capacity.high) return fmt::format("about {} requests/s", rate_number(capacity.value));
  return fmt::format("{} requests/s (90% interval {} to {})", rate_number(capacity.value), rate_number(capacity.low),
                     rate_number(capacity.high));
}

std::string in_flight_words(int64_t requests) {
  return fmt::format("with {} in flight", counted(requests, "request"));
}

std::string requests_each_text(const Traffic& traffic) {
  return fmt::format("{:.3g} requests", traffic.requests_each());
}

std::string slos_text(const ServingQuestion& question) {
  std::string text;
  for (const LatencySlo& slo : question.slos) {
    if (!text.empty()) text += " and ";
    if (!question.joint_percent) text += fmt::format("p{} ", number_text(slo.percentile));
    text += fmt::format("{} below {}", metric_title(slo.metric), limit_text(slo));
  }
  return question.joint_percent ? fmt::format("{} for {}% of the requests", text, number_text(*question.joint_percent))
                                : text;
}

std::string hardware_text(const ServingQuestion& question, const ServingLayout& layout) {
  std::string text;
  for (const auto& [choice, devices] : question.hardware_of(layout)) {
    text += fmt::format("{}{} x {}", text.empty() ? "" : " and ", devices, choice->device.title);
  }
  return text;
}

std::string duration_above(const LatencySlo& slo, double ms) {
  std::string text = duration_text(ms / 1e3);
  return text == duration_text(slo.limit_ms / 1e3) ? fmt::format("{:.6g} ms", ms) : text;
}

std::string achieved_text(const ServingQuestion& question, const PlanRun& run) {
  std::string text;
  for (size_t i = 0; i < question.slos.size(); ++i) {
    const LatencySlo& slo = question.slos[i];
    const std::string name = slo_text(slo);
    text +=
        fmt::format("{}{} {:.0f} ms", text.empty() ? "" : ", ", name.substr(0, name.find(" <")), run.achieved_ms[i]);
  }
  return text;
}

}  // namespace foretoken
