#include "validate/deployment/validate_calibration.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/simulated_time.h"
#include "base/statistics.h"
#include "validate/deployment/calibrate_deployment.h"
#include "validate/deployment/calibration_points.h"
#include "validate/row_filter.h"
#include "validate/serving/validate_run.h"

namespace foretoken {
namespace {

// All ways to take `count` of `from`.
std::vector<std::vector<size_t>> choices(const std::vector<size_t>& from, size_t count) {
  std::vector<std::vector<size_t>> all;
  std::vector<bool> taken(from.size());
  std::fill(taken.begin(), taken.begin() + static_cast<int64_t>(std::min(count, from.size())), true);
  do {
    std::vector<size_t> some;
    for (size_t i = 0; i < from.size(); ++i) {
      if (taken[i]) some.push_back(from[i]);
    }
    all.push_back(std::move(some));
  } while (std::prev_permutation(taken.begin(), taken.end()));
  return all;
}

std::string metric_of(const RunObservation& observation) {
  std::string name(run_metric_name(observation.metric));
  if (observation.metric == RunMetric::ttft) name += observation.median ? " (median)" : " (mean)";
  return name;
}

// The stages of one table, with what was found of them.
class StageSubsets {
 public:
  StageSubsets(const CalibrationRequest& request, ValidationTally& tally, Validation& result)
      : calibrator_(request), tally_(tally), result_(result) {
    for (size_t row = 0; row < calibrator_.rows(); ++row) {
      const size_t of_case = calibrator_.case_of(row);
      const std::string& name = calibrator_.observation(row).name;
      auto stage = std::find_if(stages_.begin(), stages_.end(), [&](const Stage& one) { return one.name == name; });
      if (stage == stages_.end()) {
        stage = stages_.insert(stages_.end(), {name, request.cases[of_case].engine.model.name, of_case, {}});
      }
      stage->rows.push_back(row);
    }
  }

  void add_uncalibrated() {
    before_.resize(calibrator_.rows());
    std::map<size_t, std::vector<Headline>> by_case;
    for (const Stage& stage : stages_) {
      for (const size_t row : stage.rows) {
        const Headline one = predicted(nullptr, row, by_case);
        before_[row] = percent_error(one.value, calibrator_.observation(row).measured_s);
        add("not calibrated", row, one);
      }
    }
  }

  void add_subsets(size_t count) {
    const std::string group = count == 1 ? "1 stage" : fmt::format("{} stages", count);
    std::map<std::string, double> worst;  // points by which a choice made the rest worse, by metric
    size_t worse = 0, fits = 0;
    for (const std::string& model : models()) {
      const std::vector<size_t> own = stages_of(model, true);
      if (own.size() <= count) continue;
      for (const std::vector<size_t>& chosen : choices(own, count)) {
        std::vector<size_t> rest;
        for (const size_t stage : own) {
          if (std::find(chosen.begin(), chosen.end(), stage) == chosen.end()) rest.push_back(stage);
        }
        const std::map<std::string, double> change = predict(group, chosen, rest);
        ++fits;
        bool is_worse = false;
        for (const auto& [metric, points] : change) {
          const auto [at, first] = worst.try_emplace(metric, points);
          at->second = std::max(at->second, points);
          is_worse = is_worse || (metric == "e2e_ms" && points > 0);
        }
        worse += is_worse ? 1 : 0;
      }
    }
    for (const auto& [metric, points] : worst) {
      result_.notes.push_back(fmt::format(
          "{}: the worst choice changed the mean {} error of the rest by {:+.1f} points", group, metric, points));
    }
    result_.notes.push_back(
        fmt::format("{}: {} of {} choices made the mean e2e_ms error of the rest worse", group, worse, fits));
  }

  void add_other_models() {
    for (const std::string& model : models()) {
      const std::vector<size_t> others = stages_of(model, false);
      if (!others.empty()) predict("other models", others, stages_of(model, true));
    }
  }

 private:
  struct Stage {
    std::string name, model;
    size_t of_case;
    std::vector<size_t> rows;
  };

  std::vector<std::string> models() const {
    std::vector<std::string> names;
    for (const Stage& stage : stages_) {
      if (std::find(names.begin(), names.end(), stage.model) == names.end()) names.push_back(stage.model);
    }
    return names;
  }

  std::vector<size_t> stages_of(const std::string& model, bool own) const {
    std::vector<size_t> indices;
    for (size_t i = 0; i < stages_.size(); ++i) {
      if ((stages_[i].model == model) == own) indices.push_back(i);
    }
    return indices;
  }

  void add(const std::string& group, size_t row, const Headline& seconds) {
    const RunObservation& observation = calibrator_.observation(row);
    tally_.add(group + "/" + metric_of(observation),
               {.measured = 1e3 * observation.measured_s,
                .predicted = 1e3 * seconds.value,
                .low = 1e3 * seconds.low,
                .high = 1e3 * seconds.high},
               0);
  }

