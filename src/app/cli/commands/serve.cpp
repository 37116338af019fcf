#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "app/cli/commands/list.h"
#include "app/cli/engine_flags.h"
#include "app/cli/load_flags.h"
#include "app/cli/model_flags.h"
#include "app/cli/progress.h"
#include "app/cli/tier_flag.h"
#include "base/error.h"
#include "base/file.h"
#include "report/memory_report.h"
#include "report/serving_breakdown.h"
#include "report/serving_files.h"
#include "report/serving_report.h"
#include "serving/composed_steps.h"
#include "serving/engine_setup.h"
#include "serving/op_tables.h"
#include "serving/router.h"
#include "serving/step_mix.h"
#include "serving/sustained_steps.h"
#include "serving/vidur_tables.h"

namespace foretoken {
namespace {

class ShownProgress : public RunObserver {
 public:
  void request_ended(const RequestRecord& /*record*/) override {
    if (++ended_ % 100'000 == 0) show_progress(fmt::format("{} requests served", ended_));
  }

 private:
  int64_t ended_ = 0;
};

// A file that is written while the run goes on; nothing where no name was given.
class OutFile {
 public:
  OutFile(const char* flag, const std::string& path) : flag_(flag), path_(path) {
    if (path.empty()) return;
    file_.open(path, std::ios::binary | std::ios::trunc);
    if (!file_) {
      throw InputError(
          {.source = flag, .value = printable(path), .expected = "a file that can be written, in an existing folder"});
    }
  }
  bool wanted() const { return !path_.empty(); }
  std::ostream& stream() { return file_; }
  void close() {
    if (!wanted()) return;
    file_.close();
    if (!file_) throw InputError({.source = flag_, .value = printable(path_), .expected = "room to write all lines"});
  }

