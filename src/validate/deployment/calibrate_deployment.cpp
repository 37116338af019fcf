#include "validate/deployment/calibrate_deployment.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/parallel.h"
#include "base/portable_math.h"
#include "kernel/fewshot/cholesky.h"
#include "library/device_models.h"
#include "serving/engine/engine_setup.h"

namespace foretoken {
namespace {

using Matrix = std::vector<std::vector<double>>;

Cholesky factor_of(const Matrix& matrix) {
  std::vector<double> by_rows;
  for (const std::vector<double>& row : matrix) by_rows.insert(by_rows.end(), row.begin(), row.end());
  return Cholesky(std::move(by_rows), matrix.size());
}

constexpr double saturated_ratio = 3;  // simulated over measured TTFT: a queue, whose gradient says nothing
constexpr int most_iterations = 12;

// What one parameter of the fit adds to the constants of engines.
struct Parameter {
  DeploymentConstant constant;
  int engine;  // -1 = of all
  double prior_sd;
};

// One simulation that is asked for: a case with these constants.
struct Trial {
  size_t of_case;
  ConstantVector constants;
  auto operator<=>(const Trial&) const = default;
};

}  // namespace

class DeploymentCalibrator::Fit {
 public:
  explicit Fit(const CalibrationRequest& request)
      : request_(request), threads_(threads_to_use(request.threads)), facts_(threads_) {
    check_cases();
    for (const RunCase& one : request.cases) {
      loads_.push_back(load_of(one));
      observations_.push_back(observations_of(one.run, request.with_means));
      first_.push_back(rows_);
      rows_ += observations_.back().size();
      engine_of_.push_back(engine_index(one.engine));
    }
    if (rows_ == 0) {
      throw InputError({.source = request.cases.front().run.name,
                        .value = "no stage without failed requests",
                        .expected = "end-to-end times, or times per token, of at least one run"});
    }
    choose_parameters();
    for (unsigned i = 0; i < threads_; ++i) facts_[i] = cached_facts(request.facts);
  }

  size_t rows() const { return rows_; }
  size_t case_of(size_t row) const {
    size_t i = 0;
    while (i + 1 < first_.size() && first_[i + 1] <= row) ++i;
    return i;
  }
  const RunObservation& observation_of(size_t row) const {
    const size_t i = case_of(row);
    return observations_[i][row - first_[i]];
  }

  std::vector<Headline> predict(const CalibratedDeployment* deployment, size_t of_case) const {
    ServingFacts facts = facts_.front();
    facts.deployment = deployment == nullptr ? nullptr : std::make_shared<const CalibratedDeployment>(*deployment);
    const RunCase& one = request_.cases[of_case];
    EngineBuilder builder(facts);
    return predicted_with_bounds(builder, one, loads_[of_case], observations_[of_case]);
  }

  Calibration fit(const std::vector<bool>& used) {
    used_ = used.empty() ? std::vector<bool>(rows_, true) : used;
    active_.assign(request_.cases.size(), false);
    for (size_t row = 0; row < rows_; ++row) {
      if (used_[row]) active_[case_of(row)] = true;
    }
    std::vector<double> values(parameters_.size());
    const std::vector<double> before = predictions(values, true);
    State best = search(values);
    const std::vector<double> after = predictions(best.values, true);
    Calibration result{.deployment = {.name = request_.name,
                                      .engine = std::string(engine_family(front().engine.flags.engine)),
                                      .stack = stack_name(front().engine),
                                      .device = front().engine.device.name,
                                      .engines = {},
                                      .others = posterior_of(best, -1),
                                      .rows = {},
                                      .notes = {}}};
    for (size_t i = 0; i < engines_.size(); ++i) {
      result.deployment.engines.push_back({.model = engines_[i].model.name,
                                           .plan = engines_[i].plan,
                                           .constants = posterior_of(best, static_cast<int>(i))});
    }
    for (size_t i = 0; i < request_.cases.size(); ++i) {
      for (size_t k = 0; k < observations_[i].size(); ++k) {
        const RunObservation& observation = observations_[i][k];
        const size_t row = first_[i] + k;
        result.deployment.rows.push_back({.run = observation.name,
                                          .metric = std::string(run_metric_name(observation.metric)),
                                          .measured = 1e3 * observation.measured_s,
                                          .before = 1e3 * before[row],
                                          .after = 1e3 * after[row],
                                          .left_out = {},
                                          .used = best.weights[row] > 0});
      }
    }
    if (request_.leave_one_out) leave_out(best, result.deployment.rows);
    tell_what_is_known(best, result);
    if (request_.suggest) suggest(best, result);
    result.simulations = static_cast<int64_t>(known_.size()) + suggested_;
    return result;
  }

