#include "app/cli/flags/replica_flags.h"

#include "app/cli/flags/kernel_source_flags.h"
#include "base/error.h"
#include "compose/stack.h"
#include "serving/engine/engine_setup.h"
#include "serving/engine/load_texts.h"
#include "serving/scheduling/router.h"

namespace foretoken {
namespace {

constexpr Range<int64_t> counts{.least = 1, .most = 100'000};

PowerModel board_power(const ReplicaFlags& flags, const Device& device, const Library& library) {
  const std::optional<PowerModel> board = library.power_model(device);
  if (!board) {
    throw InputError({.source = flags.sustained ? "--sustained" : "--energy",
                      .path = device.name,
                      .value = "no known power limit",
                      .expected = "a device whose file gives power_limit_w"});
  }
  return flags.power.capped(*board, device);
}

void check_has_operators(const ReplicaGroup& group, const std::string& flag) {
  if (group.has_operators) return;
  throw InputError({.source = flag,
                    .expected = "step times from foretoken's own kernels, without drafts or adapters: only these are "
                                "broken down by operator"});
}

}  // namespace

void ReplicaFlags::declare_model(Options& options, bool required) {
  model.declare_model(options, required);
  model.declare_parallelism(options);
  placement.declare(options);
}

void ReplicaFlags::declare_engine(Options& options) {
  engine.declare(options);
  scheduler.declare(options);
  speculation.declare(options);
  diffusion.declare(options);
  options.integer("--scheduler-recv-interval", receive_interval, {.least = 1, .most = 1'000'000},
                  "With sglang: number of decode steps between two checks for new requests");
  options.integer("--stream-interval", stream_interval, {.least = 1, .most = 1'000'000},
                  "Send an answer in pieces of this many tokens; the first token is always sent at once");
  options.flag(
      "--enable-two-batch-overlap", two_batch_overlap,
      "Two-batch overlap (sglang): split the batch in two and compute one half while the other half's tokens travel "
      "to experts on other ranks");
  lora.declare(options);
  options.heading("Step times");
  options.text("--stack", stack,
               "Software stack that runs the steps; `foretoken stacks` lists them [the engine's own]");
  declare_host_factor(options, host_factor);
  declare_tier(options, tier);
  options.text("--op-tables", op_tables,
               "Take step times from operators measured in an engine (a folder of LLMServingSim profiles)");
  options.text("--vidur-tables", vidur_tables, "Take step times from VIDUR's lookup tables");
  options.flag("--sustained", sustained,
               "Assume the GPUs are continuously busy, so that the power limit slows down compute-bound steps");
  power.declare(options);
}

void ReplicaFlags::declare_replicas(Options& options, Range<int64_t> allowed,
                                    const std::function<void()>& declare_more) {
  options.heading("Replicas");
  options.integer("--replicas", count, allowed, "Number of engines behind the router, each on its own GPUs");
  if (declare_more) declare_more();
  std::vector<std::string> routers = router_names();
  routers.insert(routers.begin(), "engine");
  options.choice(
      "--router", router, routers,
      "How the router picks a replica. engine = round_robin, or data_parallel over vLLM's data-parallel ranks");
}

std::string ReplicaFlags::router_name(int64_t ranks) const {
  return router == "engine" ? usual_router(engine.engine.engine, ranks) : router;
}

ReplicaFlags ReplicaFlags::with(const std::string& flag, const std::string& settings,
                                const std::function<void(Options&)>& declare_more) const {
  ReplicaFlags changed = *this;
  changed.count = 1;
  const auto declare = [&](Options& options) {
    changed.declare_model(options);
    changed.declare_engine(options);
    if (declare_more) {
      declare_more(options);
    } else {
      options.integer("--count", changed.count, counts, "Number of replicas of this kind");
    }
  };
  parse_settings(flag, settings, declare, [&](const Options& options) {
    refuse_unread_scheduler_flags(options, {changed.scheduler.name(changed.engine.engine.engine)});
    changed.lora.check_use(options);
  });
  if (!declare_more && changed.model.model != model.model) {
    throw InputError({.source = flag,
                      .value = printable(settings),
                      .expected = "the same model for every replica, since any replica may serve any request"});
  }
  return changed;
}

EngineSpec ReplicaFlags::spec(const Library& library, bool offline) const {
  const Device device = library.hardware().device(model.device);
  EngineSpec spec{.model = model.read_model(library),
                  .device = device,
                  .plan = model.parallel_plan(),
                  .placement = placement.spec(),
                  .replicas = count,
                  .stack = stack,
                  .scheduler = scheduler.scheduler,
                  .scheduling = scheduler.choices(),
                  .diffusion = diffusion.read(),
                  .steps = {.op_tables = op_tables, .vidur_tables = vidur_tables},
                  .receive_interval = receive_interval,
                  .stream_interval = stream_interval,
                  .two_batch_overlap = two_batch_overlap,
                  .offline = offline};
  spec.flags = engine.engine_flags(model.kv_dtype(spec.model));
  if (sustained || metered || power.given()) {
    spec.boards = BoardState::held_busy;
    spec.power = board_power(*this, device, library);
  }
  if (ffn.given()) {
    spec.ffn = ffn.read(spec.model, device, engine_ranks(spec.plan).plan, spec.placement, tier_from_name(tier).value(),
                        library);
  }
  if (speculation.given()) {
    spec.speculation = speculation.read(spec.model);
    spec.draft_model = speculation.draft_model(*spec.speculation, library);
  }
  if (lora.enabled) spec.lora = lora.read();
  return spec;
}

ReplicaGroup ReplicaFlags::build(const Library& library, bool offline, PromptTexts texts) const {
  // A user's own device is found by the file that was named.
  EngineBuilder builder({.device_models =
                             [&](const Device& /*device*/, const ParallelPlan& plan, const PlacementSpec& machine) {
                               return library.device_models(model.device, plan, tier_from_name(tier).value(), machine);
                             },
                         .stack = [&](std::string_view name) { return stacks_of(library).stack(std::string(name)); },
                         .deployment = library.deployment(),
                         .host_factor = host_factor});
  EngineSpec engine_spec = spec(library, offline);
  suit_texts(engine_spec, texts);
  return builder.build(engine_spec);
}

std::vector<TypicalStep> typical_steps_of(const ReplicaGroup& group, const StepMix& mix, const std::string& flag) {
  check_has_operators(group, flag);
  return typical_steps(group.composed(), mix, group.logits, group.config.options.lock_step_ranks);
}

OperatorAccount operator_account_of(const ReplicaGroup& group, const StepMix& mix, const std::string& flag) {
  check_has_operators(group, flag);
  return operator_account(group.composed(), mix, group.logits, group.config.options.lock_step_ranks);
}

}  // namespace foretoken
