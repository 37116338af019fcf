#include <algorithm>

#include <fmt/format.h>

#include "app/cli/commands/list.h"
#include "app/cli/flags/kernel_source_flags.h"
#include "app/cli/flags/model_flags.h"
#include "app/cli/flags/speculation_flags.h"
#include "compose/captured_sizes.h"
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
    options.integer(
        "--max-cudagraph-capture-size,--cuda-graph-max-bs", largest_graph_, {.least = 0, .most = 100'000'000},
        "Largest step captured as a CUDA graph, in tokens (vLLM) or sequences (SGLang, TensorRT-LLM); 0 = the "
        "largest size that the stack lists");
    declare_kernel_source(options, tier_);
    options.footer(
        "Shows average decode steps only, up to the largest batch that fits in memory; `foretoken serve` simulates "
        "whole requests.\nExamples:\n  foretoken "
        "speculate --model Llama-3.1-8B --device h100_sxm --speculative-config '{\"method\": \"eagle3\", "
        "\"num_speculative_tokens\": 3, \"acceptance_rate\": 0.7}'\n  foretoken speculate --model Llama-3.1-70B "
        "--device h100_sxm -tp 4 --context-len 1k,32k --speculative-config '{\"model\": \"Llama-3.1-8B\", "
        "\"num_speculative_tokens\": 4, \"acceptance_rate\": 0.8}'");
  }

  Answer run(const Library& library) const override {
    const Model model = model_.read_model(library);
    const ParallelPlan plan = model_.parallel_plan();
    const SpeculativeConfig config = speculation_.read(model);
    ComposedStepsConfig composed{.model = model,
                                 .plan = plan,
                                 .models = library.device_models(model_.device, plan, tier_from_name(tier_).value()),
                                 .stack = stacks_of(library).stack(stack_),
                                 .kv_dtype = model_.kv_dtype(model)};
    if (largest_graph_ > 0) capture_up_to(composed.stack, largest_graph_);
    const std::unique_ptr<StepTimes> target = compose_steps(composed);
    DraftEngine drafter(config, composed, speculation_.draft_model(config, library));
    ComposedStepsConfig of_drafts = composed;
    if (composed.stack.graphs_of_sequences) {
      for (int64_t& size : of_drafts.stack.graph_sizes) size *= tokens_of_decode(config);
    }
    const std::unique_ptr<StepTimes> verified = compose_steps(of_drafts);
    const std::unique_ptr<StepTimes> speculated = drafter.steps(*verified);
    const SpeculationSteps steps{.target = target.get(),
                                 .verified = verified.get(),
                                 .speculated = speculated.get(),
                                 .speculation = drafter.speculation()};

    SpeculationReport report{.model = model.name,
                             .device = composed.models.kernels.device().name,
                             .method = std::string(config.method->name),
                             .speculation = drafter.speculation()};
    const std::vector<int64_t> batches = parse_sizes("--batch-sizes", batches_, {.least = 1, .most = 65'536});
    int64_t largest_batch = 0;  // of any context
    for (const std::string& text : contexts_.empty() ? std::vector<std::string>{"1024"} : contexts_) {
      const int64_t tokens = parse_size("--context-len", text, {.least = 1, .most = 100'000'000});
      const int64_t largest = largest_batch_in_memory(composed, drafter, tokens, batches.back());
      SpeculationReport::Context context{
          .tokens = tokens, .largest_batch = largest, .memory_ends_here = largest < batches.back()};
      for (const int64_t batch : batches) {
        if (batch <= largest) context.points.push_back(speculation_point(steps, batch, tokens));
      }
      if (!context.points.empty()) {
        context.break_even = break_even_batch(steps, tokens, largest);
        context.earliest_break_even = break_even_batch(steps, tokens, largest, &Estimate::low);
      }
      largest_batch = std::max(largest_batch, largest);
      report.contexts.push_back(std::move(context));
    }
    Answer answer{
        .text = speculation_text(report), .json = speculation_json(report), .failure = speculation_failure(report)};
    add_like_note(answer.text, answer.json, composed.models.kernels.device());
    std::vector<std::string> notes;
    for (std::string note : {assumed_acceptance_note(drafter.speculation()),
                             graph_note(of_drafts.stack, drafter.speculation(), largest_batch)}) {
      if (!note.empty()) notes.push_back(std::move(note));
    }
    if (notes.empty()) return answer;
    answer.text += notes_text(notes);
    Json list = Json::array();
    for (const std::string& note : notes) list.push(note);
    answer.json.set("notes", std::move(list));
    return answer;
  }

 private:
  // Empty where graphs hold the verification steps of all batches.
  static std::string graph_note(const Stack& stack, const Speculation& speculation, int64_t largest_batch) {
    const int64_t tokens = 1 + speculation.verified_tokens;
    if (stack.graph_sizes.empty() || largest_batch * tokens <= stack.graph_sizes.back()) return "";
    const int64_t most = stack.graph_sizes.back();
    return fmt::format(
        "a verification step computes {} tokens per sequence; from a batch of {}, it is larger than the largest "
        "captured CUDA graph ({} tokens), so the host launches every kernel by itself and the step takes longer; to "
        "capture the largest batch, set {{max_cudagraph_capture_size}} to {}",
        tokens, most / tokens + 1, most, stack.graphs_of_sequences ? largest_batch : largest_batch * tokens);
  }

  ModelFlags model_;
  SpeculationFlags speculation_;
  int64_t largest_graph_ = 0;
  std::string batches_ = "1:512", stack_ = "vllm", tier_ = "best";
  std::vector<std::string> contexts_;
};

}  // namespace

std::unique_ptr<Command> make_speculate() {
  return std::make_unique<SpeculateCommand>();
}

}  // namespace foretoken
