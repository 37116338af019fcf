// Parts of sentences about plans of serving.
#pragma once

#include <string>

#include "plan/serving/serving_search.h"

namespace foretoken {

std::string rate_number(double requests_per_s);
std::string asked_rate_number(double requests_per_s);  // three digits, fewer where they say it all: "40", "51.9"
// Devices that serve the rate as the point's layout does: such engines side by side; of separate pools, such pools.
int64_t devices_for_rate(double rate, const PlanPoint& point);
std::string capacity_interval(const Headline& capacity);  // "19.1 requests/s (17.2 to 21.0)"
std::string in_flight_words(int64_t requests);            // "with 64 requests in flight"
// "4 requests", of a conversation.
std::string requests_each_text(const Traffic& traffic);
std::string slos_text(const ServingQuestion& question);  // "TTFT p99 < 500 ms, TPOT p99 < 50 ms"
// "8 x NVIDIA H100 SXM", "4 x NVIDIA H100 SXM and 8 x NVIDIA L40S".
std::string hardware_text(const ServingQuestion& question, const ServingLayout& layout);
// A duration above the limit, with digits enough to tell: "812 ms", "450.2 ms".
std::string duration_above(const LatencySlo& slo, double ms);
// "TTFT p99 433 ms, TPOT p99 41 ms".
std::string achieved_text(const ServingQuestion& question, const PlanRun& run);

}  // namespace foretoken