  // In seconds. `by_case` keeps what was simulated of this deployment.
  Headline predicted(const CalibratedDeployment* deployment, size_t row,
                     std::map<size_t, std::vector<Headline>>& by_case) {
    const size_t of_case = calibrator_.case_of(row);
    auto answers = by_case.find(of_case);
    if (answers == by_case.end()) {
      answers = by_case.emplace(of_case, calibrator_.predict(deployment, of_case)).first;
    }
    return answers->second[row - first_row(of_case)];
  }

  // By how many points the mean error of the rest changed, by metric.
  std::map<std::string, double> predict(const std::string& group, const std::vector<size_t>& chosen,
                                        const std::vector<size_t>& rest) {
    std::vector<bool> used(calibrator_.rows());
    for (const size_t stage : chosen) {
      for (const size_t row : stages_[stage].rows) {
        const RunObservation& one = calibrator_.observation(row);
        used[row] = one.metric != RunMetric::ttft || one.median || !has_median(stage);
      }
    }
    const Calibration calibration = calibrator_.fit(used);
    std::map<size_t, std::vector<Headline>> by_case;
    std::map<std::string, std::vector<double>> changes;
    for (const size_t stage : rest) {
      for (const size_t row : stages_[stage].rows) {
        const Headline one = predicted(&calibration.deployment, row, by_case);
        const RunObservation& observation = calibrator_.observation(row);
        add(group, row, one);
        changes[metric_of(observation)].push_back(percent_error(one.value, observation.measured_s) - before_[row]);
      }
    }
    std::map<std::string, double> change;
    for (const auto& [metric, points] : changes) change[metric] = mean(points);
    return change;
  }

  bool has_median(size_t stage) const {
    return std::any_of(stages_[stage].rows.begin(), stages_[stage].rows.end(),
                       [&](size_t row) { return calibrator_.observation(row).median; });
  }

  size_t first_row(size_t of_case) const {
    for (size_t row = 0; row < calibrator_.rows(); ++row) {
      if (calibrator_.case_of(row) == of_case) return row;
    }
    return 0;
  }