 private:
  struct State {
    std::vector<double> values, predicted;
    Matrix gradient;                 // of the logarithm of each row, by parameter
    std::vector<double> weights;     // 1 / variance, less where the error is large; 0 = left out
    std::vector<double> covariance;  // of the parameters, by rows
  };

  const RunCase& front() const { return request_.cases.front(); }

  static std::string stack_name(const EngineSpec& engine) {
    return engine.stack.empty() ? std::string(engine_family(engine.flags.engine)) : engine.stack;
  }

  void check_cases() const {
    ensure(!request_.cases.empty(), "somebody asks about a run");
    for (const RunCase& one : request_.cases) {
      const EngineSpec &a = front().engine, &b = one.engine;
      const auto same = [&](const char* what, const std::string& first, const std::string& other) {
        if (first == other) return;
        throw InputError({.source = one.run.name,
                          .path = what,
                          .value = other,
                          .expected = fmt::format("{}, as of {}: one deployment has one", first, front().run.name)});
      };
      same("device", a.device.name, b.device.name);
      same("engine", std::string(engine_family(a.flags.engine)), std::string(engine_family(b.flags.engine)));
      if (b.steps.is_measured()) {
        throw InputError({.source = one.run.name,
                          .value = "steps of measured tables",
                          .expected = "steps of our own kernels: tables have no constants"});
      }
    }
  }

  size_t engine_index(const EngineSpec& spec) {
    for (size_t i = 0; i < engines_.size(); ++i) {
      const ParallelPlan &a = engines_[i].plan, &b = spec.plan;
      if (engines_[i].model.name == spec.model.name && a.tensor == b.tensor && a.pipeline == b.pipeline &&
          a.data == b.data && a.expert == b.expert) {
        return i;
      }
    }
    engines_.push_back(spec);
    return engines_.size() - 1;
  }

  // Collectives and experts are the level of a single engine: only several engines tell them apart.
  void choose_parameters() {
    const bool several = engines_.size() > 1;
    const bool sends = std::any_of(engines_.begin(), engines_.end(), [](const EngineSpec& one) {
      return rank_count(one.plan) > 1 || one.plan.expert > 1;
    });
    const bool has_experts =
        std::any_of(engines_.begin(), engines_.end(), [](const EngineSpec& one) { return one.model.has_experts(); });
    for (size_t i = 0; i < deployment_constants; ++i) {
      const auto constant = static_cast<DeploymentConstant>(i);
      double sd = deployment_constant_kinds()[i].prior_sd;
      if (constant == DeploymentConstant::front) continue;
      if (constant == DeploymentConstant::collectives && !(several && sends)) continue;
      if (constant == DeploymentConstant::experts && !(several && has_experts)) continue;
      if (constant == DeploymentConstant::level) {
        sd = std::sqrt(sd * sd - level_sd_between_models * level_sd_between_models);
      }
      parameters_.push_back({constant, -1, sd});
    }
    const double front_sd = deployment_constant_kinds()[static_cast<size_t>(DeploymentConstant::front)].prior_sd;
    for (size_t i = 0; i < engines_.size(); ++i) {
      parameters_.push_back({DeploymentConstant::level, static_cast<int>(i), level_sd_between_models});
      if (!engines_[i].offline) parameters_.push_back({DeploymentConstant::front, static_cast<int>(i), front_sd});
    }
  }

  ConstantVector constants_of(const std::vector<double>& values, int engine) const {
    ConstantVector constants = {};
    for (size_t i = 0; i < parameters_.size(); ++i) {
      if (parameters_[i].engine == -1 || parameters_[i].engine == engine) {
        at(constants, parameters_[i].constant) += values[i];
      }
    }
    for (size_t i = 0; i < deployment_constants; ++i) {
      const DeploymentConstantKind& kind = deployment_constant_kinds()[i];
      constants[i] = std::clamp(constants[i], kind.least, kind.most);
    }
    return constants;
  }

