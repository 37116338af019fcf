// Values of the lower layers as JSON, the same names in every command.
#pragma once

#include "base/estimate.h"
#include "base/json.h"
#include "kernel/kernel.h"
#include "model/step.h"
#include "model/work.h"

namespace foretoken {

Json to_json(const Estimate& estimate);        // {value, low, high, confidence}
Json to_json(const Work& work);                // {flops, math, weight_bytes, activation_bytes, written_bytes}
Json to_json(const KernelEstimate& estimate);  // {seconds, work, compute_seconds, memory_seconds, bound, ...}
Json to_json(const RankMemory& memory);        // bytes by use
Json to_json(const ParallelPlan& plan);

// "1.23 ms (0.90 to 1.80 ms)": value and interval for people.
std::string interval_text(const Estimate& seconds);

// "none" or a whole percentage.
std::string share_words(double share);
// "85.0 GB (79.2 GiB)": memory that a device offers.
std::string memory_size_text(double bytes);

}  // namespace foretoken
