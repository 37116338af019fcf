#include "compose/validate_layer.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "compose/optional_columns.h"
#include "kernel/forms/eager_form.h"

namespace foretoken {
namespace {

// The publication's operators and the launches of the stack operators-math that they are. Q_K_V are three multiplies.
struct LayerOperator {
  std::string_view name, launch;
};
constexpr LayerOperator layer_operators[] = {
    {"Q_K_V", "qkv_proj"},
    {"Q_mul_K", "scores"},
    {"A_mul_V", "values"},
    {"Wo_proj", "o_proj"},
    {"W1_proj", "up_proj"},
    {"W2_proj", "down_proj"},
    {"Softmax", "softmax"},
    {"LayerNorm_MHA", "input_norm"},
    {"GeLU", "activation"},
    {"LayerNorm_FFN", "post_attention_norm"},
    {"AllReduce_MHA", "tp_all_reduce"},
    {"AllReduce_FFN", "tp_all_reduce"},
};

// What one row is about, apart from its operator.
struct LayerCase {
  std::string device, model;
  StepPhase phase = StepPhase::prefill;
  int64_t batch = 8, input_len = 2048, context_len = 3071, tensor = 4;
  auto operator<=>(const LayerCase&) const = default;
};

// Nothing and the reason for a phase that is none.
std::optional<LayerCase> read_case(const CsvReader& csv, std::string& why) {
  const std::string_view phase_text = optional_text(csv, "phase");
  const std::optional<StepPhase> phase = step_phase_from_name(phase_text);
  if (phase != StepPhase::prefill && phase != StepPhase::decode) {
    why = fmt::format("phase = {}: expected prefill or decode", printable(phase_text));
    return std::nullopt;
  }
  LayerCase row{.device = std::string(optional_text(csv, "device")),
                .model = std::string(optional_text(csv, "model")),
                .phase = *phase};
  if (row.model.empty()) row.model = "openai/gpt3-175b";
  row.batch = optional_count(csv, "batch", row.batch);
  row.input_len = optional_count(csv, "input_len", row.input_len);
  row.context_len = optional_count(csv, "context_len", row.context_len);
  row.tensor = optional_count(csv, "tp", row.tensor);
  return row;
}

// "4xA100_NVLink3" is four of a device; the count is the plan's.
std::string device_name(std::string_view text) {
  const size_t times = text.find('x');
  const bool counted = times != std::string_view::npos && times > 0 &&
                       std::all_of(text.begin(), text.begin() + static_cast<ptrdiff_t>(times),
                                   [](char letter) { return letter >= '0' && letter <= '9'; });
  const std::string_view rest = counted ? text.substr(times + 1) : text;
  return std::string(rest.substr(0, rest.find("_NVLink")));
}

// What a campaign on the machine calls a kernel; empty for others.
std::string_view campaign_operator(const KernelShape& shape) {
  if (std::holds_alternative<GemmShape>(shape)) return "eager matmul";
  if (std::holds_alternative<SoftmaxShape>(shape)) return "eager softmax";
  if (std::holds_alternative<NormShape>(shape)) return "eager layernorm";
  return std::holds_alternative<ActivationShape>(shape) ? "eager gelu" : "";
}

// All calls of one launch, as the campaign's machine would time each of them.
Estimate on_machine(const TimedLaunch& timed, const KernelPredictor& predictor, const Campaign& campaign) {
  const std::string name(campaign_operator(timed.launch.shape));
  const auto effect = campaign.effects.find({predictor.device().name, name});
  if (effect == campaign.effects.end()) return timed.seconds;
  const Estimate kernel = predictor.estimate(timed.launch.shape, framework_kernel).seconds;
  return scaled(campaign_estimate(effect->second, kernel), static_cast<double>(timed.launch.count));
}

using LayerTimes = std::map<std::string, Estimate, std::less<>>;  // seconds of one call, by launch

LayerTimes predict(const LayerCase& row, const KernelPredictor& predictor, const ModelCatalogue& models,
                   const Stack& stack, const Campaign& campaign) {
  Model model = models.model(row.model);
  model.layers.resize(1);
  model.dtype = DType::fp16;
  model = with_scheme(std::move(model), Scheme::fp16);
  const bool decodes = row.phase == StepPhase::decode;
  const StepRequest request{.phase = row.phase,
                            .batch = row.batch,
                            .input_len = decodes ? 1 : row.input_len,
                            .context_len = decodes ? row.context_len : 0,
                            .kv_dtype = DType::fp16,
                            .logits = Logits::none};
  const StepEstimate step = estimate_step(model, request, {.tensor = row.tensor}, predictor, stack);
  std::map<std::string, std::vector<Estimate>, std::less<>> parts;
  for (const TimedLaunch& timed : step.stages.front().launches) {
    const auto calls = static_cast<double>(step.stages.front().calls[timed.launch.call].count);
    parts[timed.launch.name].push_back(scaled(on_machine(timed, predictor, campaign), 1 / calls));
  }
  LayerTimes times;
  for (const auto& [name, launches] : parts) times.emplace(name, sum_of_correlated(launches));
  return times;
}

}  // namespace

bool is_layer_table(const CsvReader& csv) {
  for (const char* name : {"device", "phase", "op", "latency_ms"}) {
    if (!csv.find_column(name)) return false;
  }
  return !csv.find_column("measured_ms");
}

StepValidation validate_layer(const StepValidationRequest& request, const HardwareCatalogue& hardware,
                              const ModelCatalogue& models, const StackCatalogue& stacks,
                              const PredictorMaker& make_predictor) {
  CsvReader csv(request.data);
  const Stack stack = stacks.stack("operators-math");
  if (!request.group_by.empty()) csv.column(request.group_by);
  StepValidation result;
  ErrorTable errors;
  std::map<LayerCase, LayerTimes> predicted;
  struct Total {
    double measured_ms = 0;
    std::vector<Estimate> parts;
  };
  std::map<LayerCase, Total> totals;
  const auto skip = [&](std::string why) {
    result.errors.skipped.push_back({request.data.string(), csv.row(), std::move(why)});
  };
  while (csv.next()) {
    std::string why;
    const std::optional<LayerCase> row = read_case(csv, why);
    if (!row) {
      skip(why);
      continue;
    }
    const std::string_view op = optional_text(csv, "op");
    const auto* known = std::find_if(std::begin(layer_operators), std::end(layer_operators),
                                     [&](const LayerOperator& one) { return equal_ignoring_case(one.name, op); });
    if (known == std::end(layer_operators)) {
      skip(fmt::format("op = {}: not an operator of such a layer", printable(op)));
      continue;
    }
    const double measured_ms = csv.number(csv.column("latency_ms"), {1e-9, 1e9});
    try {
      auto found = predicted.find(*row);
      if (found == predicted.end()) {
        const KernelPredictor predictor = make_predictor(hardware.device(device_name(row->device)), Caches::cold);
        found = predicted.emplace(*row, predict(*row, predictor, models, stack, request.campaign)).first;
      }
      const auto time = found->second.find(known->launch);
      if (time == found->second.end()) {
        skip(fmt::format("op = {}: the model's layer has none", printable(op)));
        continue;
      }
      const std::string phase(step_phase_name(row->phase));
      errors.add(request.group_by.empty() ? fmt::format("{}/{}", phase, known->name)
                                          : std::string(optional_text(csv, request.group_by)),
                 in_milliseconds(measured_ms, time->second));
      Total& total = totals[*row];
      total.measured_ms += measured_ms;
      total.parts.push_back(time->second);
    } catch (const InputError& error) {
      skip(error.what());
    }
  }
  if (request.group_by.empty()) {
    for (const auto& [row, total] : totals) {
      errors.add(fmt::format("{}/total", step_phase_name(row.phase)),
                 in_milliseconds(total.measured_ms, sum_of_independent(total.parts)));
    }
  }
  result.errors.overall = errors.overall();
  for (const auto& [name, summary] : errors.groups()) {
    result.errors.groups.push_back({.name = name, .errors = summary, .mape_20us = summary.mape});
  }
  result.errors.mape_20us = result.errors.overall.mape;
  return result;
}

}  // namespace foretoken