  // Kernels are opened once for each thread.
  static ServingFacts cached_facts(ServingFacts facts) {
    auto kept = std::make_shared<std::map<std::string, DeviceModels>>();  // shared: functions are copied
    facts.device_models = [make = facts.device_models, kept](const Device& device, const ParallelPlan& plan,
                                                             const PlacementSpec& placement) {
      const std::string key = device_models_key(device.name, plan, placement);
      const auto found = kept->find(key);
      return found != kept->end() ? found->second : kept->emplace(key, make(device, plan, placement)).first->second;
    };
    facts.stack = [find = facts.stack,
                   stacks = std::make_shared<std::map<std::string, Stack, std::less<>>>()](std::string_view name) {
      const auto found = stacks->find(name);
      return found != stacks->end() ? found->second : stacks->emplace(std::string(name), find(name)).first->second;
    };
    return facts;
  }

  ServingFacts facts_with(unsigned thread, const EngineSpec& engine, const ConstantVector& constants) const {
    ServingFacts facts = facts_[thread];
    auto trial = std::make_shared<CalibratedDeployment>();
    trial->engine = engine_family(engine.flags.engine);
    trial->device = engine.device.name;
    trial->others.mean = constants;
    facts.deployment = std::move(trial);
    return facts;
  }

  std::vector<double> simulate(unsigned thread, const Trial& trial) const {
    const RunCase& one = request_.cases[trial.of_case];
    EngineBuilder builder(facts_with(thread, one.engine, trial.constants));
    return predicted(simulate_run(builder, one, loads_[trial.of_case]), one.run, observations_[trial.of_case]);
  }

  void on_threads(size_t count, const std::function<void(unsigned thread, size_t i)>& work) const {
    std::atomic<size_t> next = 0;
    std::atomic<unsigned> threads = 0;
    run_on_threads(std::min<unsigned>(threads_, static_cast<unsigned>(std::max<size_t>(1, count))), [&] {
      const unsigned thread = threads++;
      for (size_t i = next++; i < count; i = next++) work(thread, i);
    });
  }

  void ask(std::vector<Trial> trials) {
    std::sort(trials.begin(), trials.end());
    trials.erase(std::unique(trials.begin(), trials.end()), trials.end());
    std::erase_if(trials, [&](const Trial& trial) { return known_.contains(trial); });
    std::vector<std::vector<double>> answers(trials.size());
    on_threads(trials.size(), [&](unsigned thread, size_t i) { answers[i] = simulate(thread, trials[i]); });
    for (size_t i = 0; i < trials.size(); ++i) known_.emplace(trials[i], std::move(answers[i]));
    if (request_.tell) request_.tell(fmt::format("{} simulations", known_.size()));
  }

  Trial trial_of(size_t of_case, const std::vector<double>& values) const {
    return {.of_case = of_case, .constants = constants_of(values, static_cast<int>(engine_of_[of_case]))};
  }

  // Of all cases, or 0 for those without a row that counts.
  std::vector<double> predictions(const std::vector<double>& values, bool of_all = false) {
    std::vector<Trial> trials;
    for (size_t i = 0; i < request_.cases.size(); ++i) {
      if (active_[i] || of_all) trials.push_back(trial_of(i, values));
    }
    ask(trials);
    std::vector<double> all(rows_);
    for (const Trial& trial : trials) {
      const std::vector<double>& some = known_.at(trial);
      std::copy(some.begin(), some.end(), all.begin() + static_cast<int64_t>(first_[trial.of_case]));
    }
    return all;
  }

  double error_of(size_t row, double seconds) const {
    return seconds > 0 ? portable_log(observation_of(row).measured_s / seconds) : 0;
  }

  // 1 / variance, less where the error is large.
  double weight_of(size_t row, double seconds) const {
    const RunObservation& observation = observation_of(row);
    const double beyond = std::abs(error_of(row, seconds)) / (observation.sd * observation.huber);
    return (beyond > 1 ? 1 / beyond : 1) / (observation.sd * observation.sd);
  }

