#include "validate/steps/validate_steps.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "base/csv.h"
#include "base/error.h"
#include "library/library.h"
#include "validate/row_filter.h"
#include "validate/steps/optional_columns.h"
#include "validate/steps/validate_layer.h"

namespace foretoken {
namespace {

// Also by the name without its organisation.
bool is_wanted_model(const std::vector<std::string>& filter, std::string_view value) {
  const size_t slash = value.rfind('/');
  return is_wanted(filter, value) || (slash != std::string_view::npos && is_wanted(filter, value.substr(slash + 1)));
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

  std::string_view text(std::string_view column) const { return optional_text(csv_, column); }
  int64_t count(std::string_view column, int64_t fallback) const { return optional_count(csv_, column, fallback); }
  double number(std::string_view column) const {
    const auto found = csv_.find_column(column);
    return found && !csv_.cell(*found).empty() ? csv_.number(*found, {1e-9, 1e12}) : 0;
  }

 private:
  CsvReader csv_;
  bool labels_ = false;
};

std::optional<StepPhase> phase_named(std::string_view name) {
  if (name == "inf") return StepPhase::prefill;
  const std::optional<StepPhase> phase = step_phase_from_name(name);
  return phase == StepPhase::mixed ? std::nullopt : phase;  // the table does not say how many are prompts
}

// What the current row runs; nothing and a reason where it cannot be expressed.
std::optional<StepRequest> request_of(const StepRows& rows, const ModelCatalogue& models, std::string& why) {
  const std::string_view phase_text = rows.phase();
  const std::optional<StepPhase> phase = phase_named(phase_text);
  if (!phase) {
    why = fmt::format("no such phase: {}", printable(phase_text));
    return std::nullopt;
  }
  StepRequest request{.phase = *phase,
                      .batch = rows.count("batch", 1),
                      .input_len = std::max<int64_t>(1, rows.count(rows.are_labels() ? "seq_len" : "input_len", 1)),
                      .context_len = rows.count("context_len", 0)};
  request.recompute = rows.text("cache") == "recompute";
  if (*phase == StepPhase::prefill && rows.text("logits") == "all") request.logits = Logits::all;
  if (*phase == StepPhase::prefill && rows.text("logits") == "none") request.logits = Logits::none;
  const std::string_view optimizer = rows.text("optimizer");
  if (rows.are_labels()) {
    // Inference with an encoder was timed as a sequence classifier, which has no head over the vocabulary.
    const bool classifies = models.model(rows.text("model")).is_encoder_only();
    request.logits = classifies ? Logits::none : Logits::all;
    request.decoder_len = request.input_len;  // one forward pass over the whole sequence on either side
    request.optimizer = Optimizer::none;
    request.accumulate = true;  // its loop never clears them
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

// The question that the current row is; nothing and the reason where it cannot be expressed. InputError for an unknown
// model.
std::optional<StepSpec> spec_of(const StepRows& rows, const StepValidationRequest& asked, const ModelCatalogue& models,
                                std::string& why) {
  const std::string dtype = rows.dtype();
  const std::optional<DType> type = dtype_from_name(dtype);
  if (!type) {
    why = fmt::format("no such dtype: {}", printable(dtype));
    return std::nullopt;
  }
  const std::optional<StepRequest> request = request_of(rows, models, why);
  if (!request) return std::nullopt;
  StepSpec spec{.model = {.model = std::string(rows.text("model")),
                          .quantization = std::string(facts(plain_scheme(*type)).name),
                          .dtype = type},
                .device = std::string(rows.text("device")),
                .request = *request,
                .plan = {.tensor = std::max<int64_t>(1, rows.count("tp", 1))},
                .stack = rows.text("cache") == "static" ? rows.stack() + "-static" : rows.stack(),
                .host_factor = asked.host_factor,
                .tier = asked.tier};
  if (const std::string_view dispatch = rows.text("dispatch"); !dispatch.empty()) {
    spec.dispatch = dispatch_from_name(dispatch);
    if (!spec.dispatch) {
      why = fmt::format("no such dispatch: {}", printable(dispatch));
      return std::nullopt;
    }
  }
  return spec;
}

// The kernels and collectives of a step without the gaps between them, as a profiler adds them up.
Estimate kernel_sum(const StepEstimate& step) {
  Estimate sum;
  for (const StageEstimate& stage : step.stages) {
    const double alone = stage.time.kernels + stage.time.communication;
    sum.value += alone;
    sum.low += alone * stage.kernels.low / stage.kernels.value;
    sum.high += alone * stage.kernels.high / stage.kernels.value;
  }
  return sum;
}

// Collects the errors of all rows.
class StepErrors {
 public:
  void add(const std::string& group, double measured_ms, const Estimate& seconds, double seconds_spent) {
    steps_.add(group, in_milliseconds(measured_ms, seconds), seconds_spent);
  }

  void add_kernels(const std::string& group, const StepRows& rows, double measured_ms, const StepEstimate& predicted) {
    const double kernel_ms = rows.number("kernel_ms");
    if (kernel_ms <= 0) return;
    const Estimate sum = kernel_sum(predicted);
    kernels_.add(group, in_milliseconds(kernel_ms, sum));
    const double predicted_gap = predicted.seconds.value - sum.value;
    const double gap = std::abs(predicted_gap * 1e3 - (measured_ms - kernel_ms)) / measured_ms;
    gaps_.add(group, {.measured = 1, .predicted = 1 + gap, .low = 1, .high = 1 + gap});
    ++verdicts_;
    if (is_host_bound(measured_ms - kernel_ms, kernel_ms) == is_host_bound(predicted_gap, sum.value)) ++right_;
  }

  void add_sustained(const std::string& group, double held_ms, double drawn_watts, const SustainedStep& held) {
    sustained_.add(group, in_milliseconds(held_ms, held.seconds));
    const Estimate& watts = held.power.watts;
    if (drawn_watts <= 0) return;
    watts_.add(group, {.measured = drawn_watts, .predicted = watts.value, .low = watts.low, .high = watts.high});
  }

  void write(StepValidation& result) const {
    steps_.write(result.errors);
    result.kernels = kernels_.overall();
    result.gap = gaps_.overall();
    result.sustained = sustained_.overall();
    result.watts = watts_.overall();
    if (verdicts_ > 0) result.verdicts_right = 100 * right_ / verdicts_;
  }

 private:
  ValidationTally steps_{0};  // every step is long
  ErrorTable kernels_, gaps_, sustained_, watts_;
  double verdicts_ = 0, right_ = 0;
};

// Rows of a table, one after the other.
class StepScorer {
 public:
  StepScorer(const StepValidationRequest& request, const Library& library, const ScoredStepSink& sink,
             const DeviceModelMaker& models)
      : request_(request),
        library_(library),
        sink_(sink),
        rows_(request.data),
        catalogue_(library.models()),
        predictor_(library, models) {
    if (!request.group_by.empty()) rows_.csv().column(request.group_by);
  }

  StepValidation score() {
    while (rows_.next()) {
      if (is_wanted_row()) score_row();
    }
    errors_.write(result_);
    if (whole_contexts_ > 0) {
      result_.errors.notes.push_back(
          fmt::format("{} prefill rows have context_len = input_len. context_len counts tokens that were in the cache "
                      "before the step; if these rows mean the prompt itself, set context_len to 0",
                      whole_contexts_));
    }
    if (result_.errors.overall.n == 0 && result_.errors.skipped.empty()) {
      throw InputError({.source = request_.data.string(),
                        .value = "no rows to validate",
                        .expected = "at least one row that {devices}, {stacks}, {phases} and {models} select"});
    }
    return std::move(result_);
  }

 private:
  // What a row's step takes by the clock that the request asks for: cool, or held at the board's power limit.
  struct Times {
    double measured_ms = 0;
    Estimate seconds;
  };

  bool is_wanted_row() const {
    return is_wanted(request_.devices, rows_.text("device")) && is_wanted(request_.stacks, rows_.stack()) &&
           is_wanted(request_.phases, rows_.phase()) && is_wanted_model(request_.models, rows_.text("model"));
  }

  void skip(std::string_view why) {
    result_.errors.skipped.push_back({request_.data.string(), rows_.csv().row(), std::string(why)});
  }

  void score_row() {
    if (const std::string_view why = rows_.misfit(); !why.empty()) return skip(why);
    const bool was_held = rows_.number("sustained_ms") > 0;
    if (request_.sustained && !was_held && rows_.csv().find_column("sustained_ms")) return;  // timed cool
    const auto begin = std::chrono::steady_clock::now();
    const double measured = rows_.csv().number(rows_.csv().column("measured_ms"), {1e-9, 1e12});
    std::string why;
    std::optional<StepSpec> spec;
    std::optional<StepPrediction> answer;
    try {
      spec = spec_of(rows_, request_, catalogue_, why);
      if (spec) answer = predictor_.predict(*spec);
    } catch (const InputError& error) {
      why = error.sentence();
    }
    if (!answer) return skip(why);
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
    const std::string group = group_of_row();
    Times times{.measured_ms = measured, .seconds = answer->step.seconds};
    if ((request_.sustained || was_held) && !hold(*answer, group, times)) return;
    errors_.add(group, times.measured_ms, times.seconds, spent.count());
    if (!request_.sustained) errors_.add_kernels(group, rows_, times.measured_ms, answer->step);
    const StepRequest& step = answer->step.request;
    if (step.phase == StepPhase::prefill && step.context_len > 0 && step.context_len == step.input_len) {
      ++whole_contexts_;
    }
    if (sink_) pass_on(group, times, *spec, answer->step);
  }

  std::string group_of_row() const {
    return request_.group_by.empty() ? fmt::format("{}/{}", rows_.stack(), rows_.phase())
                                     : std::string(rows_.text(request_.group_by));
  }

  // False where the row cannot be scored: it is skipped then.
  bool hold(const StepPrediction& answer, const std::string& group, Times& times) {
    const std::optional<PowerModel> power = library_.power_model(answer.device());
    if (!power) {
      if (request_.sustained)
        skip(fmt::format("no power limit of {} is known, so no sustained time", printable(rows_.text("device"))));
      return !request_.sustained;
    }
    const double held_ms = rows_.number("sustained_ms");
    const SustainedStep held = sustained_step(answer.step, *power, answer.device());
    if (held_ms > 0) errors_.add_sustained(group, held_ms, rows_.number("power_w"), held);
    if (request_.sustained) times = {.measured_ms = held_ms > 0 ? held_ms : times.measured_ms, .seconds = held.seconds};
    return true;
  }

  void pass_on(const std::string& group, const Times& times, const StepSpec& spec, const StepEstimate& predicted) {
    sink_({.device = std::string(rows_.text("device")),
           .model = std::string(rows_.text("model")),
           .stack = std::string(rows_.stack()),
           .group = group,
           .row = rows_.csv().row(),
           .measured_ms = times.measured_ms,
           .measured_kernel_ms = rows_.number("kernel_ms"),
           .spec = &spec,
           .seconds = times.seconds,
           .predicted = &predicted});
  }

  const StepValidationRequest& request_;
  const Library& library_;
  const ScoredStepSink& sink_;
  StepRows rows_;
  ModelCatalogue catalogue_;
  StepPredictor predictor_;
  StepErrors errors_;
  StepValidation result_;
  size_t whole_contexts_ = 0;  // prompts on as many cached tokens: likely tables that count the prompt as context
};

}  // namespace

StepValidation validate_steps(const StepValidationRequest& request, const Library& library, const ScoredStepSink& sink,
                              const DeviceModelMaker& models) {
  if (is_layer_table(CsvReader(request.data))) return validate_layer(request, library, models);
  return StepScorer(request, library, sink, models).score();
}

}  // namespace foretoken
