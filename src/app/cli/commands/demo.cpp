#include "app/cli/commands/list.h"
#include "compose/step_estimate.h"
#include "report/step_report.h"
#include "report/table.h"

namespace foretoken {
namespace {

class DemoCommand : public Command {
 public:
  void declare(Options& options) override {
    options.footer("Shows a prefill and a decode step of Llama-3.1-70B in bf16 on one HGX H100 node.");
  }

  Answer run(const Library& library) const override {
    const Model model = library.models().model("meta-llama/Llama-3.1-70B");
    const ParallelPlan plan{.tensor = 8};
    const DeviceModels models = library.device_models("h100_sxm", plan);
    const KernelPredictor& predictor = models.kernels;
    const StepRequest prompt{.phase = StepPhase::prefill, .batch = 1, .input_len = 2048};
    const StepRequest tokens{.phase = StepPhase::decode, .batch = 64, .context_len = 2048};
    const ExecutionOptions options{.collectives = models.collectives.get()};
    const StepEstimate prefill = estimate_step(model, prompt, plan, predictor, {}, options);
    const StepEstimate decode = estimate_step(model, tokens, plan, predictor, {}, options);

    std::string text = wrap_lines(step_sentence(prefill, model, predictor.device()), 100, 2) +
                       wrap_lines(step_sentence(decode, model, predictor.device()), 100, 2);
    text +=
        "\nA step is the sum of its kernels and collectives, one after the other: no launch gaps, no overlap.\n"
        "Kernel and collective times come from measurements where there are any.\n\n";
    text += "The decode step, operator by operator\n\n";
    text += step_text(decode, model, predictor.device(), true);
    text += "\nWhere its operators sit on the H100's roofline\n\n";
    text += step_roofline(decode, model, predictor.device());
    text += "\nNext: `foretoken step --help`, `foretoken devices`, `foretoken models`.\n";
    return {.text = std::move(text),
            .json = Json::object({{"prefill", step_json(prefill, model, predictor.device())},
                                  {"decode", step_json(decode, model, predictor.device())}})};
  }
};

}  // namespace

std::unique_ptr<Command> make_demo() {
  return std::make_unique<DemoCommand>();
}

}  // namespace foretoken
