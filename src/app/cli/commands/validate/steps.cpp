#include "app/cli/commands/validate/list.h"
#include "app/cli/commands/validate/validation_answer.h"
#include "app/cli/commands/validate/withheld_answer.h"
#include "app/cli/flags/kernel_source_flags.h"
#include "app/cli/flags/link_flags.h"
#include "app/cli/flags/withheld_flags.h"
#include "app/cli/output/out_file.h"
#include "base/csv.h"
#include "base/error.h"
#include "report/accuracy/validation_report.h"
#include "validate/steps/validate_layer.h"
#include "validate/steps/validate_steps.h"

namespace foretoken {
namespace {

class ValidateSteps : public Command {
 public:
  void declare(Options& options) override {
    options_ = &options;
    options.text("--data", data_, "CSV file of measured steps, as written by tools/measure_steps.py", true);
    options.list("--devices", request_.devices, "Only these devices (comma-separated)");
    options.list("--stacks", request_.stacks, "Only these stacks");
    options.list("--phases", request_.phases, "Only these phases");
    options.list("--models", request_.models, "Only these models");
    options.text("--group-by", request_.group_by, "Column to group by, instead of stack/phase");
    declare_kernel_source(options, tier_);
    withheld_.declare(options, false);
    declare_host_factor(options, request_.host_factor);
    options.flag("--sustained", request_.sustained,
                 "Compare with steps repeated without pause: predict the time at the power limit, and compare it with "
                 "sustained_ms if present, else measured_ms");
    options.text(
        "--campaign", campaign_,
        "For a layer measured by operator: host overhead of its machine, a file written by `foretoken fit campaign`");
    options.text("--out", out_, "Write every row with predicted, low, high, confidence and error to this CSV file");
    options.footer(
        "Columns: device, model, stack, dispatch, phase, batch, input_len, context_len, dtype, measured_ms; "
        "optional\nkernel_ms (sum of kernel times: never used, but its error is reported), sustained_ms (after seconds "
        "of such\nsteps), power_w, cache, optimizer, logits, tp.\nAlso NeuSight's table of whole models "
        "(device,model,mode,seq_len,batch,fusion,measured_ms), and one layer\nmeasured operator by operator "
        "(device,phase,op,latency_ms; optional model, batch, input_len, context_len, tp),\nby default GPT-3's on four "
        "GPUs as measured by LLMCompass (data/layers/llmcompass.json).\nExample:\n  foretoken validate steps --data "
        "data/measured/h200_sxm/steps.csv --stacks torch-graph");
  }

  Answer run(const Library& library) const override {
    StepValidationRequest request = request_;
    request.data = data_;
    request.layer = layer_conventions_of(library);
    if (!campaign_.empty()) request.campaign = read_campaign(campaign_);
    if (!out_.empty() && is_layer_table(CsvReader(request.data))) {
      throw InputError({.source = "--out",
                        .value = printable(data_),
                        .expected = "a table of steps: operators of a single layer have no rows to write"});
    }
    if (withheld_.is_wanted()) return without_generation(library, request);
    OutFile rows("--out", out_);
    ScoredStepSink sink;
    if (rows.wanted()) {
      rows.stream() << scored_step_header();
      sink = [&](const ScoredStep& scored) { rows.stream() << scored_step_row(scored); };
    }
    request.tier = tier_from_name(tier_).value();
    const StepValidation validation = validate_steps(request, library, sink);
    rows.close();
    return {.text = step_validation_text(validation),
            .json = step_validation_json(validation),
            .failure = validation_failure(validation.errors)};
  }

 private:
  // A prefill's time is the TTFT of its batch, a decode's the TPOT; throughput is that of the decode.
  Answer without_generation(const Library& library, StepValidationRequest request) const {
    options_->refuse({"--tier", "--out", "--group-by"}, {}, "--without");
    const auto calibrations = withheld_.calibrations(library, options_->calibration());
    const Library withheld = library.with_calibrations(calibrations->folder());
    request.devices =
        devices_of_generation(calibrations->generation(), request.data, "device", request.devices, library.hardware());
    return withheld_answer("steps", calibrations->generation(), [&](Tier tier) {
      request.tier = tier;
      constexpr double long_ms = 0.02;
      ValidationTally tally(long_ms);
      StepValidation all = validate_steps(request, withheld, [&](const ScoredStep& step) {
        const PredictedRow row = in_milliseconds(step.measured_ms, step.predicted->seconds);
        const bool is_decode = step.spec->request.phase == StepPhase::decode;
        const bool is_prefill = step.spec->request.phase == StepPhase::prefill;
        tally.add(is_decode ? "tpot_ms" : is_prefill ? "ttft_ms" : step.group, row, 0);
        if (!is_decode) return;
        const double tokens = 1000 * static_cast<double>(step.spec->request.batch);
        tally.add("out_tok_s",
                  {.measured = tokens / row.measured,
                   .predicted = tokens / row.predicted,
                   .low = tokens / row.high,
                   .high = tokens / row.low},
                  0);
      });
      tally.write(all.errors);
      return all.errors;
    });
  }

  const Options* options_ = nullptr;
  WithheldFlags withheld_;
  std::string data_, out_, campaign_, tier_ = "best";
  StepValidationRequest request_;
};

}  // namespace

std::unique_ptr<Command> make_validate_steps() {
  return std::make_unique<ValidateSteps>();
}

}  // namespace foretoken
