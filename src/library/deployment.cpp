#include "library/deployment.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/error.h"
#include "base/file.h"
#include "base/portable_math.h"

namespace foretoken {
namespace {

constexpr size_t most_deployment_bytes = size_t{16} << 20;
constexpr size_t most_calibrated_engines = 1000;
constexpr double usual_step_sd = 0.1, usual_prompt_sd = 0.15;  // of what ships, beyond its constants

// Add your line here, in the order of DeploymentConstant.
constexpr std::array<DeploymentConstantKind, deployment_constants> constant_kinds = {{
    {"host", "host time of each step", 0.5, -4, 1, 0.2},
    {"level", "time of every kernel inside the engine", 0.08, -0.35, 0.25, 0.02},
    {"prompt", "time of kernels in steps with prompts, on top of level", 0.05, -0.35, 0.5, 0.04},
    {"attention", "time of attention kernels, on top of level", 0.2, -0.6, 0.4, 0.05},
    {"experts", "time of expert kernels, on top of level", 0.1, -0.5, 0.5, 0.04},
    {"collectives", "time of collectives between GPUs", 0.3, -1, 1, 0.1},
    {"front", "latency between the client and the engine's queue", 0.6, -2, 1.5, 0.2},
}};

// Whether it is that of some vector: all its principal parts are at least 0, but for rounding.
bool is_covariance(ConstantMatrix matrix) {
  for (size_t i = 0; i < matrix.size(); ++i) {
    if (matrix[i][i] < 0) return false;
    for (size_t j = 0; j < i; ++j) {
      if (std::abs(matrix[i][j] - matrix[j][i]) > 1e-9) return false;
    }
    matrix[i][i] += 1e-9;
  }
  // Cholesky.
  for (size_t i = 0; i < matrix.size(); ++i) {
    for (size_t j = 0; j <= i; ++j) {
      double sum = matrix[i][j];
      for (size_t k = 0; k < j; ++k) sum -= matrix[i][k] * matrix[j][k];
      if (i == j) {
        if (sum <= 0) return false;
        matrix[i][i] = std::sqrt(sum);
      } else {
        matrix[i][j] = sum / matrix[j][j];
      }
    }
  }
  return true;
}

ConstantPosterior read_posterior(const JsonView& view) {
  view.allow_only({"constants", "covariance", "step_sd", "prompt_sd"});
  ConstantPosterior posterior;
  const JsonView constants = view.at("constants");
  for (const auto& [name, value] : constants.members()) {
    const auto kind = std::find_if(constant_kinds.begin(), constant_kinds.end(),
                                   [&name = name](const auto& one) { return one.name == name; });
    if (kind == constant_kinds.end()) value.fail("a constant of a deployment: host, level, prompt, ...");
    value.allow_only({"log", "factor", "sd", "prior_sd"});
    posterior.mean[static_cast<size_t>(kind - constant_kinds.begin())] =
        value.at("log").number({kind->least, kind->most});
  }
  const JsonView covariance = view.at("covariance");
  const std::vector<JsonView> rows = covariance.items();
  if (rows.size() != deployment_constants) covariance.fail(fmt::format("{} rows", deployment_constants));
  for (size_t i = 0; i < rows.size(); ++i) {
    const std::vector<JsonView> cells = rows[i].items();
    if (cells.size() != deployment_constants) rows[i].fail(fmt::format("{} numbers", deployment_constants));
    for (size_t j = 0; j < cells.size(); ++j) posterior.covariance[i][j] = cells[j].number({-100, 100});
  }
  if (!is_covariance(posterior.covariance)) covariance.fail("a covariance matrix: symmetric, no negative variance");
  posterior.step_sd = view.at("step_sd").number({0, 10});
  posterior.prompt_sd = view.at("prompt_sd").number({0, 10});
  return posterior;
}

Json posterior_json(const ConstantPosterior& posterior) {
  Json constants = Json::object(), covariance = Json::array();
  for (size_t i = 0; i < deployment_constants; ++i) {
    constants.set(std::string(constant_kinds[i].name), Json::object({{"log", posterior.mean[i]},
                                                                     {"factor", portable_exp(posterior.mean[i])},
                                                                     {"sd", std::sqrt(posterior.covariance[i][i])},
                                                                     {"prior_sd", constant_kinds[i].prior_sd}}));
    Json row = Json::array();
    for (const double value : posterior.covariance[i]) row.push(value);
    covariance.push(std::move(row));
  }
  return Json::object({{"constants", std::move(constants)},
                       {"covariance", std::move(covariance)},
                       {"step_sd", posterior.step_sd},
                       {"prompt_sd", posterior.prompt_sd}});
}

constexpr std::pair<const char*, int64_t ParallelPlan::*> plan_fields[] = {
    {"tensor_parallel_size", &ParallelPlan::tensor},
    {"pipeline_parallel_size", &ParallelPlan::pipeline},
    {"data_parallel_size", &ParallelPlan::data},
    {"expert_parallel_size", &ParallelPlan::expert}};

CalibratedEngine read_engine(const JsonView& view) {
  view.allow_only({"model", "tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size",
                   "expert_parallel_size", "posterior"});
  CalibratedEngine engine{
      .model = view.at("model").string(), .plan = {}, .constants = read_posterior(view.at("posterior"))};
  for (const auto& [name, size] : plan_fields) {
    if (const auto found = view.find(name)) engine.plan.*size = found->integer({1, 1'000'000});
  }
  return engine;
}

CalibrationRow read_row(const JsonView& view) {
  view.allow_only({"run", "metric", "measured", "before", "after", "left_out", "used"});
  constexpr Range<double> amounts{0, 1e18};
  CalibrationRow row{.run = view.at("run").string(),
                     .metric = view.at("metric").string(),
                     .measured = view.at("measured").number(amounts),
                     .before = view.at("before").number(amounts),
                     .after = view.at("after").number(amounts)};
  if (const auto left_out = view.find("left_out")) row.left_out = left_out->number(amounts);
  if (const auto used = view.find("used")) row.used = used->boolean();
  return row;
}

bool is_same_layout(const ParallelPlan& a, const ParallelPlan& b) {
  return a.tensor == b.tensor && a.pipeline == b.pipeline && a.data == b.data && a.expert == b.expert;
}

}  // namespace

std::span<const DeploymentConstantKind, deployment_constants> deployment_constant_kinds() {
  return constant_kinds;
}

double ConstantPosterior::sd(DeploymentConstant which) const {
  const auto i = static_cast<size_t>(which);
  return std::sqrt(covariance[i][i]);
}

ConstantPosterior prior_of_constants() {
  ConstantPosterior prior{.step_sd = usual_step_sd, .prompt_sd = usual_prompt_sd};
  for (size_t i = 0; i < deployment_constants; ++i) {
    prior.covariance[i][i] = constant_kinds[i].prior_sd * constant_kinds[i].prior_sd;
  }
  return prior;
}

bool CalibratedDeployment::has_measured(const std::string& model, const ParallelPlan& plan) const {
  return std::any_of(engines.begin(), engines.end(),
                     [&](const CalibratedEngine& one) { return one.model == model && is_same_layout(one.plan, plan); });
}

std::optional<ConstantPosterior> CalibratedDeployment::constants_of(std::string_view engine_family,
                                                                    const std::string& device_name,
                                                                    const std::string& model,
                                                                    const ParallelPlan& plan) const {
  if (engine_family != engine || device_name != device) return std::nullopt;
  for (const CalibratedEngine& one : engines) {
    if (one.model == model && is_same_layout(one.plan, plan)) return one.constants;
  }
  return others;
}

CalibratedDeployment parse_deployment(std::string_view text, const std::string& source) {
  const Json document = parse_json(text, source, {.max_bytes = most_deployment_bytes});
  const JsonView root(document, source);
  root.allow_only({"format", "name", "engine", "stack", "device", "engines", "other_models", "runs", "notes"});
  if (const JsonView format = root.at("format"); format.integer({1, 1'000'000}) > 1) {
    format.fail("1: a later version of foretoken wrote this");
  }
  CalibratedDeployment deployment{.engine = root.at("engine").string(),
                                  .device = root.at("device").string(),
                                  .engines = {},
                                  .others = read_posterior(root.at("other_models")),
                                  .rows = {},
                                  .notes = {}};
  if (const auto name = root.find("name")) deployment.name = name->string();
  if (const auto stack = root.find("stack")) deployment.stack = stack->string();
  const JsonView engines = root.at("engines");
  for (const JsonView& view : engines.items()) {
    if (deployment.engines.size() == most_calibrated_engines) {
      engines.fail(fmt::format("at most {} engines", most_calibrated_engines));
    }
    deployment.engines.push_back(read_engine(view));
  }
  if (const auto runs = root.find("runs")) {
    for (const JsonView& view : runs->items()) deployment.rows.push_back(read_row(view));
  }
  if (const auto notes = root.find("notes")) {
    for (const JsonView& note : notes->items()) deployment.notes.push_back(note.string());
  }
  return deployment;
}

CalibratedDeployment read_deployment(const std::filesystem::path& file) {
  return parse_deployment(read_file(file, most_deployment_bytes), file.string());
}

Json deployment_json(const CalibratedDeployment& deployment) {
  Json engines = Json::array(), rows = Json::array(), notes = Json::array();
  for (const CalibratedEngine& one : deployment.engines) {
    Json engine = Json::object({{"model", one.model}});
    for (const auto& [name, size] : plan_fields) engine.set(name, one.plan.*size);
    engine.set("posterior", posterior_json(one.constants));
    engines.push(std::move(engine));
  }
  for (const CalibrationRow& row : deployment.rows) {
    Json json = Json::object({{"run", row.run},
                              {"metric", row.metric},
                              {"measured", row.measured},
                              {"before", row.before},
                              {"after", row.after}});
    if (row.left_out) json.set("left_out", *row.left_out);
    if (!row.used) json.set("used", false);
    rows.push(std::move(json));
  }
  for (const std::string& note : deployment.notes) notes.push(note);
  return Json::object({{"format", 1},
                       {"name", deployment.name},
                       {"engine", deployment.engine},
                       {"stack", deployment.stack},
                       {"device", deployment.device},
                       {"engines", std::move(engines)},
                       {"other_models", posterior_json(deployment.others)},
                       {"runs", std::move(rows)},
                       {"notes", std::move(notes)}});
}

}  // namespace foretoken
