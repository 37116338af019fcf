#include "app/cli/commands/list.h"
#include "app/cli/flags/kernel_source_flags.h"
#include "app/cli/flags/model_flags.h"
#include "app/cli/flags/speculation_flags.h"
#include "report/parts/device_notes.h"
#include "report/parts/model_notes.h"
#include "report/serving/speculation_report.h"

namespace foretoken {
namespace {

class SpeculateCommand : public Command {
 public:
  void declare(Options& options) override {
    model_.declare_model(options);
    model_.declare_parallelism(options);
    speculation_.declare(options);
    options.heading("Steps");
    options.text(
        "--batch-sizes", batches_,
        "Number of sequences that decode together: one number, or a range that doubles from the first to the last");
    options.list("--context-len", contexts_,
                 "Tokens in the KV cache of each sequence; several values give one table each [1024]");
    options.text("--stack", stack_, "Software stack that runs the steps; `foretoken stacks` lists them");
    declare_kernel_source(options, tier_);
    options.footer(
        "Shows average decode steps only; `foretoken serve` simulates whole requests.\nExamples:\n  foretoken "
        "speculate --model Llama-3.1-8B --device h100_sxm --speculative-config '{\"method\": \"eagle3\", "
        "\"num_speculative_tokens\": 3, \"acceptance_rate\": 0.7}'\n  foretoken speculate --model Llama-3.1-70B "
        "--device h100_sxm -tp 4 --context-len 1k,32k --speculative-config '{\"model\": \"Llama-3.1-8B\", "
        "\"num_speculative_tokens\": 4, \"acceptance_rate\": 0.8}'");
  }

  Answer run(const Library& library) const override {
    const Model model = model_.read_model(library);
    const ParallelPlan plan = model_.parallel_plan();
    const SpeculativeConfig config = speculation_.read(model);
    const ComposedStepsConfig composed{
        .model = model,
        .plan = plan,
        .models = library.device_models(model_.device, plan, tier_from_name(tier_).value()),
        .stack = stacks_of(library).stack(stack_),
        .kv_dtype = model_.kv_dtype(model)};
    const std::unique_ptr<StepTimes> target = compose_steps(composed);
    DraftEngine drafter(config, composed, speculation_.draft_model(config, library));
    const std::unique_ptr<StepTimes> speculated = drafter.steps(*target);
    const SpeculationSteps steps{
        .target = target.get(), .speculated = speculated.get(), .speculation = drafter.speculation()};

    SpeculationReport report{.model = model.name,
                             .device = composed.models.kernels.device().name,
                             .method = std::string(config.method->name),
                             .speculation = drafter.speculation()};
    const std::vector<int64_t> batches = parse_sizes("--batch-sizes", batches_, {.least = 1, .most = 65'536});
    for (const std::string& text : contexts_.empty() ? std::vector<std::string>{"1024"} : contexts_) {
      SpeculationReport::Context context{.tokens = parse_size("--context-len", text, {.least = 1, .most = 100'000'000}),
                                         .largest_batch = batches.back()};
      for (const int64_t batch : batches) context.points.push_back(speculation_point(steps, batch, context.tokens));
      context.break_even = break_even_batch(steps, context.tokens, batches.back());
      context.earliest_break_even = break_even_batch(steps, context.tokens, batches.back(), &Estimate::low);
      report.contexts.push_back(std::move(context));
    }
    Answer answer{.text = speculation_text(report), .json = speculation_json(report)};
    add_like_note(answer.text, answer.json, composed.models.kernels.device());
    if (const std::string note = assumed_acceptance_note(drafter.speculation()); !note.empty()) {
      answer.text += notes_text(std::span(&note, 1));
      answer.json.set("notes", Json::array({note}));
    }
    return answer;
  }

 private:
  ModelFlags model_;
  SpeculationFlags speculation_;
  std::string batches_ = "1:512", stack_ = "vllm", tier_ = "best";
  std::vector<std::string> contexts_;
};

}  // namespace

std::unique_ptr<Command> make_speculate() {
  return std::make_unique<SpeculateCommand>();
}

}  // namespace foretoken
