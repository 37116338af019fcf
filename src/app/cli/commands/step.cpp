#include <algorithm>

#include <fmt/format.h>

#include "app/cli/commands/list.h"
#include "app/cli/flags/engine_flags.h"
#include "app/cli/flags/kernel_source_flags.h"
#include "app/cli/flags/step_flags.h"
#include "app/cli/output/out_file.h"
#include "app/cli/output/page_trust.h"
#include "base/counted.h"
#include "base/error.h"
#include "base/file.h"
#include "compose/engine_release.h"
#include "compose/serving_engine.h"
#include "compose/serving_memory.h"
#include "compose/step_chakra.h"
#include "compose/step_spec.h"
#include "compose/sustained_step.h"
#include "report/page/step_page.h"
#include "report/step/step_report.h"
#include "report/trace/chrome_trace.h"
#include "report/training/memory_report.h"
#include "serving/engine/engine_setup.h"
#include "training/iteration.h"
#include "training/training_machine.h"

namespace foretoken {
namespace {

class StepCommand : public Command {
 public:
  void declare(Options& options) override {
    options_ = &options;
    flags_.declare(options);
    options.heading("Execution");
    options.text("--stack", stack_,
                 "Software stack that runs the step: a built-in name (`foretoken stacks` lists them) or a stack file. "
                 "With --phase train it may be a training stack: forward and backward pass of one micro-batch, as in "
                 "`foretoken train` [that of --engine for inference, fused for training]");
    options.choice("--dispatch", dispatch_, {"stack", "fused", "graph", "piecewise", "eager"},
                   "How kernels are launched. stack = as the software stack does in this phase");
    declare_host_factor(options, host_factor_);
    options.flag("--enable-two-batch-overlap", two_batch_overlap_,
                 "Two-batch overlap (SGLang): split the batch in two and compute one half while the other half's "
                 "tokens travel to experts on other ranks");
    options.heading("Prediction");
    declare_kernel_source(options, tier_);
    declare_deployment(options);
    memory_.declare(options);
    options.flag("--sustained", sustained_,
                 "Also show the step repeated without pause: power, clock, energy and the time at the power limit");
    options.heading("Output");
    options.flag("--by-time", by_time_, "List the slowest operators first instead of in order of execution");
    options.text("--trace", trace_, "Also write the step as a Chrome trace (.json or .json.gz) for ui.perfetto.dev");
    options.text(
        "--export-chakra", chakra_,
        "Also write the step as Chakra execution traces, PREFIX.RANK.et, for `foretoken replay` and other tools");
    options.flag("--roofline", roofline_, "Also draw the slowest operators on the device's roofline");
    options.text("--html", html_,
                 "Write an HTML report: breakdowns of time, memory, energy and cost, roofline, and accuracy");
    options.show_first({"--quantization", "--kv-cache-dtype", "--tensor-parallel-size", "--pipeline-parallel-size",
                        "--data-parallel-size", "--enable-expert-parallel", "--expert-parallel-size", "--cluster",
                        "--phase", "--batch", "--input-len", "--context-len", "--stack", "--engine", "--memory",
                        "--by-time", "--roofline", "--html"});
    options.footer(
        "Examples:\n"
        "  foretoken step --model Llama-3.1-8B --device h100_sxm --phase prefill --input-len 2048\n"
        "  foretoken step --model Llama-3.1-70B --device h100_sxm --batch 64 --context-len 2048 -tp 8\n"
        "  foretoken step --model DeepSeek-V3 --device h200_sxm --batch 128 --context-len 4k -tp 8 -ep 8\n"
        "  foretoken step --model Llama-3.1-8B --device h100_sxm --phase train --input-len 4096 -tp 2\n"
        "      --stack megatron-bridge-26.08");
  }

