#include <fmt/format.h>

#include "app/cli/commands/list.h"
#include "app/cli/flags/choice_names.h"
#include "app/cli/flags/kernel_source_flags.h"
#include "app/cli/flags/training_flags.h"
#include "app/cli/flags/training_pool_flags.h"
#include "app/cli/output/out_file.h"
#include "app/cli/output/page_trust.h"
#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "network/chakra/chakra.h"
#include "report/page/training_page.h"
#include "report/parts/model_notes.h"
#include "report/trace/training_trace.h"
#include "report/training/mixed_report.h"
#include "report/training/pipeline_chart.h"
#include "report/training/training_report.h"
#include "training/pools/mixed_pools.h"
#include "training/schedule/pipeline_chakra.h"

namespace foretoken {
namespace {

class TrainCommand : public Command {
 public:
  void declare(Options& options) override {
    options_ = &options;
    flags_.declare(options);
    options.heading("Several kinds of GPU");
    pools_.declare(options);
    options.choice(
        "--pool-axis", pool_axis_, names_of(pool_axis_names),
        "How work is divided among pools: data = replicas, with more micro-batches on faster GPUs; pipeline = "
        "stages, with more layers on faster GPUs (the first pool has the first stages)");
    options.heading("Prediction");
    declare_kernel_source(options, tier_);
    options.heading("Output");
    options.flag("--timeline", timeline_,
                 "Also draw what each pipeline stage does over time; with --json, list its tasks");
    options.text("--trace", trace_, "Write the pipeline as a Chrome trace (.json or .json.gz) for ui.perfetto.dev");
    options.text("--export-chakra", chakra_,
                 "Write the pipeline as Chakra execution traces, one per stage: PREFIX.STAGE.et");
    options.text(
        "--html", html_,
        "Write an HTML report: breakdowns of time, memory, energy and cost, the pipeline, roofline, and accuracy");
    options.show_first({"--model",
                        "--config",
                        "--seq-length",
                        "--precision",
                        "--lora-rank",
                        "--cluster",
                        "--device",
                        "--devices",
                        "--pool",
                        "--stack",
                        "--micro-batch-size",
                        "--global-batch-size",
                        "--tensor-model-parallel-size",
                        "--pipeline-model-parallel-size",
                        "--context-parallel-size",
                        "--expert-model-parallel-size",
                        "--sequence-parallel",
                        "--num-virtual-stages-per-pipeline-rank",
                        "--sharding",
                        "--use-distributed-optimizer",
                        "--recompute-granularity",
                        "--train-tokens",
                        "--gpu-price",
                        "--timeline",
                        "--html"});
    options.footer(
        "Examples:\n"
        "  foretoken train --model Llama-3.1-405B --cluster h100_roce_pods --devices 16384 -tp 8 -pp 16\n"
        "      --num-virtual-stages-per-pipeline-rank 8 --sequence-parallel --seq-length 8192\n"
        "      --global-batch-size 2048 --sharding gradients --train-tokens 15T\n"
        "  foretoken train --model Llama-3.1-8B --cluster h100_ib_rail --devices 8 --sharding parameters\n"
        "      --micro-batch-size 2 --global-batch-size 128 --stack llm-foundry\n"
        "  foretoken train --model Llama-3.1-8B --pool h100_sxm:8 --pool a100_sxm:8 --sharding parameters\n"
        "      --global-batch-size 128");
  }

  Answer run(const Library& library) const override {
    if (pools_.are_several()) return run_on_pools(library);
    options_->refuse_without("a second --pool", {"--pool-axis"});
    const TrainingRequest request = flags_.request(library, TrainingFlags::Use::one_plan, {.pool = pools_.only()});
    const TrainingQuestion& question = request.question;
    const std::unique_ptr<MachineModels> machine = machine_of(library, question.cluster, tier_from_name(tier_).value());
    const TrainingEstimate estimate = [&] {
      try {
        return estimate_training(question, *machine);
      } catch (const InputError& error) {
        throw named_as_in_file(error, request);
      }
    }();
    Answer answer{.text = model_warnings_text(question.job.model.notes) + training_text(question, estimate),
                  .json = training_json(question, estimate),
                  .failure = training_failure(question, estimate)};
    add_pipeline(question, estimate.iteration, answer);
    add_notes(answer, request.notes, *machine->machine().kernels);
    if (!html_.empty()) {
      // Enough of the pipeline to see its shape.
      constexpr int64_t most_drawn = 4000;
      const PipelineTimeline timeline =
          pipeline_events(question.plan.schedule, estimate.iteration.pipeline, most_drawn);
      StepEstimate micro_batch = micro_batch_step(question, *machine->machine().kernels);
      Trust trust = trust_in(question, library);
      trust.time = kernel_time_by_confidence(micro_batch);
      write_report(html_, training_page_html({.question = question,
                                              .estimate = estimate,
                                              .timeline = timeline,
                                              .micro_batch = std::move(micro_batch),
                                              .rent = rent_of(question, estimate.iteration, library),
                                              .trust = std::move(trust),
                                              .command = options_->line(),
                                              .more = answer.text}));
      answer.text += fmt::format("wrote {}\n", html_);
    }
    return answer;
  }

