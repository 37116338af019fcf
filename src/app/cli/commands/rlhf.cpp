#include <algorithm>

#include "app/cli/commands/list.h"
#include "app/cli/flags/kernel_source_flags.h"
#include "app/cli/flags/training_flags.h"
#include "base/error.h"
#include "model/weights.h"
#include "plan/rlhf_costs.h"
#include "plan/rlhf_memory.h"
#include "report/parts/model_notes.h"
#include "report/training/rlhf_report.h"
#include "serving/steps/composed_steps.h"

namespace foretoken {
namespace {

class RlhfCommand : public Command {
 public:
  void declare(Options& options) override {
    options_ = &options;
    training_.declare(options);
    options.heading("Loop");
    options.choice("--algorithm", algorithm_, rlhf_algorithm_names(),
                   "RL algorithm, which decides the models that run and the number of answers per prompt");
    options.integer("--prompts", prompts_, {.least = 1, .most = 100'000'000}, "Prompts per iteration");
    options.integer("--samples-per-prompt", samples_, {.least = 0, .most = 100'000},
                    "Answers generated per prompt; 0 = the algorithm's default");
    options.number("--prompt-len", prompt_tokens_, {.least = 1, .most = 1e7}, "Prompt length in tokens");
    options.number("--response-len", responses_.mean, {.least = 1, .most = 1e7}, "Mean answer length in tokens");
    options.number("--response-sigma", responses_.sigma, {.least = 0, .most = 3},
                   "Spread of answer lengths: standard deviation of the logarithm of the length");
    options.number("--max-response-len", responses_.most, {.least = 1, .most = 1e9}, "Maximum answer length in tokens");
    options.flag("--rule-rewards", rule_rewards_, "Score answers with rules instead of a reward model");
    options.heading("Placement");
    options.choice("--placement", placement_, {"colocated", "split"},
                   "colocated = all GPUs generate, then train; split = separate GPUs for generation and training");
    options.flag("--one-step-behind", one_step_behind_,
                 "With --placement split: generate with the previous weights while training the new ones");
    options.integer("--rollout-devices", rollout_devices_, {.least = 0, .most = 1'000'000},
                    "With --placement split: number of GPUs that generate; 0 = the fastest division");
    options.integer("--rollout-tensor-parallel-size", engine_devices_, {.least = 1, .most = 1024},
                    "Number of GPUs per generation engine");
    options.integer("--max-num-seqs", most_sequences_, {.least = 1, .most = 65'536},
                    "Maximum answers that an engine decodes at once");
    options.text("--rollout-stack", engine_stack_, "Software stack that generates; `foretoken stacks` lists them");
    options.number("--sync-bandwidth", sync_gb_per_s_, {.least = 0.001, .most = 1e6},
                   "Bandwidth for sending new weights to all engines, in GB/s");
    options.heading("Prediction");
    declare_kernel_source(options, tier_);
    options.show_first({"--cluster", "--devices", "--algorithm", "--prompts", "--samples-per-prompt", "--prompt-len",
                        "--response-len", "--placement", "--rollout-devices", "--rollout-tensor-parallel-size",
                        "--micro-batch-size", "--tensor-model-parallel-size", "--pipeline-model-parallel-size",
                        "--sharding"});
    options.footer(
        "The critic, reference and reward models have the size of the actor. The plan flags describe how the actor "
        "is\ntrained, on sequences as long as prompts and answers are; the cost per token is assumed to be the same on "
        "any\nnumber of GPUs.\nExample:\n  foretoken rlhf "
        "--model Qwen3-8B --cluster h100_ib_rail --devices 16 --sharding parameters\n      --global-batch-size 64 "
        "--algorithm grpo --prompts 64 --placement split --one-step-behind");
  }

  Answer run(const Library& library) const override {
    check_flags();
    TrainingRequest request = training_.request(library, TrainingFlags::Use::one_plan, {.has_own_lengths = true});
    TrainingQuestion& question = request.question;
    const Tier tier = tier_from_name(tier_).value();
    const std::unique_ptr<MachineModels> machine = machine_of(library, question.cluster, tier);
    RlhfReport report{.model = question.job.model.name,
                      .cluster = question.cluster.name,
                      .plan = loop(question),
                      .asked_sequences = most_sequences_};
    RlhfPlan& plan = report.plan;
    report.training_length = divisible_length(question.plan, plan.sequence_tokens());
    report.longest_length = divisible_length(question.plan, plan.longest_sequence());
    question.job.sequence_length = report.training_length;
    const TrainingEstimate estimate = [&] {
      try {
        return estimate_training(question, *machine);
      } catch (const InputError& error) {
        throw named_as_in_file(error, request);
      }
    }();
    const std::unique_ptr<StepTimes> steps = engine_steps(library, question, tier);
    limit_by_memory(question, report);
    const auto set_costs = [&](StepBound bound) {
      plan.engine = rollout_engine(*steps, rollout_request(plan), bound);
      plan.actor = model_cost(estimate.iteration, question.plan, question.job.sequence_length, bound);
      plan.critic = plan.reference = plan.reward = plan.actor;
    };
    const auto split = rollout_devices_ > 0 ? std::optional<int64_t>(rollout_devices_) : std::optional<int64_t>();
    set_costs(StepBound::low);
    const double low = rlhf_iteration(plan, split).seconds;
    set_costs(StepBound::high);
    const double high = rlhf_iteration(plan, split).seconds;
    set_costs(StepBound::value);
    report.iteration = rlhf_iteration(plan, split);
    report.seconds = {.value = report.iteration.seconds,
                      .low = std::min(low, report.iteration.seconds),
                      .high = std::max(high, report.iteration.seconds),
                      .kind = estimate.iteration.seconds.kind};
    if (is_split()) {
      report.trainers =
          trainer_memory(question, plan.algorithm, report.iteration.pools.back().devices, report.longest_length);
    }
    Answer answer{.text = model_warnings_text(question.job.model.notes) + rlhf_text(report),
                  .json = rlhf_json(report),
                  .failure = rlhf_failure(report)};
    for (const std::string& note : rlhf_notes(report)) request.notes.push_back(note);
    add_notes(answer, request.notes, *machine->machine().kernels);
    return answer;
  }

 private:
  bool is_split() const { return placement_ == "split"; }

  void check_flags() const {
    options_->refuse({}, {"A long run", "Accounting"}, "a single RLHF iteration");
    for (const char* flag : {"--seq-length", "--packed-length"}) {
      if (!options_->was_given(flag)) continue;
      throw InputError({.source = flag,
                        .value = "has no effect",
                        .expected = "the lengths of prompts and answers: --prompt-len and --response-len"});
    }
    if (is_split()) return;
    options_->refuse_without("--placement split", {"--rollout-devices"});
    if (one_step_behind_) options_->refuse_without("--placement split", {"--one-step-behind"});
  }

  RlhfPlan loop(const TrainingQuestion& question) const {
    RlhfPlan plan{.algorithm = *find_rlhf_algorithm(algorithm_),
                  .prompts = prompts_,
                  .prompt_tokens = prompt_tokens_,
                  .responses = responses_,
                  .engine = {.devices = engine_devices_, .most_sequences = most_sequences_},
                  .weight_bytes = 2 * static_cast<double>(count_parameters(question.job.model).total),
                  .sync_bytes_per_second = 1e9 * sync_gb_per_s_,
                  .placement = is_split() ? RlhfPlacement::split : RlhfPlacement::colocated,
                  .timing = one_step_behind_ ? RlhfTiming::one_step_behind : RlhfTiming::synchronous,
                  .devices = question.devices,
                  .trainer_unit = trainer_unit(question.plan)};
    if (samples_ > 0) plan.algorithm.samples_per_prompt = samples_;
    if (rule_rewards_) plan.algorithm.reward_model = false;
    if (question.cluster.node.device.host_bandwidth) {
      plan.host_bytes_per_second = question.cluster.node.device.host_bandwidth->value.value();
    }
    return plan;
  }

  // How many devices must train, and how many answers an engine can generate at once.
  void limit_by_memory(const TrainingQuestion& question, RlhfReport& report) const {
    RlhfPlan& plan = report.plan;
    const Device& device = question.cluster.node.device;
    if (is_split()) {
      const int64_t most = plan.devices - engine_devices_;
      plan.least_trainers = least_trainers(question, plan.algorithm, most, report.longest_length).value_or(0);
    } else {
      report.trainers = trainer_memory(question, plan.algorithm, plan.devices, report.longest_length);
      plan.switched_bytes_per_device = report.trainers.switched.value();
    }
    if (!training_capacity(device)) return;
    report.engine = engine_memory(question.job.model, device,
                                  {.stack = engine_stack_,
                                   .devices = engine_devices_,
                                   .most_sequences = most_sequences_,
                                   .longest_sequence = report.longest_length,
                                   .taken = is_split() ? Bytes{} : report.trainers.weights});
    if (report.engine->starts) {
      plan.engine.most_sequences = sequences_in_flight(*report.engine, plan, most_sequences_);
    }
  }

  std::unique_ptr<StepTimes> engine_steps(const Library& library, const TrainingQuestion& question, Tier tier) const {
    const ParallelPlan plan{.tensor = engine_devices_};
    const Device& device = question.cluster.node.device;
    try {
      check_engine_runs_on("stack", engine_stack_, device);
      return compose_steps({.model = question.job.model,
                            .plan = plan,
                            .models = library.device_models(device, plan, tier),
                            .stack = stacks_of(library).stack(engine_stack_)});
    } catch (const InputError& error) {  // the same fields are the trainer's, too
      InputProblem problem = error.problem();
      if (problem.field == "stack" || problem.field == "tensor_parallel_size") {
        problem.field = "rollout_" + problem.field;
      }
      throw InputError(std::move(problem));
    }
  }

  static RolloutRequest rollout_request(const RlhfPlan& plan) {
    return {.devices = plan.engine.devices,
            .most_sequences = plan.engine.most_sequences,
            .prompt_tokens = plan.prompt_tokens,
            .context_tokens = plan.context_tokens()};
  }

  const Options* options_ = nullptr;
  TrainingFlags training_;
  std::string algorithm_ = "grpo", placement_ = "colocated", engine_stack_ = "vllm", tier_ = "best";
  int64_t prompts_ = 512, samples_ = 0, rollout_devices_ = 0, engine_devices_ = 1, most_sequences_ = 256;
  double prompt_tokens_ = 512, sync_gb_per_s_ = 100;
  ResponseLengths responses_{.mean = 2000, .sigma = 0.7, .most = 8192};
  bool rule_rewards_ = false, one_step_behind_ = false;
};

}  // namespace

std::unique_ptr<Command> make_rlhf() {
  return std::make_unique<RlhfCommand>();
}

}  // namespace foretoken