  Answer run(const Library& library) const override {
    const bool is_training =
        flags_.step_request().phase == StepPhase::train && is_training_stack(training_stacks_of(library), stack_);
    if (is_training) refuse_beside_training();
    if (memory_.engine.enforce_eager && dispatch_ != "stack" && dispatch_ != "eager")
      options_->refuse({"--dispatch"}, {}, "--enforce-eager, which launches every kernel by itself");
    if (two_batch_overlap_) {
      options_->refuse({"--trace", "--export-chakra"}, {},
                       "--enable-two-batch-overlap: traces show kernels one after the other");
    }
    const StepPrediction prediction = is_training ? predict_training_step(library) : predict_step(library, spec());
    const auto& [model, models, stack, step] = prediction;
    flags_.check_experts(model);
    const KernelPredictor& predictor = models.kernels;
    if (memory_.wanted) check_engine_runs_on("engine", memory_.engine.engine, predictor.device());
    DeviceNotes notes;
    if (memory_.wanted) {
      notes.add_engine(memory_.engine.engine, predictor.device());
    } else if (const std::string note = unfitted_release_note(memory_.engine.engine);
               !note.empty() && !is_training && stack_.empty()) {
      notes.add_sentence(note);
    }
    for (const std::string& note : predictor.notes()) notes.add_sentence(note);
    if (models.collectives && !is_training) notes.add_network(*models.collectives);
    if (step.request.phase != StepPhase::train && !any_engine_runs_on(predictor.device())) {
      notes.add_sentence(
          fmt::format("No serving engine that foretoken simulates runs on {}: this step assumes the {} stack.",
                      predictor.device().title, stack.name));
    }
    if (step.request.phase == StepPhase::decode && !options_->was_given("--context-len")) {
      notes.add_sentence(
          "The KV cache of each sequence is empty, because {context_len} was not given. Set it to the tokens that a "
          "sequence holds, for example 1024.");
    }
    add_unread_note(notes, step.request.phase);
    add_graph_note(notes, step, stack);
    add_balance_note(notes, step);
    std::string text = step_text(step, model, predictor.device(), by_time_, notes);
    if (roofline_) text += "\n" + step_roofline(step, model, predictor.device());
    if (!trace_.empty()) {
      write_file(trace_, chrome_trace(step, stack, host_factor_).dump(0) + "\n");
      text += fmt::format("\nwrote {}: open it at ui.perfetto.dev or chrome://tracing\n", trace_);
    }
    if (!chakra_.empty()) text += export_chakra(step, stack);
    Json json = step_json(step, model, predictor.device(), notes);
    if (sustained_) {
      const std::optional<PowerModel> power = library.power_model(predictor.device());
      if (!power) {
        throw InputError({.source = "--sustained",
                          .path = predictor.device().name,
                          .value = "no known power limit",
                          .expected = "a device whose file gives power_limit_w"});
      }
      const SustainedStep held = sustained_step(step, *power, predictor.device());
      text += "\n" + sustained_step_text(held, step);
      json.set("sustained", sustained_step_json(held));
    }
    if (memory_.wanted) add_memory(text, json, step.request, model, predictor.device());
    if (!html_.empty()) {
      write_page(step, model, predictor.device(), text, library, !is_training);
      text += fmt::format("wrote {}\n", html_);
    }
    return {.text = std::move(text), .json = std::move(json), .failure = step_failure(step, model, predictor.device())};
  }

 private:
  static bool any_engine_runs_on(const Device& device) {
    const auto kinds = engine_kinds();
    return std::any_of(kinds.begin(), kinds.end(), [&](const EngineKind& kind) { return runs_on(kind, device); });
  }

  // Of the engine that a flag or a launch line names.
  std::string stack_or_usual() const {
    const bool trains = flags_.step_request().phase == StepPhase::train;
    if (!stack_.empty() || trains || memory_.engine.engine == EngineFlags().engine) return stack_;
    return usual_stack(memory_.engine.engine);
  }

  // A stack that somebody names lists the sizes it captures, unless a flag gives the largest.
  bool graphs_of_engine() const {
    const bool is_usual = stack_.empty() || stack_ == usual_stack(memory_.engine.engine);
    return is_usual || memory_.engine.max_cudagraph_capture_size > 0;
  }

  // Not refused: questions that differ in their phase alone are compared.
  void add_unread_note(DeviceNotes& notes, StepPhase phase) const {
    struct Unread {
      const char* flag;
      const char* name;
      std::vector<StepPhase> read_by;
    };
    static const Unread flags[] = {
        {"--input-len", "{input_len}", {StepPhase::prefill, StepPhase::mixed, StepPhase::train}},
        {"--context-len", "{context_len}", {StepPhase::prefill, StepPhase::decode, StepPhase::mixed}},
        {"--prompts", "{prompts}", {StepPhase::mixed}},
        {"--recompute", "{recompute}", {StepPhase::train}}};
    for (const Unread& one : flags) {
      if (!options_->was_given(one.flag) || std::count(one.read_by.begin(), one.read_by.end(), phase) > 0) continue;
      std::vector<std::string_view> phases;
      for (const StepPhase other : one.read_by) phases.push_back(step_phase_name(other));
      notes.add_sentence(fmt::format("{} has no effect on a {} step: it belongs to {{phase}} {}.", one.name,
                                     step_phase_name(phase), fmt::join(phases, ", ")));
    }
  }

