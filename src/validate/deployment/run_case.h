// A measured run beside the engine that served it: its load as a question, and its numbers as a simulation has them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "serving/engine/engine_builder.h"
#include "serving/runs/measured_run.h"
#include "serving/serving_spec.h"

namespace foretoken {

struct RunCase {
  MeasuredRun run;
  EngineSpec engine;
  std::optional<LoadSpec> load = {};  // nothing = what the run tells of it
  DeploymentSpec deployment = {};     // of the replicas: their router, and seeds of a load that is drawn
};

// The requests as they were sent, those that failed left out, with ids by their place in the run; or made up as the
// run's load says where the tool gives only a summary. InputError where that does not say enough.
LoadSpec load_of(const MeasuredRun& run);
LoadSpec load_of(const RunCase& measured);

enum class RunMetric : uint8_t { e2e, tpot, ttft };
std::string_view run_metric_name(RunMetric metric);  // "e2e_ms"

// One number of a run to be compared: of all requests, a stage, or a part of one.
struct RunObservation {
  std::string name;  // run, and where there are several stage and part
  RunMetric metric = RunMetric::e2e;
  bool median = false;           // else the mean
  int64_t stage = -1;            // -1 = all
  std::vector<size_t> requests;  // of the run; empty = all of the stage (times were not recorded)
  double measured_s = 0;
  double sd = 0;     // log: noise, and what no constant explains
  double huber = 0;  // beyond so many sd, errors count by their size, not their square
};

// End-to-end and first-token times of each stage; of requests with times, in up to four parts of the stage. The parts
// of a stage weigh as much as one number. TTFT is the median where there is one: means hold cold starts that no
// constant explains. Stages in which more than 2% of the requests failed are left out.
// `with_means`: also their means, to be scored.
std::vector<RunObservation> observations_of(const MeasuredRun& run, bool with_means = false);

// What one simulation makes of a run.
struct ReplayedRun {
  std::vector<RequestRecord> by_id;  // of listed requests; empty where the load was made up
  ServingPrediction answer;
};
ReplayedRun simulate_run(EngineBuilder& builder, const RunCase& measured, const LoadSpec& load,
                         StepBound bound = StepBound::value, std::vector<RunObserver*> observers = {});

// Each observation as the simulation has it, in seconds.
std::vector<double> predicted(const ReplayedRun& simulated, const MeasuredRun& run,
                              std::span<const RunObservation> observations);

// The same, with the run at both ends of the step times' intervals.
std::vector<Headline> predicted_with_bounds(EngineBuilder& builder, const RunCase& measured, const LoadSpec& load,
                                            std::span<const RunObservation> observations);

}  // namespace foretoken
