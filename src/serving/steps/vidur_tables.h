// Step times from the look-up tables of VIDUR (MLSys 2024), so that schedulers can be compared with the cost model
// taken out of the comparison.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "serving/steps/step_times.h"

namespace foretoken {

struct VidurTableOptions {
  int64_t layers = 1;
  bool grouped_query = false;   // fewer key-value heads than query heads
  int64_t tensor = 1;           // GPUs that share a layer: the tables are of one of them
  int64_t pipeline_stages = 1;  // each has as many layers, rounded down
};

// A folder with per_token_ops_ms.csv, attn_decode_ms.csv and attn_prefill_ms.csv: milliseconds of one layer, each row
// for a range of sizes. A step, as VIDUR adds it up (execution_time_predictor, commit 7d475133): layers x (all
// per-token ops at the tokens of the step, rounded up to 8 + decode attention at the mean context, rounded up to 64 +
// prefill attention at the sum of contexts, each rounded up to 64, and the root of the sum of squared chunks). With
// grouped queries each attention counts 1.1 times where more than one request takes part. Tensor parallelism adds two
// all_reduce to each layer, with 0.02 ms to launch each; pipeline parallelism adds send_recv to each stage but the
// last. No head, no host.
std::unique_ptr<StepTimes> read_vidur_tables(const std::filesystem::path& folder, const VidurTableOptions& options);

// The same from texts by name (per_token_ops_ms, attn_decode_ms, attn_prefill_ms), for tests and fuzzing.
std::unique_ptr<StepTimes> vidur_tables_from_text(const std::map<std::string, std::string>& tables,
                                                  const VidurTableOptions& options);

}  // namespace foretoken
