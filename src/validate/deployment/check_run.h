// Whether a run agrees with a calibrated deployment, for those who look every night.
#pragma once

#include <string>
#include <vector>

#include "serving/serving_run.h"
#include "validate/deployment/run_case.h"

namespace foretoken {

struct CheckedNumber {
  std::string name, metric;
  double measured_ms = 0;
  Headline predicted_ms;  // with its interval of 90%
  double deviations = 0;  // of log measured over predicted, in standard deviations: positive = slower
  bool agrees = true;
};

struct RunCheck {
  std::string run, deployment;
  std::vector<CheckedNumber> numbers;
  double limit = 0;          // deviations beyond which a number does not agree
  bool knows_engine = true;  // false: the deployment was calibrated on other models or layouts only

  bool agrees() const;
};

// `facts` with a deployment. InputError where it is of another engine or GPU, or the run has nothing to compare.
RunCheck check_run_against(const RunCase& measured, const ServingFacts& facts, double false_alarms);

}  // namespace foretoken
