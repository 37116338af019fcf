#include "serving/run_formats/format_parts.h"

#include <algorithm>

#include "base/text.h"

namespace foretoken {

std::optional<double> number_at(const JsonView& object, std::string_view key) {
  if (!object.is(Json::Kind::object)) return std::nullopt;
  const auto value = object.find(key);
  return value && value->is_number() ? std::optional(value->value().number()) : std::nullopt;
}

std::optional<int64_t> count_at(const JsonView& object, std::string_view key) {
  const std::optional<double> number = number_at(object, key);
  return number ? exact_integer(*number) : std::nullopt;
}

std::string text_at(const JsonView& object, std::string_view key) {
  if (!object.is(Json::Kind::object)) return "";
  const auto value = object.find(key);
  return value && value->is(Json::Kind::string) ? value->value().string() : "";
}

std::optional<double> duration_at(const JsonView& object, std::string_view key, double seconds_per_unit) {
  const auto value = object.find(key);
  if (!value) return std::nullopt;
  return value->number({.least = 0, .most = most_seconds_of_run / seconds_per_unit}) * seconds_per_unit;
}

int64_t tokens_at(const JsonView& object, std::string_view key) {
  return object.at(key).integer({.least = 0, .most = most_tokens_of_request});
}

bool has_keys(const Json& object, std::initializer_list<std::string_view> keys) {
  return object.kind() == Json::Kind::object &&
         std::all_of(keys.begin(), keys.end(), [&](std::string_view key) { return object.find(key) != nullptr; });
}

void order_requests(MeasuredRun& run) {
  if (run.requests.empty()) return;
  std::stable_sort(run.requests.begin(), run.requests.end(),
                   [](const MeasuredRequest& a, const MeasuredRequest& b) { return a.arrival_s < b.arrival_s; });
  const double first = run.requests.front().arrival_s;
  for (MeasuredRequest& request : run.requests) {
    request.arrival_s -= first;
    if (request.sent_s) *request.sent_s = std::max(*request.sent_s - first, request.arrival_s);
  }
  for (MetricsSample& sample : run.samples) sample.time_s = std::max(0.0, sample.time_s);
}

}  // namespace foretoken
