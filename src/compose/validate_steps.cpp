#include "compose/validate_steps.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <memory>

#include <fmt/format.h>

#include "base/csv.h"
#include "base/error.h"
#include "model/families/number_formats.h"

namespace foretoken {
namespace {

bool wanted(const std::vector<std::string>& filter, std::string_view value) {
  return filter.empty() || std::find(filter.begin(), filter.end(), value) != filter.end();
}

// Also by the name without its organisation.
bool wanted_model(const std::vector<std::string>& filter, std::string_view value) {
  const size_t slash = value.rfind('/');
  return wanted(filter, value) || (slash != std::string_view::npos && wanted(filter, value.substr(slash + 1)));
}

// The columns of one file, looked up once.
class StepRows {
 public:
  explicit StepRows(const std::filesystem::path& file)
      : csv_(file), labels_(csv_.find_column("mode") && csv_.find_column("seq_len") && !csv_.find_column("phase")) {
    for (const char* name : {"device", "model", "batch", "measured_ms"}) csv_.column(name);
    if (labels_) return;
    for (const char* name : {"stack", "phase"}) csv_.column(name);
  }

  // NeuSight's table of whole models: fp32, eager attention, all logits, no optimizer.
  bool are_labels() const { return labels_; }
  // Why the current row cannot be expressed; empty if it can.
  std::string_view misfit() const {
    if (labels_ && !text("parallelism").empty()) return "several devices whose links are not given";
    return {};
  }
  std::string stack() const {
    if (!labels_) return std::string(text("stack"));
    return text("fusion") == "1" ? "torch-compile-math" : "hf-eager-math";
  }
  std::string_view phase() const { return text(labels_ ? "mode" : "phase"); }
  std::string dtype() const {
    if (labels_) return "fp32";
    return text("dtype").empty() ? "bf16" : std::string(text("dtype"));
  }

  bool next() { return csv_.next(); }
  CsvReader& csv() { return csv_; }

