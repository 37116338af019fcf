// Sources, step times and observers for tests of serving/.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "base/random.h"
#include "base/simulated_time.h"
#include "serving/load/listed_source.h"
#include "serving/simulation/simulation.h"

namespace foretoken {

using ListedRequests = ReplayedRequests;

class RecordedRun final : public RunObserver {
 public:
  void request_ended(const RequestRecord& record) override { requests.push_back(record); }
  void step_ran(const StepRecord& step) override { steps.push_back(step); }
  void token_gaps(Picoseconds gap, int64_t count) override {
    gap_time += gap * count;
    gaps += count;
  }
  // By id.
  std::vector<RequestRecord> sorted() const {
    std::vector<RequestRecord> result = requests;
    std::sort(result.begin(), result.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
    return result;
  }

  std::vector<RequestRecord> requests;
  std::vector<StepRecord> steps;
  Picoseconds gap_time = 0;
  int64_t gaps = 0;
};

struct SimulatedRun {
  SimulationTotals totals;
  RecordedRun told;
};
inline SimulatedRun simulated(const SimulationConfig& config, const std::vector<Request>& requests) {
  SimulatedRun run;
  ListedRequests source(requests);
  run.totals = simulate(config, source, run.told);
  return run;
}

// So many seconds for each step, each new token and each token of context.
class LinearTimes final : public StepTimes {
 public:
  struct Costs {
    double step = 0.01, token = 1e-5, context_token = 1e-8;
  };
  explicit LinearTimes(Costs costs) : costs_(costs) {}
  Estimate step_seconds(const StepBatch& batch) override {
    ++asked;
    return exactly(costs_.step + costs_.token * static_cast<double>(batch.new_tokens()) +
                   costs_.context_token * static_cast<double>(batch.decode_context_tokens));
  }
  int64_t asked = 0;

 private:
  Costs costs_;
};

inline constexpr Picoseconds one_second = 1'000'000'000'000;

// The folder of measured data that FORETOKEN_DATA names; nothing when it is not set.
inline std::optional<std::filesystem::path> measured_data() {
  const char* folder = std::getenv("FORETOKEN_DATA");
  if (folder == nullptr) return std::nullopt;
  return std::filesystem::path(folder);
}

// Poisson arrivals, lengths uniform up to the given ones.
inline std::vector<Request> random_requests(uint64_t seed, int64_t count, double rate, int64_t longest_input,
                                            int64_t longest_output) {
  RandomStream stream(seed, "requests");
  std::vector<Request> requests;
  double now = 0;
  for (int64_t i = 0; i < count; ++i) {
    now += stream.exponential(1 / rate);
    requests.push_back({.id = i,
                        .arrival = to_picoseconds(Seconds(now)),
                        .input_tokens = 1 + static_cast<int64_t>(stream.below(static_cast<uint64_t>(longest_input))),
                        .output_tokens = 1 + static_cast<int64_t>(stream.below(static_cast<uint64_t>(longest_output))),
                        .prefix_blocks = {}});
  }
  return requests;
}

}  // namespace foretoken