 private:
  Answer run_on_pools(const Library& library) const {
    options_->refuse({"--link", "--optimizer-cpu-offload", "--param-cpu-offload", "--activation-offload-fraction",
                      "--timeline", "--trace", "--export-chakra", "--html"},
                     {"A long run"}, "several kinds of GPU (--pool)");
    const PoolRequest request =
        pools_.request(library, flags_, TrainingFlags::Use::one_plan, tier_from_name(tier_).value());
    const std::vector<TrainingPool>& pools = request.pools;
    const MixedEstimate estimate = estimate_mixed(pools, named<PoolAxis>(pool_axis_names, pool_axis_));
    Answer answer{.text = model_warnings_text(pools.front().question.job.model.notes) + mixed_text(pools, estimate),
                  .json = mixed_json(pools, estimate),
                  .failure = mixed_failure(pools, estimate)};
    std::vector<const KernelPredictor*> kernels;
    for (const TrainingPool& pool : pools) kernels.push_back(pool.machine->machine().kernels);
    add_notes(answer, request.first.notes, kernels);
    return answer;
  }

  // The kernels of one micro-batch on one rank, all layers on one stage: what the page's roofline shows.
  static StepEstimate micro_batch_step(const TrainingQuestion& question, const KernelPredictor& kernels) {
    const TrainingJob& job = question.job;
    return estimate_step(with_recipe(job.model, job.recipe),
                         {.phase = StepPhase::train,
                          .batch = question.plan.micro_batch,
                          .input_len = job.sequence_length,
                          .routing = job.routing,
                          .lora = job.lora,
                          .recompute = question.plan.recompute == Recompute::full,
                          .optimizer = Optimizer::none},
                         without_needless_replicas(question.plan.parallel), kernels);
  }

  static Trust trust_in(const TrainingQuestion& question, const Library& library) {
    std::vector<std::string_view> layers = {"kernels", "training"};
    if (question.plan.devices() > 1) layers.insert(layers.begin() + 1, "collectives");
    Trust trust = page_trust(library, std::move(layers), std::span(&question.cluster.node.device, 1));
    trust.time_of = "the kernel time of one micro-batch";
    return trust;
  }

  static std::optional<RentedWork> rent_of(const TrainingQuestion& question, const IterationEstimate& iteration,
                                           const Library& library) {
    const Device& device = question.cluster.node.device;
    const MaybeFact<double> rent = library.rent_usd_per_hour(device);
    if (!rent) return std::nullopt;
    return RentedWork{.device = device.title,
                      .devices = question.plan.devices(),
                      .usd_per_device_hour = rent->value,
                      .price_source = rent->source,
                      .tokens_per_second = iteration.tokens_per_second,
                      .tokens = "tokens"};
  }

  void add_pipeline(const TrainingQuestion& question, const IterationEstimate& iteration, Answer& answer) const {
    if (!timeline_ && trace_.empty() && chakra_.empty()) return;
    const std::string& schedule = question.plan.schedule;
    const PipelineTimeline timeline = pipeline_events(schedule, iteration.pipeline);
    std::string& text = answer.text;
    if (timeline_) {
      text += "\n" + pipeline_chart(timeline);
      answer.json.set("timeline", timeline_json(timeline));
    }
    if (!trace_.empty()) {
      write_file(trace_, pipeline_trace(schedule, timeline).dump(0) + "\n");
      text += fmt::format("\nwrote {}: open it at ui.perfetto.dev or chrome://tracing\n", trace_);
    }
    if (!chakra_.empty()) {
      const double bytes = pipeline_message_bytes(question.job, question.plan, question.stack);
      const std::vector<ChakraTrace> traces =
          pipeline_chakra(schedule, iteration.pipeline, timeline, {.forward = bytes, .backward = bytes});
      for (size_t stage = 0; stage < traces.size(); ++stage) {
        write_file(chakra_path(chakra_, static_cast<int64_t>(stage)), chakra_text(traces[stage]));
      }
      text += fmt::format("\nwrote {} and so on: one Chakra trace per stage, {} in all\n",
                          chakra_path(chakra_, 0).string(), traces.size());
    }
    if (timeline.micro_batches < question.plan.micro_batches()) {
      text += fmt::format("note: the timeline shows {} of {} micro-batches\n", timeline.micro_batches,
                          question.plan.micro_batches());
    }
  }

  const Options* options_ = nullptr;
  TrainingFlags flags_;
  TrainingPoolFlags pools_;
  std::string pool_axis_ = "data";
  bool timeline_ = false;
  std::string trace_, chakra_, html_;
  std::string tier_ = "best";
};

}  // namespace

std::unique_ptr<Command> make_train() {
  return std::make_unique<TrainCommand>();
}

}  // namespace foretoken