  std::string_view text(std::string_view column) const {
    const auto found = csv_.find_column(column);
    return found ? csv_.cell(*found) : std::string_view();
  }
  int64_t count(std::string_view column, int64_t fallback) const {
    const auto found = csv_.find_column(column);
    if (!found || csv_.cell(*found).empty()) return fallback;
    return csv_.integer(*found, {0, 1'000'000'000});
  }
  double number(std::string_view column) const {
    const auto found = csv_.find_column(column);
    return found && !csv_.cell(*found).empty() ? csv_.number(*found, {1e-9, 1e12}) : 0;
  }

 private:
  CsvReader csv_;
  bool labels_ = false;
};

std::optional<StepPhase> phase_named(std::string_view name) {
  if (name == "prefill" || name == "inf") return StepPhase::prefill;
  if (name == "decode") return StepPhase::decode;
  if (name == "train") return StepPhase::train;
  return std::nullopt;
}

// The request of the current row; nothing and a reason where it cannot be expressed.
std::optional<StepRequest> request_of(const StepRows& rows, const Model& model, std::string& why) {
  const std::string_view phase_text = rows.phase();
  const std::optional<StepPhase> phase = phase_named(phase_text);
  if (!phase) {
    why = fmt::format("no such phase: {}", printable(phase_text));
    return std::nullopt;
  }
  StepRequest request{.phase = *phase,
                      .batch = rows.count("batch", 1),
                      .input_len = std::max<int64_t>(1, rows.count(rows.are_labels() ? "seq_len" : "input_len", 1)),
                      .context_len = rows.count("context_len", 0),
                      .kv_dtype = model.dtype};
  request.recompute = rows.text("cache") == "recompute";
  request.every_logit = *phase == StepPhase::prefill && rows.text("logits") == "all";
  const std::string_view optimizer = rows.text("optimizer");
  if (rows.are_labels()) {
    request.every_logit = true;
    request.decoder_len = request.input_len;  // one forward pass over the whole sequence on either side
    request.optimizer = Optimizer::none;
  } else if (optimizer == "none") {
    request.optimizer = Optimizer::none;
  } else if (optimizer == "adamw") {
    request.optimizer = Optimizer::adam_foreach;
  } else if (optimizer.empty() || optimizer == "adamw_fused") {
    request.optimizer = Optimizer::adam_fused;
  } else if (optimizer != "adam_mixed") {
    why = fmt::format("no such optimizer: {}", printable(optimizer));
    return std::nullopt;
  }
  return request;
}

}  // namespace

StepValidation validate_steps(const StepValidationRequest& request, const HardwareCatalogue& hardware,
                              const ModelCatalogue& models, const StackCatalogue& stacks,
                              const PredictorMaker& make_predictor, const PowerModelMaker& make_power,
                              const ScoredStepSink& sink) {
  StepRows rows(request.data);
  StepValidation result;
  ErrorTable steps, kernels, gaps, sustained, watts;
  std::map<std::string, std::unique_ptr<KernelPredictor>> predictors;
  std::map<std::string, Model> model_by_name;
  std::map<std::string, Stack> stack_by_name;
  std::map<std::string, std::pair<size_t, double>> effort;  // rows and seconds by group
  size_t verdicts = 0, right = 0, total = 0;
  double all_seconds = 0;
  const auto skip = [&](std::string why) {
    result.errors.skipped.push_back({request.data.string(), rows.csv().row(), std::move(why)});
  };
  if (!request.group_by.empty()) rows.csv().column(request.group_by);
  while (rows.next()) {
    const std::string device(rows.text("device")), model_name(rows.text("model")), stack_name(rows.stack());
    if (!wanted(request.devices, device) || !wanted(request.stacks, stack_name) ||
        !wanted(request.phases, rows.phase()) || !wanted_model(request.models, model_name)) {
      continue;
    }
    if (const std::string_view why = rows.misfit(); !why.empty()) {
      skip(std::string(why));
      continue;
    }
    const auto begin = std::chrono::steady_clock::now();
    const double measured = rows.csv().number(rows.csv().column("measured_ms"), {1e-9, 1e12});
    StepEstimate predicted;
    try {
      const std::string cache(rows.text("cache"));
      const std::string file_stack = cache == "static" ? stack_name + "-static" : stack_name;
      if (!predictors.contains(device)) {
        predictors[device] = std::make_unique<KernelPredictor>(make_predictor(hardware.device(device), Caches::cold));
      }
      const std::string dtype = rows.dtype();
      const std::string key = model_name + " " + dtype;
      if (!model_by_name.contains(key)) {
        Model model = models.model(model_name);
        if (const auto type = dtype_from_name(dtype)) {
          model.dtype = *type;
          model = with_scheme(std::move(model), plain_scheme(*type));
        } else {
          skip(fmt::format("no such dtype: {}", printable(dtype)));
          continue;
        }
        model_by_name.emplace(key, std::move(model));
      }
      if (!stack_by_name.contains(file_stack)) stack_by_name.emplace(file_stack, stacks.stack(file_stack));
      const Model& model = model_by_name.at(key);
      std::string why;
      const std::optional<StepRequest> step = request_of(rows, model, why);
      if (!step) {
        skip(why);
        continue;
      }
      ExecutionOptions options{.dispatch = std::nullopt, .host_factor = request.host_factor};
      if (const std::string_view dispatch = rows.text("dispatch"); !dispatch.empty()) {
        options.dispatch = dispatch_from_name(dispatch);
        if (!options.dispatch) {
          skip(fmt::format("no such dispatch: {}", printable(dispatch)));
          continue;
        }
      }
      const ParallelPlan plan{.tensor = std::max<int64_t>(1, rows.count("tp", 1))};
      predicted = estimate_step(model, *step, plan, *predictors.at(device), stack_by_name.at(file_stack), options);
    } catch (const InputError& error) {
      skip(error.what());
      continue;
    }
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
    const std::string group = request.group_by.empty() ? fmt::format("{}/{}", stack_name, rows.phase())
                                                       : std::string(rows.text(request.group_by));
    steps.add(group, {.measured = measured,
                      .predicted = predicted.seconds.value * 1e3,
                      .low = predicted.seconds.low * 1e3,
                      .high = predicted.seconds.high * 1e3});
    effort[group].first += 1;
    effort[group].second += spent.count();
    ++total;
    all_seconds += spent.count();
    if (const double held_ms = rows.number("sustained_ms"), drawn = rows.number("power_w"); held_ms > 0 && make_power) {
      const Device& known = predictors.at(device)->device();
      if (const std::optional<PowerModel> power = make_power(known)) {
        const SustainedStep held = sustained_step(predicted, *power, known);
        sustained.add(group, {.measured = held_ms,
                              .predicted = held.seconds.value * 1e3,
                              .low = held.seconds.low * 1e3,
                              .high = held.seconds.high * 1e3});
        const Estimate& own = held.power.watts;
        if (drawn > 0) watts.add(group, {.measured = drawn, .predicted = own.value, .low = own.low, .high = own.high});
      }
    }
    const double kernel_ms = rows.number("kernel_ms");
    if (kernel_ms > 0) {
      double sum = 0, low = 0, high = 0;
      for (const StageEstimate& stage : predicted.stages) {
        const double alone = stage.time.kernels + stage.time.communication;
        sum += alone;
        low += alone * stage.kernels.low / stage.kernels.value;
        high += alone * stage.kernels.high / stage.kernels.value;
      }
      kernels.add(group, {.measured = kernel_ms, .predicted = sum * 1e3, .low = low * 1e3, .high = high * 1e3});
      const double gap = std::abs((predicted.seconds.value - sum) * 1e3 - (measured - kernel_ms)) / measured;
      gaps.add(group, {.measured = 1, .predicted = 1 + gap, .low = 1, .high = 1 + gap});
      const bool bound = measured - kernel_ms > 0.5 * kernel_ms;
      const bool told = predicted.seconds.value - sum > 0.5 * sum;
      ++verdicts;
      if (bound == told) ++right;
    }
    if (sink) {
      sink({.device = device,
            .model = model_name,
            .stack = stack_name,
            .group = group,
            .row = rows.csv().row(),
            .measured_ms = measured,
            .measured_kernel_ms = kernel_ms,
            .predicted = &predicted});
    }
  }
  result.errors.overall = steps.overall();
  result.errors.mape_20us = result.errors.overall.mape;
  for (const auto& [name, errors] : steps.groups()) {
    const auto [count, seconds] = effort[name];
    result.errors.groups.push_back({.name = name,
                                    .errors = errors,
                                    .mape_20us = errors.mape,  // every step is long
                                    .seconds_per_1000_rows = seconds / static_cast<double>(count) * 1000});
  }
  if (total > 0) result.errors.seconds_per_1000_rows = all_seconds / static_cast<double>(total) * 1000;
  result.kernels = kernels.overall();
  result.gap = gaps.overall();
  result.sustained = sustained.overall();
  result.watts = watts.overall();
  if (verdicts > 0) result.verdicts_right = 100.0 * static_cast<double>(right) / static_cast<double>(verdicts);
  if (total == 0 && result.errors.skipped.empty()) {
    throw InputError({.source = request.data.string(),
                      .value = "no row left",
                      .expected = "rows that --devices, --stacks, --phases and --models leave"});
  }
  return result;
}

}  // namespace foretoken