  double cost_of(const std::vector<double>& values, const std::vector<double>& seconds) const {
    double cost = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      const double deviations = values[i] / parameters_[i].prior_sd;
      cost += deviations * deviations;
    }
    for (size_t row = 0; row < rows_; ++row) {
      if (!used_[row]) continue;
      const RunObservation& observation = observation_of(row);
      const double z = std::abs(error_of(row, seconds[row])) / observation.sd, k = observation.huber;
      cost += z <= k ? z * z : 2 * k * z - k * k;
    }
    return cost;
  }

  // Rows of a stage whose queue is simulated and was not measured.
  std::vector<double> weights_at(const std::vector<double>& seconds) const {
    std::vector<double> weights(rows_);
    for (size_t i = 0; i < request_.cases.size(); ++i) {
      for (size_t k = 0; k < observations_[i].size(); ++k) {
        const RunObservation& one = observations_[i][k];
        bool saturated = false;
        for (size_t other = 0; other < observations_[i].size(); ++other) {
          const RunObservation& that = observations_[i][other];
          saturated = saturated || (that.name == one.name && that.metric == RunMetric::ttft &&
                                    seconds[first_[i] + other] > saturated_ratio * that.measured_s);
        }
        weights[first_[i] + k] =
            saturated || !used_[first_[i] + k] ? 0 : weight_of(first_[i] + k, seconds[first_[i] + k]);
      }
    }
    return weights;
  }

  // By forward differences of the constants of each case.
  Matrix gradient_at(const std::vector<double>& values, const std::vector<double>& seconds) {
    std::vector<DeploymentConstant> constants;
    for (const Parameter& parameter : parameters_) {
      if (std::find(constants.begin(), constants.end(), parameter.constant) == constants.end()) {
        constants.push_back(parameter.constant);
      }
    }
    const auto moved = [&](size_t of_case, DeploymentConstant constant) {
      Trial trial = trial_of(of_case, values);
      const DeploymentConstantKind& kind = deployment_constant_kinds()[static_cast<size_t>(constant)];
      double& value = at(trial.constants, constant);
      const double step = value + kind.difference <= kind.most ? kind.difference : -kind.difference;
      value += step;
      return std::pair(trial, step);
    };
    std::vector<Trial> trials;
    for (size_t i = 0; i < request_.cases.size(); ++i) {
      if (!active_[i]) continue;
      for (const DeploymentConstant constant : constants) trials.push_back(moved(i, constant).first);
    }
    ask(trials);
    Matrix gradient(rows_, std::vector<double>(parameters_.size()));
    for (size_t i = 0; i < request_.cases.size(); ++i) {
      if (!active_[i]) continue;
      for (const DeploymentConstant constant : constants) {
        const auto [trial, step] = moved(i, constant);
        const std::vector<double>& there = known_.at(trial);
        for (size_t k = 0; k < there.size(); ++k) {
          const size_t row = first_[i] + k;
          if (seconds[row] <= 0 || there[k] <= 0) continue;
          const double slope = portable_log(there[k] / seconds[row]) / step;
          for (size_t p = 0; p < parameters_.size(); ++p) {
            const Parameter& parameter = parameters_[p];
            const bool applies = parameter.engine == -1 || parameter.engine == static_cast<int>(engine_of_[i]);
            if (parameter.constant == constant && applies) gradient[row][p] = slope;
          }
        }
      }
    }
    return gradient;
  }

  // Prior and data, by the gradient and weights of the state; `left_out`: rows that do not count.
  Matrix information(const State& state, const std::vector<bool>& left_out = {}) const {
    const size_t n = parameters_.size();
    Matrix matrix(n, std::vector<double>(n));
    for (size_t i = 0; i < n; ++i) matrix[i][i] = 1 / (parameters_[i].prior_sd * parameters_[i].prior_sd);
    for (size_t row = 0; row < rows_; ++row) {
      if (!left_out.empty() && left_out[row]) continue;
      for (size_t i = 0; i < n; ++i) {
        for (size_t j = 0; j < n; ++j) {
          matrix[i][j] += state.weights[row] * state.gradient[row][i] * state.gradient[row][j];
        }
      }
    }
    return matrix;
  }

