// What users of a service are promised: a latency that so many of its requests stay below.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "serving/results/metrics.h"

namespace foretoken {

enum class SloMetric : uint8_t { ttft, tpot, itl, e2el };

struct LatencySlo {
  SloMetric metric = SloMetric::ttft;
  double limit_ms = 0;
  double percentile = 99;  // of the requests (itl: of the gaps between tokens) that stay within it
  bool operator==(const LatencySlo&) const = default;
};

// "ttft<500ms@p99,tpot<50ms@p95,e2e<20s", or as vLLM's --goodput has it: "ttft:500,tpot:50" (milliseconds). Metrics:
// ttft, tpot, itl, e2e (also e2el); units: ms where none is given; p99 where none is given (the p may be left out). No
// metric twice at a percentile. `allowed`: metrics that the field takes; default all. InputError names the field and
// the part that is wrong.
std::vector<LatencySlo> parse_slos(std::string_view text, const std::string& field,
                                   std::span<const SloMetric> allowed = {});

std::string_view metric_title(SloMetric metric);  // "TTFT"
std::string limit_text(const LatencySlo& slo);    // "500 ms"
std::string slo_text(const LatencySlo& slo);      // "TTFT p99 < 500 ms"
std::string slo_key(const LatencySlo& slo);       // "ttft<500ms@p99": parse_slos reads it

// As metrics must be asked for to judge these.
std::vector<double> slo_percentiles(std::span<const LatencySlo> slos);
// What the run achieved; `percentiles` are those that its metrics have. Requests that failed have no latency.
double achieved_ms(const LatencySlo& slo, const ServingMetrics& metrics, std::span<const double> percentiles);

}  // namespace foretoken
