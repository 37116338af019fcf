#include <algorithm>

#include <fmt/format.h>

#include "app/cli/commands/plan/list.h"
#include "app/cli/flags/kernel_source_flags.h"
#include "app/cli/flags/training_pool_flags.h"
#include "app/cli/grammar/money.h"
#include "app/cli/output/out_file.h"
#include "app/cli/output/progress.h"
#include "base/error.h"
#include "base/file.h"
#include "base/parallel.h"
#include "plan/mixed_training_search.h"
#include "plan/training_launch.h"
#include "plan/training_search.h"
#include "plan/training_sizing.h"
#include "report/parts/model_notes.h"
#include "report/parts/table.h"
#include "report/plan/training_search_report.h"
#include "report/plan/training_sizing_report.h"
#include "report/training/mixed_report.h"
#include "report/training/training_report.h"

namespace foretoken {
namespace {

class PlanTrain : public Command {
 public:
  void declare(Options& options) override {
    options_ = &options;
    flags_.declare(options);
    options.heading("Several kinds of GPU");
    pools_.declare(options);
    options.heading("Number of GPUs");
    options.choice("--goal", goal_, sizing_goal_names(),
                   "Objective for the number of GPUs. speed uses all of --devices, unless --deadline-days or --budget "
                   "is given; fewest-gpus and cost choose the number, up to --devices [speed; fewest-gpus with "
                   "--deadline-days]");
    options.number("--deadline-days", deadline_days_, {.least = 0, .most = 1e5},
                   "Maximum days to train --train-tokens, for example 30; 0 = no limit");
    options.text("--budget", budget_, "Maximum cost of --train-tokens in USD, for example 250000, $250k or $2.5M");
    options.heading("Search");
    options.integer("--best", best_, {.least = 1, .most = 1000}, "Number of plans to show");
    options.integer("--most-tensor", most_tensor_, {.least = 0, .most = 8192},
                    "Maximum tensor-parallel size; 0 = the GPUs of one node (NVLink domain)");
    options.integer("--most-micro-batch", most_micro_batch_, {.least = 1, .most = 8192},
                    "Maximum sequences per micro-batch");
    options.integer("--threads", threads_, {.least = 0, .most = 1024},
                    "Number of CPU threads; 0 = all cores. The result does not depend on it");
    options.choice("--launch", launch_, launch_names(),
                   "Also write the file that starts the fastest plan a framework can run: Megatron-LM script, "
                   "Megatron-Bridge YAML (also NeMo), torchtitan TOML, Axolotl or torchtune YAML, DeepSpeed JSON");
    options.text("--launch-out", launch_out_, "Write the file of --launch here instead of below the answer");
    options.heading("Prediction");
    declare_kernel_source(options, tier_);
    options.show_first({"--model",
                        "--config",
                        "--seq-length",
                        "--precision",
                        "--lora-rank",
                        "--cluster",
                        "--device",
                        "--devices",
                        "--stack",
                        "--micro-batch-size",
                        "--global-batch-size",
                        "--recompute-granularity",
                        "--memory-limit",
                        "--train-tokens",
                        "--gpu-price",
                        "--goal",
                        "--deadline-days",
                        "--budget",
                        "--best",
                        "--launch"});
    options.footer(
        "Parallel sizes, --schedule (1f1b and interleaved), --sharding and --recompute-granularity are searched unless "
        "given.\nNot accepted: --sequence-parallel (tensor parallelism always splits sequences), --shard-ranks (the "
        "search "
        "shards\nover all replicas, and also inside each node), uneven stages, layers per chunk, --recompute-modules "
        "and\n--recompute-num-layers (the search chooses "
        "them).\nWith --pool given twice or more, the search divides the job among kinds of GPU, by replicas or by "
        "pipeline stages.\nExamples:\n  foretoken plan train --model Llama-3.1-70B --cluster h100_ib_rail --devices 64 "
        "--seq-length 8192\n      --global-batch-size 128\n  foretoken plan train --model Llama-3.1-405B --cluster "
        "h100_roce_pods --devices 16384 -tp 8\n      --seq-length 8192 --global-batch-size 2048\n  foretoken plan "
        "train "
        "--model Llama-3.1-8B --pool h100_sxm:8 --pool a100_sxm:8 --global-batch-size 128\n  foretoken plan train "
        "--model Llama-3.1-8B --device h100_sxm --devices 512 --global-batch-size 512\n      --train-tokens 1T "
        "--deadline-days 30");
  }

