#include "plan/serving/latency_slo.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "base/kinds.h"
#include "base/quantity_text.h"
#include "base/text.h"

namespace foretoken {
namespace {

struct SloMetricName {
  SloMetric metric;
  std::string_view name, also, shown;
};
constexpr SloMetricName slo_metrics[] = {{SloMetric::ttft, "ttft", "", "TTFT"},
                                         {SloMetric::tpot, "tpot", "", "TPOT"},
                                         {SloMetric::itl, "itl", "", "ITL"},
                                         {SloMetric::e2el, "e2e", "e2el", "E2E"}};

const SloMetricName& names_of_metric(SloMetric metric) {
  return *std::find_if(std::begin(slo_metrics), std::end(slo_metrics),
                       [&](const SloMetricName& one) { return one.metric == metric; });
}

std::string_view without_spaces(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

InputError slo_error(const std::string& field, std::string_view text, std::string expected,
                     std::string suggestion = "") {
  return InputError(
      {.field = field, .value = printable(text), .expected = std::move(expected), .suggestion = std::move(suggestion)});
}

bool is_allowed(SloMetric metric, std::span<const SloMetric> allowed) {
  return allowed.empty() || std::find(allowed.begin(), allowed.end(), metric) != allowed.end();
}

LatencySlo parse_slo(std::string_view text, const std::string& field, std::span<const SloMetric> allowed) {
  constexpr const char* form = "METRIC<TIME@pN, as in ttft<500ms@p99, or METRIC:MILLISECONDS, as in ttft:500";
  const size_t sign = text.find_first_of("<:");
  if (sign == std::string_view::npos) throw slo_error(field, text, form);
  const std::string_view name = without_spaces(text.substr(0, sign));
  const auto* const found = std::find_if(std::begin(slo_metrics), std::end(slo_metrics), [&](const SloMetricName& one) {
    const bool is_named = equal_ignoring_case(name, one.name) || equal_ignoring_case(name, one.also);
    return is_named && is_allowed(one.metric, allowed);
  });
  if (name.empty() || found == std::end(slo_metrics)) {
    std::vector<std::string> known;
    for (const SloMetricName& one : slo_metrics) {
      if (is_allowed(one.metric, allowed)) known.emplace_back(one.name);
    }
    throw slo_error(field, name.empty() ? text : name, one_of(known), nearest_name(name, known).value_or(""));
  }
  LatencySlo slo{.metric = found->metric};
  std::string_view limit = without_spaces(text.substr(sign + 1));
  if (text[sign] == '<' && limit.starts_with('=')) limit = without_spaces(limit.substr(1));
  if (const size_t at = limit.find('@'); at != std::string_view::npos) {
    const std::string_view share = without_spaces(limit.substr(at + 1));
    const bool has_p = share.starts_with('p') || share.starts_with('P');
    const std::optional<double> percentile = parse_number(has_p ? share.substr(1) : share);
    if (!percentile || *percentile <= 0 || *percentile > 100) {
      throw slo_error(field, share, "a percentile from p1 to p100, as in ttft<500ms@p99");
    }
    slo.percentile = *percentile;
    limit = without_spaces(limit.substr(0, at));
  }
  // Milliseconds stay as they were written: by way of seconds, 500.1 would come back as another number.
  const std::string_view milliseconds = limit.ends_with("ms") ? limit.substr(0, limit.size() - 2) : limit;
  if (const std::optional<double> ms = parse_number(without_spaces(milliseconds))) {
    slo.limit_ms = *ms;
  } else if (const std::optional<Seconds> time = parse_duration(limit)) {
    slo.limit_ms = time->value() * 1e3;
  } else {
    throw slo_error(field, limit, "a time such as 500ms, 0.5s or 500 (milliseconds)");
  }
  if (!(slo.limit_ms > 0 && slo.limit_ms <= 1e9)) throw slo_error(field, limit, "a time above 0, of at most 1e6 s");
  return slo;
}

}  // namespace

std::vector<LatencySlo> parse_slos(std::string_view text, const std::string& field,
                                   std::span<const SloMetric> allowed) {
  std::vector<LatencySlo> slos;
  for (const std::string_view part : split_words(text, ",")) {
    const std::string_view one = without_spaces(part);
    if (one.empty()) continue;
    const LatencySlo slo = parse_slo(one, field, allowed);
    const bool twice = std::any_of(slos.begin(), slos.end(), [&](const LatencySlo& other) {
      return other.metric == slo.metric && other.percentile == slo.percentile;
    });
    if (twice) throw slo_error(field, one, "one limit for each metric and percentile");
    slos.push_back(slo);
  }
  if (slos.empty()) throw slo_error(field, text, "limits such as ttft<500ms@p99,tpot<50ms@p99");
  return slos;
}

std::string_view metric_title(SloMetric metric) {
  return names_of_metric(metric).shown;
}

std::string limit_text(const LatencySlo& slo) {
  return number_text(slo.limit_ms) + " ms";
}

std::string slo_text(const LatencySlo& slo) {
  return fmt::format("{} p{} < {}", metric_title(slo.metric), number_text(slo.percentile), limit_text(slo));
}

std::string slo_key(const LatencySlo& slo) {
  return fmt::format("{}<{}ms@p{}", names_of_metric(slo.metric).name, number_text(slo.limit_ms),
                     number_text(slo.percentile));
}

std::vector<double> slo_percentiles(std::span<const LatencySlo> slos) {
  std::vector<double> percentiles = {50, 99};
  for (const LatencySlo& slo : slos) percentiles.push_back(slo.percentile);
  std::sort(percentiles.begin(), percentiles.end());
  percentiles.erase(std::unique(percentiles.begin(), percentiles.end()), percentiles.end());
  return percentiles;
}

double achieved_ms(const LatencySlo& slo, const ServingMetrics& metrics, std::span<const double> percentiles) {
  const LatencySummary& latency = slo.metric == SloMetric::ttft   ? metrics.ttft
                                  : slo.metric == SloMetric::tpot ? metrics.tpot
                                  : slo.metric == SloMetric::itl  ? metrics.itl
                                                                  : metrics.e2el;
  const auto place = std::find(percentiles.begin(), percentiles.end(), slo.percentile);
  ensure(place != percentiles.end(), "metrics were asked for the percentiles of the limits");
  return latency.percentiles_ms.at(static_cast<size_t>(place - percentiles.begin()));
}

}  // namespace foretoken