  // Where the linear model about the state has its best values.
  std::vector<double> linear_best(const State& state, double damping, const std::vector<bool>& left_out = {}) const {
    const size_t n = parameters_.size();
    Matrix matrix = information(state, left_out);
    std::vector<double> pull(n);
    for (size_t i = 0; i < n; ++i) {
      pull[i] = -state.values[i] / (parameters_[i].prior_sd * parameters_[i].prior_sd);
      matrix[i][i] *= 1 + damping;
    }
    for (size_t row = 0; row < rows_; ++row) {
      if (!left_out.empty() && left_out[row]) continue;
      const double error = error_of(row, state.predicted[row]);
      for (size_t i = 0; i < n; ++i) pull[i] += state.weights[row] * state.gradient[row][i] * error;
    }
    const std::vector<double> change = factor_of(matrix).solve(pull);
    std::vector<double> values = state.values;
    for (size_t i = 0; i < n; ++i) {
      values[i] += change[i];
      const DeploymentConstantKind& kind = deployment_constant_kinds()[static_cast<size_t>(parameters_[i].constant)];
      values[i] = std::clamp(values[i], kind.least, kind.most);
    }
    return values;
  }

  // The same gradient, changed as little as what happened on the way from the state to `there` asks for (Broyden).
  void learn(State& state, const std::vector<double>& there, const std::vector<double>& seconds) const {
    std::vector<double> step(there.size());
    double length = 0;
    for (size_t i = 0; i < there.size(); ++i) {
      step[i] = there[i] - state.values[i];
      const double deviations = step[i] / parameters_[i].prior_sd;
      length += deviations * deviations;
    }
    if (length == 0) return;
    for (size_t row = 0; row < rows_; ++row) {
      if (state.predicted[row] <= 0 || seconds[row] <= 0) continue;
      double missed = portable_log(seconds[row] / state.predicted[row]);
      for (size_t i = 0; i < step.size(); ++i) missed -= state.gradient[row][i] * step[i];
      for (size_t i = 0; i < step.size(); ++i) {
        // What has no effect on a row gets none.
        if (state.gradient[row][i] == 0) continue;
        state.gradient[row][i] += missed * step[i] / (parameters_[i].prior_sd * parameters_[i].prior_sd) / length;
      }
    }
  }

  // Takes the engine out of a queue that was not measured, in whose gradient steps do not show.
  void leave_saturation(State& state) {
    for (size_t i = 0; i < parameters_.size(); ++i) {
      if (parameters_[i].engine != -1) continue;
      if (parameters_[i].constant == DeploymentConstant::host) state.values[i] -= 0.3;
      if (parameters_[i].constant == DeploymentConstant::level) state.values[i] -= 0.05;
    }
    state.predicted = predictions(state.values);
  }

  State search(std::vector<double> values) {
    State state{.values = std::move(values), .predicted = {}, .gradient = {}, .weights = {}, .covariance = {}};
    state.predicted = predictions(state.values);
    const bool has_rows = std::find(used_.begin(), used_.end(), true) != used_.end();
    double damping = 0;
    std::vector<double> differenced_at;  // where the gradient was worked out by differences
    const auto work_out = [&] {
      state.gradient = gradient_at(state.values, state.predicted);
      differenced_at = state.values;
    };
    for (int iteration = 0; has_rows && iteration < most_iterations; ++iteration) {
      state.weights = weights_at(state.predicted);
      if (std::all_of(state.weights.begin(), state.weights.end(), [](double weight) { return weight == 0; })) {
        leave_saturation(state);
        continue;
      }
      if (state.gradient.empty()) work_out();
      const double cost = cost_of(state.values, state.predicted);
      const std::vector<double> there = linear_best(state, damping);
      const std::vector<double> seconds = predictions(there);
      const double cost_there = cost_of(there, seconds);
      if (cost_there > cost) {
        // The gradient is that of another place, or the step was too long.
        if (differenced_at != state.values) {
          work_out();
        } else if (damping > 30) {
          break;
        } else {
          damping = damping == 0 ? 0.5 : damping * 4;
        }
        continue;
      }
      learn(state, there, seconds);
      state.values = there;
      state.predicted = seconds;
      damping /= 3;
      constexpr double hardly_better = 0.02;
      if (cost - cost_there < hardly_better) break;
    }
    state.weights = weights_at(state.predicted);
    if (state.gradient.empty() || !has_rows) {
      state.gradient.assign(rows_, std::vector<double>(parameters_.size()));
    } else if (is_far(differenced_at, state.values)) {
      work_out();
    }
    state.covariance = factor_of(information(state)).inverse();
    return state;
  }