  Answer run(const Library& library) const override {
    if (pools_.are_several()) return run_on_pools(library);
    const TrainingLauncher* launcher = find_training_launcher(launch_);
    const TrainingLauncher framework = launcher != nullptr ? *launcher : TrainingLauncher{};
    TrainingRequest request = flags_.request(library, TrainingFlags::Use::search,
                                             {.pool = pools_.only(),
                                              .stack = std::string(framework.stack),
                                              .optimizer = std::string(framework.optimizer),
                                              .adapter_optimizer = std::string(framework.adapter_optimizer),
                                              .logit_bytes = framework.logit_bytes});
    TrainingQuestion& question = request.question;
    const std::unique_ptr<MachineModels> machine = machine_of(library, question.cluster, tier_from_name(tier_).value());
    request.choices.most_tensor = most_tensor_;
    request.choices.most_micro_batch = most_micro_batch_;
    if (launcher == nullptr && !launch_out_.empty()) {
      throw InputError(
          {.source = "--launch-out", .value = launch_out_, .expected = "--launch too, with the framework of the file"});
    }
    if (launcher != nullptr) request.choices = choices_of(*launcher, std::move(request.choices), question);
    if (framework.dispatcher != TokenDispatcher::usual && question.job.model.has_experts() &&
        question.plan.dispatcher == TokenDispatcher::usual && !options_->was_given("--moe-token-dispatcher")) {
      question.plan.dispatcher = framework.dispatcher;
    }
    OutFile("--launch-out", launch_out_, OutFile::Mode::append).close();
    show_progress("searching plans");
    const bool shows_megatron_flags =
        question.stack.takes_megatron_flags && (launcher == nullptr || launcher->name == "megatron-lm");
    const TrainingPlanOptions plan_options{
        .choices = request.choices,
        .best = static_cast<size_t>(launcher == nullptr ? best_ : std::max(best_, plans_for_launch)),
        .threads = threads_to_use(threads_),
        .may_offload = !options_->was_given("--optimizer-cpu-offload") &&
                       (launcher == nullptr || launcher->host_memory.optimizer)};
    TrainingSearchResult result;
    std::optional<JobSizing> sizing;
    try {
      if (chooses_devices()) {
        sizing = sized(question, *machine, plan_options);
        if (!sizing->chosen) {
          Answer answer{.text = model_warnings_text(question.job.model.notes) + training_sizing_text(question, *sizing),
                        .json = Json::object({{"sizing", training_sizing_json(*sizing)}}),
                        .failure = training_sizing_failure(question, *sizing)};
          leave_unwritten(answer, "no number of GPUs stays within the limits");
          add_notes(answer, request.notes, *machine->machine().kernels);
          return answer;
        }
        const JobSize& chosen = sizing->sizes[*sizing->chosen];
        question = on_devices(question, chosen.devices);
        result = *chosen.search;
      } else {
        result = plan_training(question, *machine, plan_options);
      }
    } catch (const NoTrainingPlanFits& error) {
      question.plan = error.nearest().plan;
      Answer answer{.text = model_warnings_text(question.job.model.notes) +
                            unfit_training_search_text(question, error.nearest(), shows_megatron_flags),
                    .json = unfit_training_search_json(question, error.nearest()),
                    .failure = unfit_training_search_sentence(question, error.nearest())};
      leave_unwritten(answer, "no plan fits");
      add_notes(answer, request.notes, *machine->machine().kernels);
      return answer;
    } catch (const InputError& error) {
      throw named_as_in_file(error, request);
    }

    if (result.offloads_optimizer) {
      question.formats.offloaded_optimizer = 1;
      request.notes.emplace_back(
          "no plan fits with the optimizer state in GPU memory, so it is kept in host memory "
          "(--optimizer-cpu-offload); --no-optimizer-cpu-offload rules this out");
    }
    // The file may need a plan beyond those that are shown.
    const std::vector<RankedPlan> ranked = result.best;
    if (result.best.size() > static_cast<size_t>(best_)) result.best.resize(static_cast<size_t>(best_));
    question.plan = result.best.front().plan;
    const TrainingEstimate estimate = estimate_training(question, *machine);
    Answer answer{.text = model_warnings_text(question.job.model.notes) +
                          (sizing ? training_sizing_text(question, *sizing) : "") +
                          training_search_text(question, result, shows_megatron_flags) +
                          training_text(question, estimate),
                  .json = training_search_json(question, result)};
    if (sizing) answer.json.set("sizing", training_sizing_json(*sizing));
    answer.json.set("fastest", training_json(question, estimate));
    if (launcher != nullptr) add_launch(*launcher, question, ranked, answer);
    add_notes(answer, request.notes, *machine->machine().kernels);
    return answer;
  }

