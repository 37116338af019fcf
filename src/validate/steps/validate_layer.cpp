#include "validate/steps/validate_layer.h"

#include <algorithm>
#include <chrono>
#include <map>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "kernel/forms/eager_form.h"
#include "library/library.h"
#include "validate/steps/optional_columns.h"

namespace foretoken {
namespace {

// What one row is about, apart from its operator.
struct LayerCase {
  std::string device, model;
  StepPhase phase = StepPhase::prefill;
  int64_t batch = 0, input_len = 0, context_len = 0, tensor = 0;
  auto operator<=>(const LayerCase&) const = default;
};

// Nothing and the reason for a phase that is none.
std::optional<LayerCase> read_case(const CsvReader& csv, const LayerConventions& conventions, std::string& why) {
  const std::string_view phase_text = optional_text(csv, "phase");
  const std::optional<StepPhase> phase = step_phase_from_name(phase_text);
  if (phase != StepPhase::prefill && phase != StepPhase::decode) {
    why = fmt::format("phase = {}: expected prefill or decode", printable(phase_text));
    return std::nullopt;
  }
  LayerCase row{.device = layer_device_name(optional_text(csv, "device"), conventions),
                .model = std::string(optional_text(csv, "model")),
                .phase = *phase,
                .batch = optional_count(csv, "batch", conventions.batch),
                .input_len = optional_count(csv, "input_len", conventions.input_len),
                .context_len = optional_count(csv, "context_len", conventions.context_len),
                .tensor = optional_count(csv, "tp", conventions.tensor)};
  if (row.model.empty()) row.model = conventions.model;
  return row;
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

// Seconds of one call, in parts of one form each.
struct LaunchTime {
  struct Part {
    Estimate seconds;
    std::string_view form;
  };
  std::vector<Part> parts;

  void add_to(KernelSum& sum) const {
    for (const Part& part : parts) sum.add(part.seconds, part.form);
  }
};
using LayerTimes = std::map<std::string, LaunchTime, std::less<>>;  // by launch

// The same estimate as a step's, of a model cut to one layer, for which specs have no name.
LayerTimes predict(const LayerCase& row, const DeviceModels& device, const ModelCatalogue& models, const Stack& stack,
                   const StepValidationRequest& asked) {
  const DType dtype = asked.layer.dtype;
  Model model = models.model(row.model);
  model.layers.resize(1);
  model.dtype = dtype;
  model = with_scheme(std::move(model), plain_scheme(dtype));
  const bool decodes = row.phase == StepPhase::decode;
  const StepRequest request{.phase = row.phase,
                            .batch = row.batch,
                            .input_len = decodes ? 1 : row.input_len,
                            .context_len = decodes ? row.context_len : 0,
                            .kv_dtype = dtype,
                            .logits = Logits::none};
  const StepEstimate step = estimate_step(model, request, {.tensor = row.tensor}, device.kernels, stack,
                                          {.collectives = device.collectives.get()});
  LayerTimes times;
  for (const TimedLaunch& timed : step.stages.front().launches) {
    const auto calls = static_cast<double>(step.stages.front().calls[timed.launch.call].count);
    times[timed.launch.name].parts.push_back(
        {.seconds = scaled(on_machine(timed, device.kernels, asked.campaign), 1 / calls),
         .form = error_form(timed.launch.shape, timed.launch.variant)});
  }
  return times;
}

// Every device's predictors, made once: sums refer to their correlations.
class LayerPredictors {
 public:
  LayerPredictors(const Library& library, const DeviceModelMaker& make, Tier tier)
      : library_(library), make_(make), tier_(tier) {}

  const DeviceModels& of(const LayerCase& row) {
    const ParallelPlan plan{.tensor = row.tensor};
    const std::pair key(row.device, row.tensor);
    const auto known = models_.find(key);
    if (known != models_.end()) return known->second;
    return models_
        .emplace(key, make_ ? make_(library_.hardware().device(row.device), plan, PlacementSpec{})
                            : library_.device_models(row.device, plan, tier_))
        .first->second;
  }

 private:
  const Library& library_;
  const DeviceModelMaker& make_;
  Tier tier_;
  std::map<std::pair<std::string, int64_t>, DeviceModels> models_;  // by device and tensor ranks
};

// The operators of one phase on one device.
struct LayerTotal {
  double measured_ms = 0;
  KernelSum predicted;
};

}  // namespace

bool is_layer_table(const CsvReader& csv) {
  for (const char* name : {"device", "phase", "op", "latency_ms"}) {
    if (!csv.find_column(name)) return false;
  }
  return !csv.find_column("measured_ms");
}

StepValidation validate_layer(const StepValidationRequest& request, const Library& library,
                              const DeviceModelMaker& make_models) {
  CsvReader csv(request.data);
  const LayerConventions& conventions = request.layer;
  const Stack stack = stacks_of(library).stack(conventions.stack);
  const ModelCatalogue models = library.models();
  if (!request.group_by.empty()) csv.column(request.group_by);
  StepValidation result;
  constexpr double long_ms = 20e-3;
  ValidationTally errors(long_ms);
  LayerPredictors predictors(library, make_models, request.tier);
  std::map<LayerCase, LayerTimes> predicted;
  std::map<LayerCase, LayerTotal> totals;
  const auto skip = [&](std::string why) {
    result.errors.skipped.push_back({request.data.string(), csv.row(), std::move(why)});
  };
  while (csv.next()) {
    const auto begin = std::chrono::steady_clock::now();
    std::string why;
    const std::optional<LayerCase> row = read_case(csv, conventions, why);
    if (!row) {
      skip(why);
      continue;
    }
    const std::string_view op = optional_text(csv, "op");
    const auto known = std::find_if(conventions.operators.begin(), conventions.operators.end(),
                                    [&](const auto& one) { return equal_ignoring_case(one.first, op); });
    if (known == conventions.operators.end()) {
      skip(fmt::format("op = {}: not an operator of such a layer", printable(op)));
      continue;
    }
    const double measured_ms = csv.number(csv.column("latency_ms"), {1e-9, 1e9});
    try {
      const DeviceModels& device = predictors.of(*row);
      const KernelPredictor& predictor = device.kernels;
      auto found = predicted.find(*row);
      if (found == predicted.end()) {
        found = predicted.emplace(*row, predict(*row, device, models, stack, request)).first;
      }
      const auto time = found->second.find(known->second);
      if (time == found->second.end()) {
        skip(fmt::format("op = {}: the model's layer has none", printable(op)));
        continue;
      }
      KernelSum alone(predictor.correlations());
      time->second.add_to(alone);
      const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
      errors.add(request.group_by.empty() ? fmt::format("{}/{}", step_phase_name(row->phase), known->first)
                                          : std::string(optional_text(csv, request.group_by)),
                 in_milliseconds(measured_ms, alone.total()), spent.count());
      LayerTotal& total =
          totals.try_emplace(*row, LayerTotal{.predicted = KernelSum(predictor.correlations())}).first->second;
      total.measured_ms += measured_ms;
      time->second.add_to(total.predicted);
    } catch (const InputError& error) {
      skip(error.sentence());
    }
  }
  if (request.group_by.empty()) {
    for (const auto& [row, total] : totals) {
      errors.add(fmt::format("{}/total", step_phase_name(row.phase)),
                 in_milliseconds(total.measured_ms, total.predicted.total()), 0);
    }
  }
  errors.write(result.errors);
  return result;
}

}  // namespace foretoken