  bool is_far(const std::vector<double>& a, const std::vector<double>& b) const {
    for (size_t i = 0; i < a.size(); ++i) {
      if (std::abs(a[i] - b[i]) > parameters_[i].prior_sd) return true;
    }
    return false;
  }

  // Of an engine, or (-1) of one that was not measured.
  ConstantPosterior posterior_of(const State& state, int engine) const {
    struct Unexplained {
      double step, other_step, prompt_of_one, prompt_of_more, other_prompt;
    };
    // What no constant explains, where the requests are known and where they were made up from a summary.
    constexpr Unexplained of_requests{0.02, 0.03, 0.055, 0.04, 0.08}, of_summaries{0.07, 0.1, 0.2, 0.15, 0.25};
    const bool made_up = std::all_of(request_.cases.begin(), request_.cases.end(),
                                     [](const RunCase& one) { return one.run.requests.empty(); });
    const Unexplained& sd = made_up ? of_summaries : of_requests;
    size_t stages = 0;
    for (size_t row = 0; row < rows_; ++row)
      stages += state.weights[row] > 0 && observation_of(row).metric == RunMetric::ttft;
    ConstantPosterior posterior = prior_of_constants();
    posterior.mean = constants_of(state.values, engine);
    posterior.step_sd = engine < 0 ? sd.other_step : sd.step;
    posterior.prompt_sd = engine < 0 ? sd.other_prompt : stages > 1 ? sd.prompt_of_more : sd.prompt_of_one;
    const auto applies = [&](const Parameter& one) { return one.engine == -1 || one.engine == engine; };
    for (size_t i = 0; i < deployment_constants; ++i) {
      for (size_t j = 0; j < deployment_constants; ++j) {
        double sum = 0;
        bool any = false;
        for (size_t p = 0; p < parameters_.size(); ++p) {
          for (size_t q = 0; q < parameters_.size(); ++q) {
            if (!applies(parameters_[p]) || !applies(parameters_[q])) continue;
            if (static_cast<size_t>(parameters_[p].constant) != i) continue;
            if (static_cast<size_t>(parameters_[q].constant) != j) continue;
            sum += state.covariance[p * parameters_.size() + q];
            any = true;
          }
        }
        if (any) posterior.covariance[i][j] = sum;
      }
    }
    if (engine < 0) {
      constexpr auto level = static_cast<size_t>(DeploymentConstant::level);
      posterior.covariance[level][level] += level_sd_between_models * level_sd_between_models;
    }
    // A single engine cannot tell its collectives and experts from its level: their prior is in that already.
    if (engine >= 0) {
      for (const DeploymentConstant one : {DeploymentConstant::experts, DeploymentConstant::collectives}) {
        const bool fitted = std::any_of(parameters_.begin(), parameters_.end(),
                                        [&](const Parameter& parameter) { return parameter.constant == one; });
        const auto i = static_cast<size_t>(one);
        if (!fitted) posterior.covariance[i][i] = 0;
      }
    }
    return posterior;
  }

  // Each run, or each stage where there is one run, predicted by the others: the linear model without its rows says
  // where the constants would be, the simulator what they give.
  void leave_out(const State& best, std::vector<CalibrationRow>& rows) {
    std::vector<std::vector<size_t>> sets;
    if (request_.cases.size() > 1) {
      for (size_t i = 0; i < request_.cases.size(); ++i) {
        sets.emplace_back();
        for (size_t k = 0; k < observations_[i].size(); ++k) sets.back().push_back(first_[i] + k);
      }
    } else {
      std::map<std::string, std::vector<size_t>> by_name;
      for (size_t row = 0; row < rows_; ++row) by_name[observation_of(row).name].push_back(row);
      if (by_name.size() < 2) return;
      for (auto& [name, some] : by_name) sets.push_back(std::move(some));
    }
    for (const std::vector<size_t>& set : sets) {
      std::vector<bool> left_out(rows_);
      for (const size_t row : set) left_out[row] = true;
      const std::vector<double> there = predictions(linear_best(best, 0, left_out));
      for (const size_t row : set) rows[row].left_out = 1e3 * there[row];
    }
  }