 private:
  const char* flag_;
  std::string path_;
  std::ofstream file_;
};

bool shares_keys(const Model& model) {
  for (const Layer& layer : model.layers) {
    if (const auto* attention = std::get_if<Attention>(&layer.mixer)) return attention->kv_heads < attention->heads;
  }
  return false;
}

class ServeCommand : public Command {
 public:
  void declare(Options& options) override {
    model_.declare_model(options);
    model_.declare_parallelism(options);
    load_.declare(options);
    engine_.declare(options);
    options.heading("Scheduler");
    options.text("--scheduler", scheduler_,
                 "What decides which requests run in a step; default: the engine's. " + kinds());
    options.choice("--scheduling-policy", policy_, {"fcfs", "priority"}, "Order of waiting requests");
    options.flag("--enable-chunked-prefill", chunked_prefill_, "Cut prompts to fill a step [on]");
    options.flag("--enable-prefix-caching", prefix_caching_, "Find blocks of earlier prompts again [on]");
    options.flag("--async-scheduling", async_scheduling_, "Choose the next step while one runs [on]");
    options.flag("--scheduler-reserve-full-isl", reserve_full_isl_, "Admit a prompt only if all of it fits [on]");
    options.integer("--long-prefill-token-threshold", long_prefill_, {.least = 0, .most = 100'000'000},
                    "Most tokens of one prompt in a step; 0 = no limit");
    options.number("--watermark", watermark_, {.least = -1, .most = 1},
                   "Share of the blocks kept free when a request is admitted; -1 = the scheduler's own");
    options.heading("Replicas");
    options.integer("--replicas", replicas_, {.least = 1, .most = 100'000},
                    "Engines behind the router, each with its own devices");
    options.choice("--router", router_, router_names(), "Which replica a request goes to");
    options.heading("Step times");
    options.text("--stack", stack_, "Software that runs the steps (foretoken stacks); default: the engine's");
    options.choice("--tier", tier_, tier_names(), tier_help);
    options.text("--op-tables", op_tables_,
                 "Take step times from operators measured in an engine (LLMServingSim's profiles)");
    options.text("--vidur-tables", vidur_tables_, "Take step times from VIDUR's look-up tables");
    options.flag("--sustained", sustained_,
                 "Steps of a board that is always busy: the power limit lengthens those with prompts");
    options.heading("Results");
    goals_.declare(options);
    options.flag("--intervals", intervals_,
                 "Also run with all steps at both ends of their intervals [on up to 20,000 requests]");
    options.integer("--num-seeds", more_seeds_, {.least = 0, .most = 1000},
                    "Also run with so many other seeds, for the intervals");
    options.flag("--breakdown", breakdown_, "Also say which steps and operators the time went to");
    options.flag("--save-result", save_result_, "Write vLLM's result JSON");
    options.text("--result-dir", result_dir_, "Folder of it");
    options.text("--result-filename", result_filename_, "Name of it");
    options.text("--out-requests", out_requests_, "Write each request to this CSV file");
    options.text("--out-steps", out_steps_, "Write each step to this CSV file");
    options.text("--out-trace", out_trace_, "Write the run as a Chrome trace (.json, .json.gz), for ui.perfetto.dev");
    options.footer(
        "A request of no tokens, or one that can never fit, counts as failed; the rest of the run goes on.\n"
        "Examples:\n"
        "  foretoken serve --model Llama-3.1-8B --device h100_sxm --request-rate 4 --num-prompts 200\n"
        "  foretoken serve --model Llama-3.1-8B --device h100_sxm --max-concurrency 16 --num-prompts 160 "
        "--random-output-len 256\n"
        "  foretoken serve --model Llama-3.1-8B --device h100_sxm --trace azure.csv --replicas 2 --router "
        "least_outstanding");
  }

  Answer run(const Library& library) const override {
    const Model model = model_.read_model(library);
    ParallelPlan plan = model_.parallel_plan();
    const DeviceModels models = library.device_models(model_.device, plan, tier_from_name(tier_).value());
    const KernelPredictor& predictor = models.kernels;
    const int64_t replicas = replicas_ * plan.data;
    if (plan.expert <= plan.tensor) plan.data = 1;  // ranks are engines of their own
    const ServingMemory memory =
        serving_memory(model, predictor.device(), plan, engine_.engine_flags(model_.kv_dtype(model)));
    const Stack stack = engine_stack(library.stacks().stack(stack_name()), memory.flags);
    const ComposedStepsConfig composed{
        .model = model, .plan = plan, .models = models, .stack = stack, .kv_dtype = model_.kv_dtype(model)};
    std::unique_ptr<StepTimes> times = step_times(composed);
    if (sustained_) times = sustained(std::move(times), composed);

    ServingRunRequest request;
    request.config.router = router_;
    request.config.seed = static_cast<uint64_t>(load_.seed);
    const ReplicaConfig replica{
        .scheduler = scheduler_name(), .options = options_of(memory, plan), .times = times.get()};
    request.config.replicas.assign(static_cast<size_t>(replicas), replica);
    request.load = load_.load();
    request.front = stack.costs.front;
    request.goals = goals_.goals();
    request.percentiles = goals_.percentiles();
    request.step_bounds = intervals_ && load_.requests() > 0 && load_.requests() <= most_for_intervals;
    request.more_seeds = more_seeds_;

    StepMix mix;
    if (breakdown_) request.observers.push_back(&mix);
    const ServingRun run = run_and_write(request);
    const ServingReport report{
        .model = model.name,
        .device = predictor.device().name,
        .scheduler = replica.scheduler,
        .num_prompts = run.metrics.completed + run.metrics.rejected,
        .request_rate = load_.rate(),
        .burstiness = load_.arrivals.burstiness,
        .max_concurrency = load_.max_concurrency > 0 ? std::optional(load_.max_concurrency) : std::nullopt,
        .percentiles = request.percentiles,
        .percentile_metrics = goals_.shown_metrics(),
        .replicas = replicas,
        .devices = replicas * plan.tensor * plan.pipeline * plan.context,
        .kv_blocks = replica.options.num_gpu_blocks,
        .block_size = replica.options.block_size,
        .run = run};
    if (save_result_) {
      write_file(std::filesystem::path(result_dir_) / result_filename_, vllm_result_json(report).dump() + "\n");
    }
    Answer answer{.text = serving_text(report), .json = serving_json(report)};
    if (breakdown_) {
      const std::vector<TypicalStep> steps = typical_steps(mix, replica.options.block_size, model, plan, models, stack);
      answer.text += "\n" + serving_breakdown_text(steps);
      answer.json.set("breakdown", serving_breakdown_json(steps));
    }
    if (engine_.wanted) {
      const CacheDemand demand{.sequences = replica.options.max_num_seqs, .tokens_each = memory.flags.max_model_len};
      answer.text += "\n" + serving_memory_text(memory, demand);
      answer.json.set("serving_memory", serving_memory_json(memory, demand));
    }
    return answer;
  }

 private:
  static constexpr int64_t most_for_intervals = 20'000;

  static std::string kinds() {
    std::string text;
    for (const SchedulerKind& kind : scheduler_kinds()) {
      text += fmt::format("{}{} = {}", text.empty() ? "" : "; ", kind.name, kind.summary);
    }
    return text;
  }

  std::string scheduler_name() const {
    const std::string name = scheduler_.empty() ? std::string(engine_family(engine_.engine.engine)) : scheduler_;
    return std::string(scheduler_kind(name).name);
  }

  std::string stack_name() const { return stack_.empty() ? std::string(engine_family(engine_.engine.engine)) : stack_; }

  SchedulerOptions options_of(const ServingMemory& memory, const ParallelPlan& plan) const {
    SchedulerOptions options = scheduler_options(memory, plan);
    options.policy = policy_ == "priority" ? QueuePolicy::priority : QueuePolicy::fcfs;
    options.enable_chunked_prefill = chunked_prefill_;
    options.enable_prefix_caching = prefix_caching_;
    options.async_scheduling = async_scheduling_;
    options.scheduler_reserve_full_isl = reserve_full_isl_;
    options.long_prefill_token_threshold = long_prefill_;
    if (watermark_ >= 0) options.watermark = watermark_;
    return options;
  }

  std::unique_ptr<StepTimes> step_times(const ComposedStepsConfig& composed) const {
    if (!op_tables_.empty() && !vidur_tables_.empty()) {
      throw InputError({.source = "--op-tables", .value = "and --vidur-tables", .expected = "one of them"});
    }
    if (!op_tables_.empty()) {
      return read_op_tables(op_tables_, op_table_options(composed.model, composed.plan, composed.stack,
                                                         composed.models.kernels.device()));
    }
    if (!vidur_tables_.empty()) {
      return read_vidur_tables(vidur_tables_, {.layers = static_cast<int64_t>(composed.model.layers.size()),
                                               .grouped_query = shares_keys(composed.model)});
    }
    return compose_steps(composed);
  }

  static std::unique_ptr<StepTimes> sustained(std::unique_ptr<StepTimes> cool, const ComposedStepsConfig& composed) {
    if (!composed.models.power) {
      throw InputError({.source = "--sustained",
                        .path = composed.models.kernels.device().name,
                        .value = "no power limit known",
                        .expected = "a device whose file gives power_limit_w"});
    }
    return sustained_steps(std::move(cool), composed);
  }

  std::vector<TypicalStep> typical_steps(const StepMix& mix, int64_t block_size, const Model& model,
                                         const ParallelPlan& plan, const DeviceModels& models,
                                         const Stack& stack) const {
    if (!op_tables_.empty() || !vidur_tables_.empty()) {
      throw InputError({.source = "--breakdown", .expected = "steps of our own kernels: tables have no operators"});
    }
    std::vector<TypicalStep> steps;
    for (const StepShare& share : mix.shares()) {
      if (share.steps == 0) continue;
      StepRequest request = share.typical(block_size);
      request.kv_dtype = model_.kv_dtype(model);
      steps.push_back({.share = share,
                       .step = estimate_step(model, request, plan, models.kernels, stack,
                                             {.collectives = models.collectives.get()})});
    }
    return steps;
  }

  ServingRun run_and_write(ServingRunRequest& request) const {
    OutFile requests("--out-requests", out_requests_), steps("--out-steps", out_steps_);
    std::optional<RequestCsv> request_csv;
    std::optional<StepCsv> step_csv;
    RunTrace trace;
    ShownProgress progress;
    request.observers.push_back(&progress);
    if (requests.wanted()) request.observers.push_back(&request_csv.emplace(requests.stream()));
    if (steps.wanted()) request.observers.push_back(&step_csv.emplace(steps.stream()));
    if (!out_trace_.empty()) request.observers.push_back(&trace);
    ServingRun run = run_serving(request);
    requests.close();
    steps.close();
    if (!out_trace_.empty()) write_file(out_trace_, trace.document().dump(0) + "\n");
    return run;
  }

  ModelFlags model_;
  LoadFlags load_;
  MemoryFlags engine_;
  GoalFlags goals_;
  std::string scheduler_, policy_ = "fcfs", router_ = "round_robin", stack_, tier_ = "best";
  bool chunked_prefill_ = true, prefix_caching_ = true, async_scheduling_ = true, reserve_full_isl_ = true;
  int64_t long_prefill_ = 0, replicas_ = 1, more_seeds_ = 0;
  double watermark_ = -1;
  std::string op_tables_, vidur_tables_;
  bool sustained_ = false;
  bool intervals_ = true, save_result_ = false, breakdown_ = false;
  std::string result_dir_ = ".", result_filename_ = "foretoken_serve.json";
  std::string out_requests_, out_steps_, out_trace_;
};

}  // namespace

std::unique_ptr<Command> make_serve() {
  return std::make_unique<ServeCommand>();
}

}  // namespace foretoken
