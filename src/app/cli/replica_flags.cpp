#include "app/cli/replica_flags.h"

#include "app/cli/kernel_source_flags.h"
#include "base/error.h"
#include "compose/stack.h"
#include "serving/engine/engine_setup.h"
#include "serving/scheduling/router.h"

namespace foretoken {
namespace {

constexpr Range<int64_t> counts{.least = 1, .most = 100'000};

PowerModel board_power(const ReplicaFlags& flags, const Device& device, const Library& library) {
  const std::optional<PowerModel> board = library.power_model(device);
  if (!board) {
    throw InputError({.source = flags.sustained ? "--sustained" : "--energy",
                      .path = device.name,
                      .value = "no power limit known",
                      .expected = "a device whose file gives power_limit_w"});
  }
  return flags.power.capped(*board, device);
}

void check_has_operators(const ReplicaGroup& group, const std::string& flag) {
  if (group.has_operators) return;
  throw InputError(
      {.source = flag, .expected = "steps of our own kernels without drafts or adapters: others have no operators"});
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
                  "Decode steps from one reading of new requests to the next (sglang)");
  options.flag(
      "--enable-two-batch-overlap", two_batch_overlap,
      "Two-batch overlap (sglang): split the batch in two and compute one half while the other half's tokens travel "
      "to experts on other ranks");
  lora.declare(options);
  options.heading("Step times");
  options.text("--stack", stack, "Software that runs the steps (foretoken stacks); default: the engine's");
  declare_tier(options, tier);
  options.text("--op-tables", op_tables,
               "Take step times from operators measured in an engine (LLMServingSim's profiles)");
  options.text("--vidur-tables", vidur_tables, "Take step times from VIDUR's look-up tables");
  options.flag("--sustained", sustained,
               "Steps of a board that is always busy: the power limit lengthens those with prompts");
  power.declare(options);
}

void ReplicaFlags::declare_replicas(Options& options, Range<int64_t> allowed,
                                    const std::function<void()>& declare_more) {
  options.heading("Replicas");
  options.integer("--replicas", count, allowed, "Engines behind the router, each with its own devices");
  if (declare_more) declare_more();
  std::vector<std::string> routers = router_names();
  routers.insert(routers.begin(), "engine");
  options.choice("--router", router, routers,
                 "Which replica a request goes to; engine = round_robin, data_parallel over vLLM's ranks");
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
      options.integer("--count", changed.count, counts, "Replicas of this kind");
    }
  };
  parse_settings(flag, settings, declare, [&](const Options& options) {
    refuse_unread_scheduler_flags(options, {changed.scheduler.name(changed.engine.engine.engine)});
    changed.lora.check_use(options);
  });
  if (!declare_more && changed.model.model != model.model) {
    throw InputError({.source = flag,
                      .value = printable(settings),
                      .expected = "replicas of one model: all answer the same requests"});
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
                  .two_batch_overlap = two_batch_overlap,
                  .offline = offline};
  spec.flags = engine.engine_flags(model.kv_dtype(spec.model));
  if (sustained || metered || power.given()) {
    spec.boards = BoardState::held_busy;
    spec.power = board_power(*this, device, library);
  }
  if (ffn.given()) {
    spec.ffn = ffn.read(spec.model, device, engine_ranks(spec.plan).plan, tier_from_name(tier).value(), library);
  }
  if (speculation.given()) {
    spec.speculation = speculation.read(spec.model);
    spec.draft_model = speculation.draft_model(*spec.speculation, library);
  }
  if (lora.enabled) spec.lora = lora.read();
  return spec;
}

ReplicaGroup ReplicaFlags::build(const Library& library, bool offline) const {
  // A user's own device is found by the file that was named.
  EngineBuilder builder({.device_models =
                             [&](const Device& /*device*/, const ParallelPlan& plan, const PlacementSpec& machine) {
                               return library.device_models(model.device, plan, tier_from_name(tier).value(), machine);
                             },
                         .stack = [&](std::string_view name) { return stacks_of(library).stack(std::string(name)); },
                         .deployment = library.deployment()});
  return builder.build(spec(library, offline));
}

std::vector<TypicalStep> typical_steps_of(const ReplicaGroup& group, const StepMix& mix, const std::string& flag) {
  check_has_operators(group, flag);
  return typical_steps(group.composed(), mix, group.logits);
}

OperatorAccount operator_account_of(const ReplicaGroup& group, const StepMix& mix, const std::string& flag) {
  check_has_operators(group, flag);
  return operator_account(group.composed(), mix, group.logits);
}

}  // namespace foretoken