  void tell_what_is_known(const State& best, Calibration& result) const {
    constexpr double hardly_narrower = 0.8, strongly = 0.6;
    const ConstantPosterior posterior = posterior_of(best, 0);
    for (size_t i = 0; i < deployment_constants; ++i) {
      const auto constant = static_cast<DeploymentConstant>(i);
      const bool fitted = std::any_of(parameters_.begin(), parameters_.end(),
                                      [&](const Parameter& one) { return one.constant == constant; });
      if (!fitted) continue;
      result.used.push_back(constant);
      if (posterior.sd(constant) > hardly_narrower * deployment_constant_kinds()[i].prior_sd) {
        result.untold.push_back(constant);
      }
    }
    for (size_t a = 0; a < result.used.size(); ++a) {
      for (size_t b = a + 1; b < result.used.size(); ++b) {
        const auto i = static_cast<size_t>(result.used[a]), j = static_cast<size_t>(result.used[b]);
        const double correlation =
            posterior.covariance[i][j] / std::sqrt(posterior.covariance[i][i] * posterior.covariance[j][j]);
        if (correlation < -strongly) result.together.emplace_back(result.used[a], result.used[b]);
      }
    }
  }

  void suggest(const State& best, Calibration& result) {
    const EngineSpec& engine = engines_.front();
    std::atomic<int64_t> simulated = 0;
    const auto simulate_load = [&](unsigned thread, const LoadSpec& load, const ConstantVector& constants) {
      EngineBuilder builder(facts_with(thread, engine, constants));
      ++simulated;
      const ServingMetrics metrics =
          simulate_serving(builder, engine, load, {.percentiles = {}, .step_bounds = false}).run.metrics;
      return TimesOfLoad{.mean_e2e_ms = metrics.e2el.mean_ms, .median_ttft_ms = metrics.ttft.median_ms};
    };
    const auto work_on_threads = [this](size_t count, const std::function<void(unsigned, size_t)>& work) {
      on_threads(count, work);
    };
    result.next = suggest_loads(posterior_of(best, 0), result.used, simulate_load, work_on_threads);
    suggested_ = simulated;
  }

  const CalibrationRequest& request_;
  unsigned threads_;
  std::vector<ServingFacts> facts_;  // by thread
  std::vector<LoadSpec> loads_;      // by case
  std::vector<std::vector<RunObservation>> observations_;
  std::vector<size_t> first_;  // row of each case
  std::vector<size_t> engine_of_;
  size_t rows_ = 0;
  std::vector<EngineSpec> engines_;  // that differ in model or layout
  std::vector<Parameter> parameters_;
  std::map<Trial, std::vector<double>> known_;
  std::vector<bool> used_;    // rows
  std::vector<bool> active_;  // cases with such a row
  int64_t suggested_ = 0;
};

DeploymentCalibrator::DeploymentCalibrator(const CalibrationRequest& request) : fit_(std::make_unique<Fit>(request)) {}
DeploymentCalibrator::~DeploymentCalibrator() = default;

size_t DeploymentCalibrator::rows() const {
  return fit_->rows();
}
size_t DeploymentCalibrator::case_of(size_t row) const {
  return fit_->case_of(row);
}
const RunObservation& DeploymentCalibrator::observation(size_t row) const {
  return fit_->observation_of(row);
}
Calibration DeploymentCalibrator::fit(const std::vector<bool>& used) {
  return fit_->fit(used);
}
std::vector<Headline> DeploymentCalibrator::predict(const CalibratedDeployment* deployment, size_t of_case) const {
  return fit_->predict(deployment, of_case);
}

Calibration calibrate_deployment(const CalibrationRequest& request) {
  return DeploymentCalibrator(request).fit();
}

}  // namespace foretoken