 private:
  static constexpr int64_t plans_for_launch = 100;  // to look through for one that the framework can run

  bool chooses_devices() const {
    return deadline_days_ > 0 || !budget_.empty() || sizing_goal_from_name(goal_) != SizingGoal::speed;
  }

  JobSizing sized(const TrainingQuestion& question, const MachineModels& machine,
                  const TrainingPlanOptions& plan_options) const {
    SizingLimits limits;
    SizingGoal goal = sizing_goal_from_name(goal_).value();
    if (deadline_days_ > 0) {
      limits.days = deadline_days_;
      if (!options_->was_given("--goal")) goal = SizingGoal::fewest_devices;
    }
    if (!budget_.empty()) limits.usd = budget_usd();
    const bool needs_price = limits.usd || goal == SizingGoal::cost;
    const char* const flag = limits.days ? "--deadline-days" : limits.usd ? "--budget" : "--goal";
    if (!question.run && (limits.days || needs_price)) {
      throw InputError({.source = flag,
                        .value = "without --train-tokens",
                        .expected = "--train-tokens too: the tokens of the whole run, for example 1T"});
    }
    if (needs_price && !question.run->usd_per_device_hour) {
      throw InputError({.source = limits.usd ? "--budget" : "--goal",
                        .value = fmt::format("no list price of {} is known", question.cluster.node.device.name),
                        .expected = "--gpu-price too, in USD per GPU-hour"});
    }
    return size_training(question, machine, plan_options, goal, limits,
                         [](int64_t devices) { show_progress(fmt::format("searching plans on {} GPUs", devices)); });
  }

  double budget_usd() const {
    const std::optional<double> usd = parse_usd(budget_);
    if (usd && *usd > 0 && *usd <= 1e15) return *usd;
    throw InputError({.source = "--budget",
                      .value = printable(budget_),
                      .expected = "an amount above 0 USD for the whole run, for example 250000, $250k or $2.5M"});
  }

