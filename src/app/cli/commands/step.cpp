#include "app/cli/commands/list.h"
#include "app/cli/step_flags.h"
#include "app/cli/tier_flag.h"
#include "compose/step_estimate.h"
#include "report/step_report.h"

namespace foretoken {
namespace {

class StepCommand : public Command {
 public:
  void declare(Options& options) override {
    flags_.declare(options);
    options.heading("Prediction");
    options.choice("--tier", tier_, tier_names(), tier_help);
    options.heading("Output");
    options.flag("--by-time", by_time_, "Slowest operator first, instead of in order of use");
    options.flag("--roofline", roofline_, "Also draw the slowest operators on the device's roofline");
    options.footer(
        "Examples:\n"
        "  foretoken step --model Llama-3.1-8B --device h100_sxm --phase prefill --input-len 2048\n"
        "  foretoken step --model Llama-3.1-70B --device h100_sxm --batch 64 --context-len 2048 -tp 8\n"
        "  foretoken step --model DeepSeek-V3 --device h200_sxm --batch 128 --context-len 4k -tp 8 -ep 8");
  }

  Answer run(const Library& library) const override {
    const Model model = flags_.read_model(library);
    const KernelPredictor predictor = library.predictor(flags_.device, tier_from_name(tier_).value());
    const StepEstimate step = estimate_step(model, flags_.step_request(model), flags_.parallel_plan(), predictor);
    std::string text = step_text(step, model, predictor.device(), by_time_);
    if (roofline_) text += "\n" + step_roofline(step, model, predictor.device());
    return {.text = std::move(text), .json = step_json(step, model, predictor.device())};
  }

 private:
  StepFlags flags_;
  std::string tier_ = "best";
  bool by_time_ = false;
  bool roofline_ = false;
};

}  // namespace

std::unique_ptr<Command> make_step() {
  return std::make_unique<StepCommand>();
}

}  // namespace foretoken
