// Which load on a deployment would tell most about its constants.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "library/deployment.h"
#include "serving/load/load_spec.h"

namespace foretoken {

// A load that could be run next.
struct SuggestedLoad {
  int64_t max_concurrency = 0, input_len = 0, output_len = 0, num_prompts = 0;
  double information = 0;                                 // nats: how much it would narrow the constants
  DeploymentConstant narrows = DeploymentConstant::host;  // most
  double sd_before = 0, sd_after = 0;                     // of that constant
};

struct TimesOfLoad {
  double mean_e2e_ms = 0, median_ttft_ms = 0;
};
// A load with these constants, on one of the threads. InputError where its lengths do not fit the engine.
using SimulateLoad = std::function<TimesOfLoad(unsigned thread, const LoadSpec& load, const ConstantVector& constants)>;
// Calls the work for 0 to count - 1.
using OnThreads = std::function<void(size_t count, const std::function<void(unsigned thread, size_t i)>& work)>;

// The best few, the best first: closed loops of few and many requests at once, of short and long prompts, by how much
// they would narrow the constants in `used`.
std::vector<SuggestedLoad> suggest_loads(const ConstantPosterior& posterior,
                                         const std::vector<DeploymentConstant>& used, const SimulateLoad& simulate,
                                         const OnThreads& on_threads);

}  // namespace foretoken