  Answer run_on_pools(const Library& library) const {
    options_->refuse({"--link", "--optimizer-cpu-offload", "--param-cpu-offload", "--activation-offload-fraction",
                      "--launch", "--launch-out", "--goal", "--deadline-days", "--budget"},
                     {}, "several kinds of GPU (--pool)");
    PoolRequest request = pools_.request(library, flags_, TrainingFlags::Use::search, tier_from_name(tier_).value());
    PlanChoices choices = request.first.choices;
    choices.most_tensor = most_tensor_;
    choices.most_micro_batch = most_micro_batch_;
    show_progress("searching plans");
    const MixedSearchResult result = search_mixed_plans(
        request.pools, {.choices = choices, .best = static_cast<size_t>(best_), .threads = threads_to_use(threads_)});
    const MixedEstimate& fastest = result.best.front().estimate;
    Answer answer{.text = model_warnings_text(request.first.question.job.model.notes) +
                          mixed_search_text(request.pools, result) + mixed_text(request.pools, fastest),
                  .json = mixed_search_json(request.pools, result),
                  .failure = mixed_failure(request.pools, fastest)};
    std::vector<const KernelPredictor*> kernels;
    for (const TrainingPool& pool : request.pools) kernels.push_back(pool.machine->machine().kernels);
    add_notes(answer, request.first.notes, kernels);
    return answer;
  }

  static std::vector<std::string> launch_names() {
    std::vector<std::string> names = training_launcher_names();
    names.insert(names.begin(), "none");
    return names;
  }

  // Opening the file to see whether it can be written has made it.
  void leave_unwritten(Answer& answer, std::string_view why) const {
    if (launch_out_.empty()) return;
    remove_if_empty(launch_out_);
    answer.text += fmt::format("\n{} was not written: {}.\n", launch_out_, why);
  }

  // The file of the fastest plan that the framework can run.
  void add_launch(const TrainingLauncher& launcher, TrainingQuestion question, const std::vector<RankedPlan>& ranked,
                  Answer& answer) const {
    std::string why;
    for (const RankedPlan& one : ranked) {
      question.plan = one.plan;
      const std::string refusal = launcher.refusal(question);
      if (!refusal.empty()) {
        if (why.empty()) why = refusal;
        continue;
      }
      const double slower = one.seconds.value / ranked.front().seconds.value - 1;
      answer.text += wrap_lines(launch_title(launcher, why, slower), page_width(), 2);
      const std::string file = launcher.write(question);
      if (launch_out_.empty()) {
        answer.text += file;
      } else {
        write_file(launch_out_, file);
        answer.text += fmt::format("wrote {}\n", launch_out_);
      }
      Json launch = Json::object({{"framework", launcher.name}, {"file", file}, {"slower", slower}});
      if (launcher.left_to_script != nullptr) {
        const std::vector<std::string> left = launcher.left_to_script(question);
        answer.text += left_to_script_text(left);
        launch.set("left_to_script", json_list(left));
      }
      answer.json.set("launch", std::move(launch));
      return;
    }
    throw InputError({.source = "--launch",
                      .value = std::string(launcher.name),
                      .expected = fmt::format("a framework that can run one of the plans: {}", why)});
  }
  static std::string left_to_script_text(const std::vector<std::string>& parts) {
    std::string text = "\nThe file has no settings for these parts of the plan; set them in your training script:\n";
    for (const std::string& part : parts) text += wrap_lines(fmt::format("  - {}\n", part), page_width(), 4);
    return text;
  }
  static Json json_list(const std::vector<std::string>& parts) {
    Json list = Json::array();
    for (const std::string& part : parts) list.push(part);
    return list;
  }
  static std::string launch_title(const TrainingLauncher& launcher, const std::string& why, double slower) {
    if (why.empty()) return fmt::format("\nThe first plan of the table as {}:\n", launcher.summary);
    return fmt::format("\n{}, so the file below starts a plan that is {:.1f}% slower ({}):\n", why, 100 * slower,
                       launcher.summary);
  }

  Options* options_ = nullptr;
  std::string launch_ = "none", launch_out_;
  TrainingFlags flags_;
  TrainingPoolFlags pools_;
  std::string goal_ = "speed", budget_;
  double deadline_days_ = 0;
  int64_t best_ = 10, most_tensor_ = 0, most_micro_batch_ = 16, threads_ = 0;
  std::string tier_ = "best";
};

}  // namespace

std::unique_ptr<Command> make_plan_train() {
  return std::make_unique<PlanTrain>();
}

}  // namespace foretoken