  void add_graph_note(DeviceNotes& notes, const StepEstimate& step, const Stack& stack) const {
    const int64_t batch = step.request.batch;
    const bool is_too_large = step.request.phase == StepPhase::decode && dispatch_ == "stack" &&
                              !memory_.engine.enforce_eager && !stack.graph_sizes.empty() &&
                              step.dispatch == Dispatch::eager && batch > stack.graph_sizes.back();
    if (!is_too_large) return;
    notes.add_sentence(fmt::format(
        "The batch of {0} is larger than the largest captured CUDA graph ({1}), so the host launches every "
        "kernel by itself. To capture this batch, set {{max_cudagraph_capture_size}} (SGLang: --cuda-graph-max-bs) to "
        "{0} or more.",
        batch, counted(stack.graph_sizes.back(), "sequence")));
  }

  void add_balance_note(DeviceNotes& notes, const StepEstimate& step) const {
    if (options_->was_given("--routing") || options_->was_given("--expert-popularity")) return;
    for (const StageEstimate& stage : step.stages) {
      for (const Operator& call : stage.calls) {
        const auto* experts = std::get_if<MoeShape>(&call.shape);
        if (experts == nullptr) continue;
        if (experts->routing == Routing::measured && experts->power_law_exponent == 0) continue;  // copies of experts
        notes.add_sentence(
            fmt::format("{} To change this, set {{routing}} or {{expert_popularity}}.", balance_sentence(*experts)));
        return;
      }
    }
  }

  static std::string balance_sentence(const MoeShape& experts) {
    switch (experts.routing) {
      case Routing::power_law:
      case Routing::measured:
        return fmt::format(
            "Experts are assumed to be unevenly busy: their shares of the tokens follow a power law "
            "(exponent {:g}).",
            experts.power_law_exponent);
      case Routing::balanced:
        return "Experts are assumed to be perfectly balanced: each one gets the same number of tokens.";
      default:
        return experts.received ? "Experts are assumed to be equally popular, as with expert load balancing (EPLB), "
                                  "because each token is sent only to the ranks of its experts."
                                : "Experts are assumed to be equally popular: each token picks its experts at random.";
    }
  }

  void refuse_beside_training() const {
    options_->refuse({"--dispatch", "--enable-two-batch-overlap"}, {}, "a training stack, which models its own host");
    options_->refuse({"--sustained"}, {}, "a training stack, whose times already include the power limit");
  }

  StepSpec spec() const {
    return {.model = flags_.model_spec(),
            .device = flags_.device,
            .request = flags_.step_request(),
            .plan = flags_.parallel_plan(),
            .stack = stack_or_usual(),
            .dispatch = dispatch_from_name(memory_.engine.enforce_eager ? "eager" : dispatch_),
            .engine = graphs_of_engine() || memory_.engine.enforce_eager ? std::optional(memory_.engine) : std::nullopt,
            .host_factor = host_factor_,
            .two_batch_overlap = two_batch_overlap_,
            .tier = tier_from_name(tier_).value(),
            .placement = flags_.placement.spec()};
  }

  StepPrediction predict_training_step(const Library& library) const {
    Model model = flags_.read_model(library);
    const ParallelPlan plan = flags_.parallel_plan();
    DeviceModels models =
        library.device_models(flags_.device, plan, tier_from_name(tier_).value(), flags_.placement.spec());
    StepEstimate step = training_step(model, flags_.step_request(), plan, models, library);
    return {.model = std::move(model), .models = std::move(models), .stack = {.name = stack_}, .step = std::move(step)};
  }

