#include <fmt/format.h>

#include "app/cli/commands/plan/list.h"
#include "app/cli/flags/kernel_source_flags.h"
#include "app/cli/flags/step_flags.h"
#include "app/cli/output/out_file.h"
#include "compose/serving_engine.h"
#include "compose/step_estimate.h"
#include "plan/hardware/sensitivity.h"
#include "report/parts/model_notes.h"
#include "report/plan/hardware_plan_report.h"
#include "report/step/step_report.h"

namespace foretoken {
namespace {

class PlanHardwareCommand : public Command {
 public:
  void declare(Options& options) override {
    options_ = &options;
    flags_.declare(options);
    options.heading("What if");
    options.list("--change", changes_,
                 "Device numbers to change: sms, clock, memory-bandwidth, cache, memory or link-bandwidth, each with "
                 "=+20%, =1.5x or a new value (memory-bandwidth=8TB/s)");
    options.heading("Execution");
    options.text("--stack", stack_,
                 "Software stack that runs the step; `foretoken stacks` lists them [as in `foretoken step`]");
    declare_calibration(options);
    options.heading("Output");
    options.text("--svg", svg_, "Plot the step's time against each number in this SVG file");
    options.text("--html", html_, "Write an HTML report with the answer, the plot and the table");
    options.footer(
        "The step's time comes from the best source of kernel times. The change with each number comes from the "
        "cross\ntier, which predicts other GPUs from their spec sheets, and from the latency and bandwidth of "
        "collectives.\nExamples:\n  foretoken plan hardware --model Llama-3.1-70B --device h100_sxm -tp 8 --batch 64 "
        "--context-len 4096\n  foretoken plan hardware --model Llama-3.1-8B --device h100_sxm --phase prefill "
        "--input-len 4096\n      --change memory-bandwidth=4.8TB/s,memory=141GB");
  }

  Answer run(const Library& library) const override {
    const Model model = flags_.read_model(library);
    StepRequest request = flags_.step_request();
    request.kv_dtype = flags_.kv_dtype(model);
    const ParallelPlan plan = flags_.parallel_plan();
    const Stack stack = stacks_of(library).stack(!stack_.empty()                     ? stack_
                                                 : request.phase == StepPhase::train ? "fused"
                                                                                     : "vllm");
    const DeviceModels models = library.device_models(flags_.device, plan, Tier::best, flags_.placement.spec());
    const Device& device = models.kernels.device();
    if (!stack_.empty()) check_engine_runs_on("stack", stack_, device);
    const SecondsOnDevice seconds = [&](const Device& changed) {
      const KernelPredictor ported = library.predictor(changed, Tier::cross);
      return estimate_step(model, request, plan, ported, stack).seconds.value;
    };

    constexpr double factors[] = {0.5, 0.7, 0.85, 1, 1.15, 1.4, 2};
    HardwarePlanReport report{
        .model = model.served_name(),
        .device = device,
        .step = estimate_step(model, request, plan, models.kernels, stack, {.collectives = models.collectives.get()}),
        .sensitivities = sensitivities(device, seconds, factors),
        .command = options_->line()};
    if (!changes_.empty()) {
      Device changed = device;
      for (const std::string& text : changes_) {
        const DeviceChange change = parse_device_change("change", text, device);
        changed = with_factor(std::move(changed), change.number, change.factor);
        report.changes.push_back(change);
      }
      report.changed_ratio = seconds(changed) / seconds(device);
      report.changed_device = std::move(changed);
    }
    add_step_notes(report.notes, report.step, device);
    if (models.collectives) report.notes.add_network(*models.collectives);
    Answer answer{.text = model_warnings_text(model.notes) + hardware_plan_text(report),
                  .json = hardware_plan_json(report)};
    const auto write = [&](const std::string& file, const std::string& content) {
      if (file.empty()) return;
      write_report(file, content);
      answer.text += fmt::format("wrote {}\n", file);
    };
    write(svg_, hardware_plan_svg(report));
    write(html_, hardware_plan_html(report));
    return answer;
  }

 private:
  const Options* options_ = nullptr;
  StepFlags flags_;
  std::vector<std::string> changes_;
  std::string stack_, svg_, html_;
};

}  // namespace

std::unique_ptr<Command> make_plan_hardware() {
  return std::make_unique<PlanHardwareCommand>();
}

}  // namespace foretoken
