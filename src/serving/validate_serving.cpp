#include "serving/validate_serving.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <exception>
#include <map>
#include <thread>
#include <tuple>

#include <fmt/format.h>

#include "base/error.h"
#include "serving/composed_steps.h"
#include "serving/engine_setup.h"
#include "serving/load/closed_loop.h"
#include "serving/load/synthetic.h"
#include "serving/serving_case.h"

namespace foretoken {
namespace {

bool wanted(const std::vector<std::string>& filter, std::string_view value) {
  return filter.empty() || std::find(filter.begin(), filter.end(), value) != filter.end();
}

bool has_experts(const Model& model) {
  return std::any_of(model.layers.begin(), model.layers.end(),
                     [](const Layer& layer) { return std::holds_alternative<Moe>(layer.feed_forward); });
}

struct Answered {
  std::vector<Headline> values;  // as ServingCase::measured
  std::string why;               // where there are none
  double seconds = 0;
};

LoadMaker load_of(const ServingCase& point) {
  return [&point](uint64_t seed) {
    std::unique_ptr<RequestSource> load =
        synthetic_load(point.arrivals, uniform_lengths(point.input, point.output, seed), {}, seed);
    return point.concurrency > 0 ? closed_loop(std::move(load), point.concurrency) : std::move(load);
  };
}

// Points of one model on one device: the step times that one needs serve the others too.
class Bench {
 public:
  Bench(const ServingCase& first, const Model& model, const Device& device, DeviceModels models,
        const StackCatalogue& stacks)
      : model_(with_scheme(model, first.scheme, first.scheme)),
        device_(device),
        front_(stacks.stack(first.stack).costs.front),
        plan_(first.plan),
        kv_dtype_(first.kv_dtype.value_or(model_.dtype)),
        times_(compose_steps({.model = model_,
                              .plan = plan_,
                              .models = std::move(models),
                              .stack = stacks.stack(first.stack),
                              .kv_dtype = kv_dtype_})) {}

  std::vector<Headline> simulate_point(const ServingCase& point) {
    EngineFlags flags = point.flags;
    flags.kv_dtype = kv_dtype_;
    if (model_.max_positions > 0) flags.max_model_len = std::min(flags.max_model_len, model_.max_positions);
    SchedulerOptions options = scheduler_options(serving_memory(model_, device_, plan_, flags), plan_);
    options.enable_prefix_caching = point.prefix_caching;
    options.async_scheduling = point.async_scheduling;
    options.batch_wait_timeout_iters = point.batch_wait_timeout_iters;
    options.batch_wait_max_tokens_ratio = point.batch_wait_max_tokens_ratio;
    ServingRunRequest request;
    request.config.router = "data_parallel";
    request.config.replicas.assign(static_cast<size_t>(point.replicas),
                                   {.scheduler = point.scheduler, .options = options, .times = times_.get()});
    request.load = load_of(point);
    if (point.concurrency > 0 || std::isfinite(point.arrivals.rate)) request.front = front_;
    request.percentiles = {};
    const ServingRun run = run_serving(request);
    if (run.metrics.completed == 0) {
      throw InputError({.source = point.id, .value = "no request", .expected = "requests that fit the engine"});
    }
    std::vector<Headline> values;
    for (const MeasuredValue& measured : point.measured) values.push_back(run.headline(measured.predicted));
    return values;
  }

 private:
  Model model_;
  const Device& device_;
  FrontCosts front_;
  ParallelPlan plan_;
  DType kv_dtype_;
  std::unique_ptr<StepTimes> times_;
};

// Reads rows, simulates them in groups, keeps the answers in the order of rows.
class ServingValidator {
 public:
  ServingValidator(const HardwareCatalogue& hardware, const ModelCatalogue& models, const StackCatalogue& stacks,
                   const DeviceModelMaker& make_models)
      : hardware_(hardware), models_(models), stacks_(stacks), make_models_(make_models) {}

  // InputError where the row names something unknown.
  void add(ServingCase point) {
    const Model& model = find_model(point.model);
    check_step(model, {}, point.plan);
    const Device& device = find_device(point.gpu);
    groups_[{device.name, model.name, point.scheme, point.kv_dtype, point.plan.tensor, point.plan.pipeline,
             point.plan.expert, point.stack}]
        .push_back(points_.size());
    points_.push_back(std::move(point));
  }

  bool is_dense(const std::string& model) { return !has_experts(find_model(model)); }

  std::vector<Answered> answer(int threads) {
    std::vector<Answered> answers(points_.size());
    std::vector<const std::vector<size_t>*> work;
    for (const auto& [key, rows] : groups_) work.push_back(&rows);
    std::atomic<size_t> next = 0;
    const auto run = [&] {
      for (size_t index = next++; index < work.size(); index = next++) answer_group(*work[index], answers);
    };
    std::vector<std::thread> others;
    for (int i = 1; i < threads; ++i) others.emplace_back(run);
    run();
    for (std::thread& other : others) other.join();
    return answers;
  }