  // What foretoken train adds up, for one micro-batch on the devices of one node.
  StepEstimate training_step(const Model& model, const StepRequest& request, const ParallelPlan& parallel,
                             const DeviceModels& models, const Library& library) const {
    const auto recipes = training_recipes();
    const auto recipe = std::find_if(recipes.begin(), recipes.end(),
                                     [&](const TrainingRecipe& one) { return one.scheme == model.scheme; });
    if (recipe == recipes.end()) {
      throw InputError({.source = "--quantization",
                        .value = std::string(facts(model.scheme).name),
                        .expected = "a format that training stacks support: bf16, fp16, fp8 or nvfp4"});
    }
    TrainingJob job{.model = model, .sequence_length = request.input_len, .recipe = *recipe, .lora = request.lora};
    if (options_->was_given("--routing")) job.routing = request.routing.value_or(Routing::random);
    const TrainingPlan plan{.parallel = parallel,
                            .micro_batch = request.batch,
                            .global_batch = request.batch * parallel.data,
                            .recompute = request.recompute ? Recompute::full : Recompute::none};
    const Device& device = models.kernels.device();
    Node node =
        library.node_of(device, flags_.placement.spec()).value_or(Node{.name = device.name, .title = device.title});
    node.device = device;
    check_plan(model, job.sequence_length, plan, node.device_count);
    const CommunicationPredictor* measured = models.collectives ? models.collectives->measured() : nullptr;
    const MachineModels machine(cluster_of(node), models.kernels,
                                measured != nullptr ? std::optional<CommunicationPredictor>(*measured) : std::nullopt,
                                library.power_model(device));
    return IterationModel(std::move(job), on_host(training_stacks_of(library).stack(stack_), host_factor_),
                          machine.machine())
        .micro_batch_step(plan);
  }

  void write_page(const StepEstimate& step, const Model& model, const Device& device, const std::string& text,
                  const Library& library, bool at_burst_speed) const {
    std::vector<std::string_view> layers = {"kernels", "steps"};
    if (rank_count(step.plan) > 1) layers.insert(layers.begin() + 1, "collectives");
    StepPage page{.step = step,
                  .model = model,
                  .device = device,
                  .sustained = std::nullopt,
                  .rent = std::nullopt,
                  .trust = page_trust(library, std::move(layers), std::span(&device, 1)),
                  .command = options_->line(),
                  .more = text};
    page.trust.time = time_by_confidence(step);
    page.trust.time_of = "the time of kernels and collectives";
    const std::optional<PowerModel> power = library.power_model(device);
    if (power && at_burst_speed) {
      page.sustained = sustained_step(step, *power, device);
    }
    if (const MaybeFact<double> rent = library.rent_usd_per_hour(device)) {
      page.rent = RentedWork{.device = device.title,
                             .devices = static_cast<int64_t>(step.devices),
                             .usd_per_device_hour = rent->value,
                             .price_source = rent->source,
                             .tokens_per_second = step.tokens / step.seconds.value,
                             .tokens = "tokens of these steps"};
    }
    write_report(html_, step_page_html(page));
  }

  std::string export_chakra(const StepEstimate& step, const Stack& stack) const {
    constexpr int64_t most_ranks = 65536;
    const int64_t ranks = rank_count(step.plan);
    if (ranks > most_ranks) {
      throw InputError({.source = "--export-chakra",
                        .value = fmt::format("{} ranks", ranks),
                        .expected = fmt::format("at most {}, because each rank gets a file", most_ranks)});
    }
    for (int64_t rank = 0; rank < ranks; ++rank) {
      write_file(chakra_path(chakra_, rank), chakra_text(step_chakra(step, stack, host_factor_, rank)));
    }
    return fmt::format("\nwrote {} and so on: one Chakra trace per rank, {} in all\n", chakra_path(chakra_, 0).string(),
                       ranks);
  }

  void add_memory(std::string& text, Json& json, const StepRequest& request, const Model& model,
                  const Device& device) const {
    if (request.phase == StepPhase::train) {
      throw InputError(
          {.source = "--memory", .expected = "a prefill, decode or mixed step: serving engines do not train"});
    }
    const ServingMemory memory =
        serving_memory(model, device, flags_.parallel_plan(), memory_.engine_flags(request.kv_dtype));
    const int64_t fresh = request.phase == StepPhase::decode ? 1 : request.input_len;
    const CacheDemand demand{
        .sequences = request.batch, .tokens_each = request.context_len + fresh, .step_tokens = fresh};
    text += "\n" + serving_memory_text(memory, demand);
    json.set("serving_memory", serving_memory_json(memory, demand));
  }

  const Options* options_ = nullptr;
  StepFlags flags_;
  MemoryFlags memory_;
  std::string tier_ = "best";
  std::string stack_;
  bool sustained_ = false;
  std::string dispatch_ = "stack";
  double host_factor_ = 1;
  bool two_batch_overlap_ = false;
  std::string trace_, chakra_, html_;
  bool by_time_ = false;
  bool roofline_ = false;
};

}  // namespace

std::unique_ptr<Command> make_step() {
  return std::make_unique<StepCommand>();
}

}  // namespace foretoken
