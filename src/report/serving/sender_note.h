// Whether the process that sends answers to clients limits a run.
#pragma once

#include <string>
#include <string_view>

#include "base/units.h"
#include "serving/results/metrics.h"

namespace foretoken {

// A sentence where engines made tokens faster than that process of each server sends them, `piece` for each piece of so
// many tokens of a request; empty where they did not, or where there is no such process (a piece takes no time).
std::string sender_note(std::string_view stack, Seconds piece, int64_t piece_tokens, double servers,
                        const ServingMetrics& metrics);

}  // namespace foretoken