  DeploymentCalibrator calibrator_;
  ValidationTally& tally_;
  Validation& result_;
  std::vector<Stage> stages_;
  std::vector<double> before_;  // error of each row, percent
};

void score_stages(const CalibrationValidationRequest& request, const Library& library, const ServingFacts& facts,
                  ValidationTally& tally, Validation& result) {
  CsvReader table(request.data);
  CalibrationRequest fit{.cases = {},
                         .facts = facts,
                         .with_means = true,
                         .leave_one_out = false,
                         .suggest = false,
                         .threads = request.threads,
                         .tell = request.tell};
  for (const StagedRun& run : read_staged_runs(table)) {
    if (!is_wanted(request.devices, run.device) || !is_wanted(request.models, run.model)) continue;
    const auto gave_up =
        std::find_if(run.stages.begin(), run.stages.end(), [](const LoadStage& stage) { return stage.failures > 0; });
    if (gave_up != run.stages.end()) {
      result.skipped.push_back({request.data.string(), gave_up->row,
                                fmt::format("the client dropped {} of {} requests ({})", gave_up->failures,
                                            gave_up->requests, gave_up->id)});
      continue;
    }
    try {
      fit.cases.push_back(run_case_of(run, library));
    } catch (const InputError& error) {
      result.skipped.push_back({request.data.string(), run.stages.front().row, error.sentence()});
    }
  }
  if (fit.cases.empty()) return;
  StageSubsets subsets(fit, tally, result);
  subsets.add_uncalibrated();
  for (const int64_t count : request.stages) subsets.add_subsets(static_cast<size_t>(count));
  if (request.other_models) subsets.add_other_models();
}

void score_run(const std::filesystem::path& folder, const CalibrationValidationRequest& request, const Library& library,
               const ServingFacts& facts, ValidationTally& tally, Validation& result) {
  CalibrationRequest fit{.cases = {},
                         .facts = facts,
                         .leave_one_out = false,
                         .suggest = false,
                         .threads = request.threads,
                         .tell = request.tell};
  fit.cases.push_back(run_case_of(folder, library, request.first_requests));
  const MeasuredRun& run = fit.cases.front().run;
  DeploymentCalibrator calibrator(fit);
  std::vector<bool> used(calibrator.rows());
  for (size_t row = 0; row < calibrator.rows(); ++row) used[row] = calibrator.observation(row).stage == 0;
  const Calibration calibration = calibrator.fit(used);
  const std::string name = fit.cases.front().engine.device.name;
  for (const bool calibrated : {false, true}) {
    ServingFacts with = facts;
    if (calibrated) with.deployment = std::make_shared<const CalibratedDeployment>(calibration.deployment);
    EngineBuilder builder(with);
    std::map<StepBound, ReplayedRun> simulated;
    for (const StepBound bound : {StepBound::value, StepBound::low, StepBound::high}) {
      simulated.emplace(bound, simulate_run(builder, fit.cases.front(), load_of(run), bound));
    }
    double measured_sum = 0, predicted_sum = 0;
    const std::string group = fmt::format("{}, {}", name, calibrated ? "calibrated" : "not calibrated");
    for (size_t id = 0; id < run.requests.size(); ++id) {
      const MeasuredRequest& request_of = run.requests[id];
      if (request_of.stage == 0) continue;
      const auto add = [&](const char* metric, double measured_s, auto time_of) {
        const auto ms = [&](StepBound bound) {
          return 1e3 * to_seconds(time_of(simulated.at(bound).by_id[id])).value();
        };
        const double low = ms(StepBound::low), high = ms(StepBound::high);
        tally.add(fmt::format("{}/{}", group, metric),
                  {1e3 * measured_s, ms(StepBound::value), std::min(low, high), std::max(low, high)}, 0);
      };
      const bool everywhere = std::all_of(simulated.begin(), simulated.end(), [&](const auto& one) {
        return one.second.by_id[id].outcome == RequestOutcome::completed;
      });
      if (!everywhere) continue;
      add("e2e_ms", *request_of.e2e_s, [](const RequestRecord& record) { return record.e2el(); });
      add("ttft_ms", *request_of.ttft_s, [](const RequestRecord& record) { return record.ttft(); });
      measured_sum += *request_of.e2e_s;
      predicted_sum += to_seconds(simulated.at(StepBound::value).by_id[id].e2el()).value();
    }
    result.notes.push_back(fmt::format("{}: mean end-to-end time of the other requests {:+.2f}%", group,
                                       100 * (predicted_sum / measured_sum - 1)));
  }
}

}  // namespace

RunCase run_case_of(const StagedRun& run, const Library& library) {
  StagedSpecs specs = staged_specs(run, library);
  RunCase result{.run = {.name = run.experiment,
                         .tool = "inference-perf",
                         .engine = "vllm",
                         .engine_version = run.engine_version,
                         .model = run.model,
                         .device = run.device},
                 .engine = std::move(specs.engine)};
  double start = 0;
  size_t next = 0;
  for (const LoadStage& stage : run.stages) {
    MeasuredStage measured{.start_s = start, .seconds = static_cast<double>(stage.requests) / stage.rate};
    measured.load.request_rate = stage.rate;
    measured.load.num_prompts = stage.requests;
    measured.summary.e2e.mean = 1e-3 * stage.e2e_ms;
    measured.summary.ttft.mean = 1e-3 * stage.ttft_ms;
    if (stage.ttft_p50_ms > 0) measured.summary.ttft.percentiles[50] = 1e-3 * stage.ttft_p50_ms;
    measured.summary.completed = stage.requests - stage.failures;
    measured.summary.failed = stage.failures;
    for (int64_t i = 0; i < stage.requests; ++i, ++next) {
      const Request& request = specs.load.listed[next];
      result.run.requests.push_back({.arrival_s = to_seconds(request.arrival).value(),
                                     .input_tokens = request.input_tokens,
                                     .output_tokens = request.output_tokens,
                                     .stage = static_cast<int64_t>(result.run.stages.size()),
                                     .prefix_block_tokens = request.prefix_block_tokens,
                                     .prefix_blocks = request.prefix_blocks});
    }
    start += *measured.seconds;
    result.run.stages.push_back(std::move(measured));
  }
  return result;
}

RunCase run_case_of(const std::filesystem::path& folder, const Library& library, int64_t first_requests) {
  const VllmRun run = read_vllm_run(folder);
  RunSpecs specs = run_specs(run, {.folder = folder}, library);
  RunCase result{
      .run = {.name = folder.filename().string(), .engine = "vllm", .model = run.model, .device = run.device},
      .engine = std::move(specs.engine)};
  result.run.stages = {{.start_s = 0}, {.start_s = 0}};
  for (const Request& request : run.requests) {
    const VllmRequestTimes& times = run.times[static_cast<size_t>(request.id)];
    const bool first = static_cast<int64_t>(result.run.requests.size()) < first_requests;
    const double arrival = to_seconds(request.arrival).value();
    result.run.requests.push_back({.arrival_s = arrival,
                                   .input_tokens = request.input_tokens,
                                   .output_tokens = request.output_tokens,
                                   .ttft_s = times.first_token_s - arrival,
                                   .e2e_s = times.last_token_s - arrival,
                                   .stage = first ? 0 : 1,
                                   .prefix_block_tokens = request.prefix_block_tokens,
                                   .prefix_blocks = request.prefix_blocks});
  }
  return result;
}

Validation validate_calibration(const CalibrationValidationRequest& request, const Library& library,
                                const ServingFacts& facts) {
  Validation result;
  ValidationTally tally(0);
  if (!request.data.empty()) {
    const bool has_stages = has_load_stages(CsvReader(request.data));
    (has_stages ? score_stages : score_points)(request, library, facts, tally, result);
  }
  for (const std::filesystem::path& folder : request.runs) {
    score_run(folder, request, library, facts, tally, result);
  }
  tally.write(result);
  return result;
}

}  // namespace foretoken
