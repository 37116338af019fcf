#include <fmt/format.h>

#include "app/cli/commands/list.h"
#include "app/cli/engine_flags.h"
#include "app/cli/page_trust.h"
#include "app/cli/step_flags.h"
#include "app/cli/tier_flag.h"
#include "base/error.h"
#include "base/file.h"
#include "compose/serving_engine.h"
#include "compose/serving_memory.h"
#include "compose/step_chakra.h"
#include "compose/step_spec.h"
#include "compose/sustained_step.h"
#include "report/chrome_trace.h"
#include "report/memory_report.h"
#include "report/page/step_page.h"
#include "report/step_report.h"

namespace foretoken {
namespace {

class StepCommand : public Command {
 public:
  void declare(Options& options) override {
    options_ = &options;
    flags_.declare(options);
    options.heading("Execution");
    options.text("--stack", stack_,
                 "Software that runs the step: a name (see foretoken stacks) or a stack file; default: vllm "
                 "for inference, fused for training");
    options.choice("--dispatch", dispatch_, {"stack", "fused", "graph", "piecewise", "eager"},
                   "How kernels reach the device; stack: as the stack does in this phase");
    options.number("--host-factor", host_factor_, {.least = 0.01, .most = 100},
                   "Times the stack's host times: 2 = a host half as fast");
    options.heading("Prediction");
    options.choice("--tier", tier_, tier_names(), tier_help);
    memory_.declare(options);
    options.flag("--sustained", sustained_,
                 "Also the step repeated without pause: board power, clock, energy and the power-limited time");
    options.heading("Output");
    options.flag("--by-time", by_time_, "Slowest operator first, instead of in order of use");
    options.text("--trace", trace_, "Also write the step as a Chrome trace (.json, .json.gz), for ui.perfetto.dev");
    options.text("--export-chakra", chakra_,
                 "Also write the step as Chakra execution traces, PREFIX.RANK.et, for foretoken replay and others");
    options.flag("--roofline", roofline_, "Also draw the slowest operators on the device's roofline");
    options.text(
        "--html", html_,
        "Write one page: the answer, where time, memory, energy and money go, the roofline, how far to trust it");
    options.footer(
        "Examples:\n"
        "  foretoken step --model Llama-3.1-8B --device h100_sxm --phase prefill --input-len 2048\n"
        "  foretoken step --model Llama-3.1-70B --device h100_sxm --batch 64 --context-len 2048 -tp 8\n"
        "  foretoken step --model DeepSeek-V3 --device h200_sxm --batch 128 --context-len 4k -tp 8 -ep 8");
  }

  Answer run(const Library& library) const override {
    const StepPrediction prediction = predict_step(library, {.model = flags_.model_spec(),
                                                             .device = flags_.device,
                                                             .request = flags_.step_request(),
                                                             .plan = flags_.parallel_plan(),
                                                             .stack = stack_,
                                                             .dispatch = dispatch_from_name(dispatch_),
                                                             .host_factor = host_factor_,
                                                             .tier = tier_from_name(tier_).value()});
    const auto& [model, models, stack, step] = prediction;
    const KernelPredictor& predictor = models.kernels;
    const ParallelPlan& plan = step.plan;
    if (memory_.wanted) check_engine_runs_on("--engine", memory_.engine.engine, predictor.device());
    DeviceNotes notes;
    notes.add_ranks(plan, library.hardware().node_with(predictor.device()));
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
                          .value = "no power limit known",
                          .expected = "a device whose file gives power_limit_w"});
      }
      const SustainedStep held = sustained_step(step, *power, predictor.device());
      text += "\n" + sustained_step_text(held, step);
      json.set("sustained", sustained_step_json(held));
    }
    if (memory_.wanted) add_memory(text, json, step.request, model, predictor.device());
    if (!html_.empty()) {
      write_page(step, model, predictor.device(), text, library);
      text += fmt::format("wrote {}\n", html_);
    }
    return {.text = std::move(text), .json = std::move(json), .failure = step_failure(step, model, predictor.device())};
  }

 private:
  void write_page(const StepEstimate& step, const Model& model, const Device& device, const std::string& text,
                  const Library& library) const {
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
    if (const std::optional<PowerModel> power = library.power_model(device)) {
      page.sustained = sustained_step(step, *power, device);
    }
    if (const MaybeFact<double> rent = library.rent_usd_per_hour(device)) {
      page.rent = RentedWork{.device = device.title,
                             .devices = static_cast<int64_t>(step.devices),
                             .usd_per_device_hour = rent->value,
                             .price_source = rent->source,
                             .tokens_per_second = step.tokens / step.seconds.value,
                             .tokens = "tokens of such steps"};
    }
    write_file(html_, step_page_html(page));
  }

  std::string export_chakra(const StepEstimate& step, const Stack& stack) const {
    constexpr int64_t most_ranks = 65536;
    const int64_t ranks = rank_count(step.plan);
    if (ranks > most_ranks) {
      throw InputError({.source = "--export-chakra",
                        .value = fmt::format("{} ranks", ranks),
                        .expected = fmt::format("at most {}, one file each", most_ranks)});
    }
    for (int64_t rank = 0; rank < ranks; ++rank) {
      write_file(chakra_path(chakra_, rank), chakra_text(step_chakra(step, stack, host_factor_, rank)));
    }
    return fmt::format("\nwrote {} and so on, {} in all: one Chakra trace for each rank\n",
                       chakra_path(chakra_, 0).string(), ranks);
  }

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

  const Options* options_ = nullptr;
  StepFlags flags_;
  MemoryFlags memory_;
  std::string tier_ = "best";
  std::string stack_;
  bool sustained_ = false;
  std::string dispatch_ = "stack";
  double host_factor_ = 1;
  std::string trace_, chakra_, html_;
  bool by_time_ = false;
  bool roofline_ = false;
};

}  // namespace

std::unique_ptr<Command> make_step() {
  return std::make_unique<StepCommand>();
}

}  // namespace foretoken
