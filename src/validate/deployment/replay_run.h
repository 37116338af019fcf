// A measured run and its prediction side by side: by percentile, request, load and time, and what would explain the
// difference.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "serving/serving_run.h"
#include "validate/deployment/run_case.h"

namespace foretoken {

struct ReplayedNumber {
  std::string metric, statistic;  // "ttft_ms", "p99"
  double measured_ms = 0;
  Headline predicted_ms;
};

struct ReplayedRequest {
  size_t id = 0;
  double sent_s = 0;
  int64_t input_tokens = 0, output_tokens = 0;
  double ttft_ms = 0, e2e_ms = 0;                      // measured
  double predicted_ttft_ms = 0, predicted_e2e_ms = 0;  // 0 = the prediction rejects it
};

// Requests of one part of the run: a span of time, or those with about as many others beside them.
struct ReplayedPart {
  std::string name;
  size_t requests = 0;
  double ttft_ms = 0, tpot_ms = 0, e2e_ms = 0;  // measured means
  double predicted_ttft_ms = 0, predicted_tpot_ms = 0, predicted_e2e_ms = 0;
};

// What the difference may come from.
enum class ErrorSource : uint8_t { kernels, communication, host, admission, prefix_hits, client };
std::string_view error_source_name(ErrorSource source);

// One fact that would bring the prediction nearer to the run.
struct Explanation {
  ErrorSource source = ErrorSource::kernels;
  std::string fact;     // "every kernel takes 1.08 times as long", "{enable_prefix_caching} off"
  double explains = 0;  // share of the squared error that it removes, 0 to 1
};

struct RunComparison {
  std::string run, model, device;
  std::vector<ReplayedNumber> numbers;
  std::vector<ReplayedRequest> requests;  // those with times
  std::vector<ReplayedPart> over_time, by_batch, by_context;
  std::vector<Explanation> explanations;  // the best first; of one fact each, so that shares do not add up
  double noise = 0;                       // spread (log) of single requests about the prediction with the best one
  std::optional<double> measured_hits, predicted_hits;  // share of prompt tokens found in the prefix cache
  std::optional<double> client_lag_ms;                  // by which requests were sent late
  bool agrees = false;                                  // nothing is left to explain
};

// `facts` may have a deployment. InputError where the run has nothing to compare.
RunComparison compare_run(const RunCase& measured, const ServingFacts& facts);

}  // namespace foretoken
