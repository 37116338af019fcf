// What calibration learned about one deployment: few physical constants, each a multiplier of a cost that its software
// stack has, in log space (0 = as shipped), with how sure it is of them. docs/calibration.md describes the file.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "model/step.h"

namespace foretoken {

enum class DeploymentConstant : uint8_t { host, level, prompt, attention, experts, collectives, front };
inline constexpr size_t deployment_constants = 7;

struct DeploymentConstantKind {
  std::string_view name;     // in files
  std::string_view summary;  // what it multiplies
  double prior_sd;           // log; the mean is 0
  double least, most;
  double difference;  // step of finite differences
};
std::span<const DeploymentConstantKind, deployment_constants> deployment_constant_kinds();

using ConstantVector = std::array<double, deployment_constants>;
using ConstantMatrix = std::array<ConstantVector, deployment_constants>;

inline double& at(ConstantVector& values, DeploymentConstant which) {
  return values[static_cast<size_t>(which)];
}
inline double at(const ConstantVector& values, DeploymentConstant which) {
  return values[static_cast<size_t>(which)];
}

struct ConstantPosterior {
  ConstantVector mean = {};
  ConstantMatrix covariance = {};
  // Standard deviations (log) of what no constant explains: of steps, and of steps with prompts.
  double step_sd = 0, prompt_sd = 0;

  double sd(DeploymentConstant which) const;
};

// Nothing learned yet.
ConstantPosterior prior_of_constants();

// Of levels that models of one deployment have beyond the common one: what does not carry over to another model.
inline constexpr double level_sd_between_models = 0.04;

// One model in one layout.
struct CalibratedEngine {
  std::string model;
  ParallelPlan plan;
  ConstantPosterior constants;
};

// One number of a run that was calibrated on: what was measured, and predicted before and after.
struct CalibrationRow {
  std::string run, metric;
  double measured = 0, before = 0, after = 0;
  std::optional<double> left_out;  // predicted by all other runs
  bool used = true;                // false: it was left out, as the engine would be saturated
};

struct CalibratedDeployment {
  std::string name;
  std::string engine, stack, device;  // family of the engine; the stack that the constants are of
  std::vector<CalibratedEngine> engines;
  ConstantPosterior others;  // of models and layouts that were not measured
  std::vector<CalibrationRow> rows;
  std::vector<std::string> notes;

  // The constants for such an engine; nothing where the deployment says nothing about it: another device or engine.
  std::optional<ConstantPosterior> constants_of(std::string_view engine_family, const std::string& device_name,
                                                const std::string& model, const ParallelPlan& plan) const;
  bool has_measured(const std::string& model, const ParallelPlan& plan) const;
};

// InputError with file, line and path.
CalibratedDeployment parse_deployment(std::string_view text, const std::string& source);
CalibratedDeployment read_deployment(const std::filesystem::path& file);
Json deployment_json(const CalibratedDeployment& deployment);

}  // namespace foretoken
