#include "app/cli/commands/list.h"
#include "app/cli/flags/kernel_source_flags.h"
#include "app/cli/output/plan_files.h"
#include "app/cli/output/progress.h"
#include "base/parallel.h"
#include "plan/serving/serving_planner.h"
#include "report/plan/serving_plan_report.h"
#include "serving/load/synthetic.h"

namespace foretoken {
namespace {

// Chats of our own making: prompts of 1,024 tokens and answers of 256 in the mean, lognormal.
std::vector<Request> chats() {
  constexpr int64_t count = 30'000;
  constexpr uint64_t seed = 0;
  constexpr LognormalLength prompt{.mean = 1024, .sigma = 0.7, .most = 8192};
  constexpr LognormalLength answer{.mean = 256, .sigma = 0.7, .most = 4096};
  const std::unique_ptr<RequestSource> source = synthetic_load(
      {.rate = 1, .count = count}, lognormal_lengths(prompt, answer, seed), {.tokens = 0, .count = 1}, seed);
  return Traffic::taken_from(*source, count);
}

class DemoCommand : public Command {
 public:
  void declare(Options& options) override {
    files_.declare(options);
    declare_calibration(options);
    options.footer(
        "Asks how to serve Llama-3.1-70B to chat users on eight H100s so that 99% of requests get their first token "
        "within\n500 ms and each further token within 50 ms. To ask with other numbers: foretoken plan serve --help");
  }

  Answer run(const Library& library) const override {
    files_.check();
    ServingPlanner planner{.library = library,
                           .question = {.model = library.models().model("meta-llama/Llama-3.1-70B"),
                                        .slos = {{.metric = SloMetric::ttft, .limit_ms = 500},
                                                 {.metric = SloMetric::tpot, .limit_ms = 50}},
                                        .hardware = {hardware_choice(library, "h100_sxm", 8, std::nullopt)},
                                        .choices = {.engines = {"vllm", "sglang", "trtllm"},
                                                    .schemes = {std::nullopt, Scheme::fp8},
                                                    .kv_dtypes = {DType::bf16, DType::fp8},
                                                    .pipeline = {1}},
                                        .drafts = {}},
                           .traffic = Traffic(chats()),
                           .limits = {.quick = 32, .full = 5},
                           .threads = threads_to_use(0),
                           .tell = show_progress};
    const ServingSearchResult result = planner.search();
    const std::optional<LayoutExplanation> explanation = planner.explain(result);
    const ServingPlanReport report{.question = planner.question,
                                   .traffic = planner.traffic,
                                   .result = result,
                                   .explanation = explanation ? &*explanation : nullptr};
    files_.write(planner, report);
    return {.text = "How to serve Llama-3.1-70B to chat users on eight H100s?\n\n" + serving_plan_text(report) +
                    "To check a layout, give `foretoken serve` the same load: --dataset-name lognormal\n"
                    "  --random-input-len 1024 --random-output-len 256 --lognormal-sigma 0.7 --num-prompts 10000.\n" +
                    "\nNext: `foretoken plan serve --help`, `foretoken serve --help`, `foretoken step --help`.\n",
            .json = serving_plan_json(report)};
  }

 private:
  PlanFileFlags files_;
};

}  // namespace

std::unique_ptr<Command> make_demo() {
  return std::make_unique<DemoCommand>();
}

}  // namespace foretoken
