// Few physical constants of a deployment from measured runs: a robust Bayesian update of the shipped stack in log
// space. Damped Gauss-Newton steps through the simulator itself; derivatives are finite differences.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "library/deployment.h"
#include "validate/deployment/run_case.h"
#include "validate/deployment/suggested_load.h"

namespace foretoken {

struct CalibrationRequest {
  std::vector<RunCase> cases;
  ServingFacts facts;  // whose own deployment, if any, is not used
  std::string name = {};
  bool with_means = false;                            // also rows that are scored alone: means of TTFT beside medians
  bool leave_one_out = true;                          // also predict each run from the others
  bool suggest = true;                                // also look for the load that would tell most
  int64_t threads = 0;                                // 0 = all cores; the result is the same
  std::function<void(const std::string&)> tell = {};  // progress
};

struct Calibration {
  CalibratedDeployment deployment;
  std::vector<DeploymentConstant> used;    // that these runs could tell something about
  std::vector<DeploymentConstant> untold;  // of these, what stays as unsure as before
  std::vector<std::pair<DeploymentConstant, DeploymentConstant>> together;  // of which only the sum is known
  std::vector<SuggestedLoad> next;                                          // the best first
  int64_t simulations = 0;
};

// InputError where the runs are not of one engine and GPU, or hold nothing to compare.
Calibration calibrate_deployment(const CalibrationRequest& request);

// The same several times, from some of the numbers: what was simulated is kept.
class DeploymentCalibrator {
 public:
  // The request outlives it.
  explicit DeploymentCalibrator(const CalibrationRequest& request);
  ~DeploymentCalibrator();

  // Numbers of the cases, one case after the other.
  size_t rows() const;
  size_t case_of(size_t row) const;
  const RunObservation& observation(size_t row) const;

  // `used`: the rows that count; empty = all. The result has all of them.
  Calibration fit(const std::vector<bool>& used = {});
  // The rows of a case in seconds, as a user of the deployment (null: of what ships) gets them, with the intervals of
  // 90%.
  std::vector<Headline> predict(const CalibratedDeployment* deployment, size_t of_case) const;

 private:
  class Fit;
  std::unique_ptr<Fit> fit_;
};

}  // namespace foretoken
