// The metrics of vLLM and SGLang as Prometheus reads them (text exposition format 0.0.4).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "serving/runs/measured_run.h"

namespace foretoken {

// The number of a sample that a metric stands for, by its name; null = none. Both engines' names are known, older ones
// too.
std::optional<double> MetricsSample::*metrics_sample_field(std::string_view name);

// Engines of one server are added up, but for the use of the KV cache, which is their mean. Nothing where no known
// metric stands in it. InputError with the line for a value that is no number.
std::optional<MetricsSample> parse_prometheus_text(std::string_view text);

// "vllm", "sglang", or empty.
std::string prometheus_engine(std::string_view text);

}  // namespace foretoken
