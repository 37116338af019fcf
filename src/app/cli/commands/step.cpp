#include "app/cli/commands/list.h"
#include "app/cli/engine_flags.h"
#include "app/cli/step_flags.h"
#include "app/cli/tier_flag.h"
#include "base/error.h"
#include "compose/serving_memory.h"
#include "compose/step_estimate.h"
#include "report/memory_report.h"
#include "report/step_report.h"

namespace foretoken {
namespace {

class StepCommand : public Command {
 public:
  void declare(Options& options) override {
    flags_.declare(options);
    options.heading("Prediction");
    options.choice("--tier", tier_, tier_names(), tier_help);
    memory_.declare(options);
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
    Json json = step_json(step, model, predictor.device());
    if (memory_.wanted) add_memory(text, json, step.request, model, predictor.device());
    return {.text = std::move(text), .json = std::move(json)};
  }

 private:
  void add_memory(std::string& text, Json& json, const StepRequest& request, const Model& model,
                  const Device& device) const {
    if (request.phase == StepPhase::train) {
      throw InputError({.source = "--memory", .expected = "a prefill, decode or mixed step: engines do not train"});
    }
    const ServingMemory memory =
        serving_memory(model, device, flags_.parallel_plan(), memory_.engine_flags(request.kv_dtype));
    const int64_t fresh = request.phase == StepPhase::decode ? 1 : request.input_len;
    const CacheDemand demand{
        .sequences = request.batch, .tokens_each = request.context_len + fresh, .step_tokens = fresh};
    text += "\n" + serving_memory_text(memory, demand);
    json.set("serving_memory", serving_memory_json(memory, demand));
  }

  StepFlags flags_;
  MemoryFlags memory_;
  std::string tier_ = "best";
  bool by_time_ = false;
  bool roofline_ = false;
};

}  // namespace

std::unique_ptr<Command> make_step() {
  return std::make_unique<StepCommand>();
}

}  // namespace foretoken