  const std::vector<ServingCase>& points() const { return points_; }

 private:
  using Key =
      std::tuple<std::string, std::string, Scheme, std::optional<DType>, int64_t, int64_t, int64_t, std::string>;

  void answer_group(const std::vector<size_t>& rows, std::vector<Answered>& answers) const {
    const ServingCase& first = points_[rows.front()];
    try {
      const Device& device = known_devices_.at(first.gpu);
      Bench bench(first, known_models_.at(first.model), device, make_models_(device, first.plan), stacks_);
      for (const size_t row : rows) {
        const auto begin = std::chrono::steady_clock::now();
        try {
          answers[row].values = bench.simulate_point(points_[row]);
        } catch (const InputError& error) {
          answers[row].why = error.what();
        }
        answers[row].seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
      }
    } catch (const InputError& error) {
      for (const size_t row : rows) answers[row].why = error.what();
    }
  }

  const Model& find_model(const std::string& name) {
    const auto found = known_models_.find(name);
    return found != known_models_.end() ? found->second
                                        : known_models_.emplace(name, models_.model(name)).first->second;
  }
  const Device& find_device(const std::string& name) {
    const auto found = known_devices_.find(name);
    return found != known_devices_.end() ? found->second
                                         : known_devices_.emplace(name, hardware_.device(name)).first->second;
  }

  const HardwareCatalogue& hardware_;
  const ModelCatalogue& models_;
  const StackCatalogue& stacks_;
  const DeviceModelMaker& make_models_;
  std::map<std::string, Model> known_models_;
  std::map<std::string, Device> known_devices_;
  std::vector<ServingCase> points_;
  std::map<Key, std::vector<size_t>> groups_;
};

}  // namespace

Validation validate_serving(const ServingValidationRequest& request, const HardwareCatalogue& hardware,
                            const ModelCatalogue& models, const StackCatalogue& stacks,
                            const DeviceModelMaker& make_models, const ScoredServingSink& sink) {
  ServingCaseReader rows(request.data);
  if (!request.group_by.empty()) rows.csv().column(request.group_by);
  ServingValidator validator(hardware, models, stacks, make_models);
  Validation result;
  std::vector<std::string> groups;  // of the points, where a column says them
  while (rows.next()) {
    if (!wanted(request.tiers, rows.text("tier")) || !wanted(request.devices, rows.text("gpu")) ||
        !wanted(request.models, rows.text("model")) || !wanted(request.engines, rows.text("engine"))) {
      continue;
    }
    std::string why;
    try {
      if (!request.kinds.empty() &&
          !wanted(request.kinds, validator.is_dense(std::string(rows.text("model"))) ? "dense" : "moe")) {
        continue;
      }
      if (std::optional<ServingCase> point = rows.read(why)) {
        validator.add(std::move(*point));
        groups.emplace_back(request.group_by.empty() ? "" : rows.text(request.group_by));
        continue;
      }
    } catch (const InputError& error) {
      why = error.what();
    }
    result.skipped.push_back({request.data.string(), rows.csv().row(), why});
  }

  const int cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  const std::vector<Answered> answers = validator.answer(request.threads > 0 ? request.threads : cores);
  ErrorTable errors;
  std::map<std::string, std::pair<double, double>> effort;  // rows and seconds by group
  double seconds = 0, values = 0;
  for (size_t i = 0; i < answers.size(); ++i) {
    const ServingCase& point = validator.points()[i];
    if (answers[i].values.empty()) {
      result.skipped.push_back({request.data.string(), point.row, answers[i].why});
      continue;
    }
    const auto count = static_cast<double>(point.measured.size());
    for (size_t k = 0; k < point.measured.size(); ++k) {
      const MeasuredValue& measured = point.measured[k];
      const Headline& predicted = answers[i].values[k];
      const std::string group = groups[i].empty() ? fmt::format("{}/{}", point.tier, measured.metric)
                                                  : fmt::format("{}/{}", groups[i], measured.metric);
      errors.add(
          group,
          {.measured = measured.value, .predicted = predicted.value, .low = predicted.low, .high = predicted.high});
      effort[group].first += 1;
      effort[group].second += answers[i].seconds / count;
      if (sink) {
        sink({.id = point.id,
              .group = group,
              .device = point.gpu,
              .model = point.model,
              .engine = point.engine,
              .metric = measured.metric,
              .row = point.row,
              .measured = measured.value,
              .predicted = predicted});
      }
    }
    seconds += answers[i].seconds;
    values += count;
  }
  std::sort(result.skipped.begin(), result.skipped.end(),
            [](const SkippedRows& a, const SkippedRows& b) { return a.row < b.row; });
  result.overall = errors.overall();
  for (const auto& [name, summary] : errors.groups()) {
    const auto& [count, spent] = effort.at(name);
    result.groups.push_back({.name = name, .errors = summary, .seconds_per_1000_rows = spent / count * 1000});
  }
  if (values > 0) result.seconds_per_1000_rows = seconds / values * 1000;
  return result;
}

}  // namespace foretoken
