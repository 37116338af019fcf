// How a serving run went over time, for people and for other programs.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/json.h"
#include "serving/serving_run.h"

namespace foretoken {

// A character for each value, darker where it is more.
std::string series_line(std::string_view label, std::span<const double> values);

// A line of characters for each number, darker where more runs, waits, fills the cache or comes out; empty for a run of
// a few intervals.
std::string time_series_text(const ServingRun& run);

// begin_s,running,waiting,kv_blocks_used,prefill_tokens_per_s,decode_tokens_per_s: means over intervals of equal
// length.
std::string time_series_csv(const ServingRun& run);
Json time_series_json(const ServingRun& run);

}  // namespace foretoken
