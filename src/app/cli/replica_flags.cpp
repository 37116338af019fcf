#include "app/cli/replica_flags.h"

#include <variant>

#include "app/cli/tier_flag.h"
#include "base/error.h"
#include "compose/serving_engine.h"
#include "serving/engine_setup.h"
#include "serving/router.h"
#include "serving/steps/composed_steps.h"
#include "serving/steps/op_tables.h"
#include "serving/steps/sustained_steps.h"
#include "serving/steps/vidur_tables.h"

namespace foretoken {
namespace {

constexpr Range<int64_t> counts{.least = 1, .most = 100'000};

bool shares_keys(const Model& model) {
  for (const Layer& layer : model.layers) {
    if (const auto* attention = std::get_if<Attention>(&layer.mixer)) return attention->kv_heads < attention->heads;
  }
  return false;
}

std::unique_ptr<StepTimes> step_times(const ReplicaFlags& flags, const ComposedStepsConfig& composed) {
  if (!flags.op_tables.empty() && !flags.vidur_tables.empty()) {
    throw InputError({.source = "--op-tables", .value = "and --vidur-tables", .expected = "one of them"});
  }
  if (!flags.op_tables.empty()) {
    return read_op_tables(flags.op_tables, op_table_options(composed));
  }
  if (!flags.vidur_tables.empty()) {
    return read_vidur_tables(flags.vidur_tables, {.layers = static_cast<int64_t>(composed.model.layers.size()),
                                                  .grouped_query = shares_keys(composed.model)});
  }
  return compose_steps(composed);
}

std::unique_ptr<StepTimes> split_steps(const ReplicaFlags& flags, const ComposedStepsConfig& composed,
                                       const FfnPool& pool) {
  if (!flags.op_tables.empty() || !flags.vidur_tables.empty() || flags.sustained || flags.metered ||
      flags.power.given() || flags.speculation.given()) {
    throw InputError({.source = "--ffn-pool",
                      .expected = "steps of our own kernels without --sustained, --energy, caps and "
                                  "--speculative-config"});
  }
  return attention_ffn_steps(composed, pool);
}

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

}  // namespace

void ReplicaFlags::declare_model(Options& options) {
  model.declare_model(options);
  model.declare_parallelism(options);
}

void ReplicaFlags::declare_engine(Options& options) {
  engine.declare(options);
  scheduler.declare(options);
  speculation.declare(options);
  diffusion.declare(options);
  options.integer("--scheduler-recv-interval", receive_interval, {.least = 1, .most = 1'000'000},
                  "Decode steps from one reading of new requests to the next (sglang)");
  options.flag("--enable-two-batch-overlap", two_batch_overlap,
               "Experts on other ranks: cut steps in two, and compute one half while the other travels (sglang)");
  lora.declare(options);
  options.heading("Step times");
  options.text("--stack", stack, "Software that runs the steps (foretoken stacks); default: the engine's");
  options.choice("--tier", tier, tier_names(), tier_help);
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

ReplicaGroup ReplicaFlags::build(const Library& library, bool offline) const {
  const Model parsed = model.read_model(library);
  const auto [plan, ranks] = engine_ranks(model.parallel_plan());
  DeviceModels models = library.device_models(model.device, plan, tier_from_name(tier).value());
  check_engine_runs_on("--engine", engine.engine.engine, models.kernels.device());
  if (!stack.empty()) check_engine_runs_on("--stack", stack, models.kernels.device());
  const bool held_busy = sustained || metered || power.given();
  if (held_busy) models.power = board_power(*this, models.kernels.device(), library);
  const DType kv_dtype = model.kv_dtype(parsed);
  std::optional<FfnPool> pool;
  if (ffn.given()) pool = ffn.read(parsed, models.kernels.device(), plan, tier_from_name(tier).value(), library);
  const std::string stack_name = stack.empty() ? std::string(engine_family(engine.engine.engine)) : stack;
  std::optional<SpeculativeConfig> speculative;
  if (speculation.given()) speculative = speculation.read(parsed);
  if (speculation.given() && diffusion.given()) {
    throw InputError({.source = "--diffusion-block", .value = "with --speculative-config", .expected = "one of them"});
  }
  const int64_t decode_tokens = diffusion.given() ? diffusion.diffusion.block_tokens : tokens_of_decode(speculative);
  // Tables are of steps alone, from whoever made them: no server of ours stands before them.
  const bool measured_steps = !op_tables.empty() || !vidur_tables.empty();
  EngineSetup setup = set_up_engine(serving_memory(pool ? attention_part(parsed) : parsed, models.kernels.device(),
                                                   plan, engine.engine_flags(kv_dtype)),
                                    plan, library.stacks().stack(stack_name),
                                    {.scheduler = scheduler.name(engine.engine.engine),
                                     .decode_tokens = decode_tokens,
                                     .offline = offline || measured_steps});
  ReplicaConfig config = std::move(setup.config);
  scheduler.apply(config.options);
  if (pool) config.options.num_gpu_blocks *= pool->attention_groups;
  config.options.speculation = diffusion.speculation();
  if (parsed.is_encoder_only()) config.options = without_cache(config.options);
  config.receive_interval = receive_interval;
  ReplicaGroup group{.count = count * ranks,
                     .data_parallel_ranks = ranks,
                     .model = parsed,
                     .plan = plan,
                     .models = std::move(models),
                     .memory = std::move(setup.memory),
                     .stack = std::move(setup.stack),
                     .kv_dtype = kv_dtype,
                     .two_batch_overlap = two_batch_overlap,
                     .ffn = std::move(pool),
                     .has_own_kernels = !measured_steps,
                     .has_operators = !measured_steps && decode_tokens == 1 && !lora.enabled && !ffn.given(),
                     .sustained_grid = nullptr,
                     .times = nullptr,
                     .lora = std::nullopt,
                     .lora_times = nullptr,
                     .drafter = std::nullopt,
                     .drafting_times = nullptr,
                     .pictures = nullptr,
                     .picture_times = nullptr,
                     .config = std::move(config)};
  const ComposedStepsConfig composed = group.composed();
  group.times = group.ffn ? split_steps(*this, composed, *group.ffn) : step_times(*this, composed);
  if (held_busy) {
    group.sustained_grid = std::make_shared<SustainedGrid>(composed);
    group.times = sustained_steps(std::move(group.times), group.sustained_grid);
  }
  group.config.times = group.times.get();
  if (lora.enabled) {
    if (measured_steps) {
      throw InputError({.source = "--enable-lora", .expected = "steps of our own kernels: tables have no adapters"});
    }
    if (lock_step_ranks(plan) > 1) {
      throw InputError({.source = "--enable-lora",
                        .value = "with data-parallel ranks that share experts",
                        .expected = "ranks of their own: adapters of ranks in lock step are not simulated"});
    }
    group.lora.emplace(lora.read(), composed);
    group.lora_times = group.lora->steps(*group.times);
    group.config.times = group.lora_times.get();
  }
  if (speculative) {
    if (measured_steps) {
      throw InputError(
          {.source = "--speculative-config", .expected = "steps of our own kernels: tables have no drafter"});
    }
    group.drafter.emplace(speculation.draft_engine(*speculative, composed, library));
    group.drafting_times = group.drafter->steps(*group.config.times);
    group.config.options = group.drafter->beside(group.config.options, group.memory);
    group.config.times = group.drafting_times.get();
  }
  if (group.lora) {
    group.config.options = group.lora->beside(group.config.options, group.memory);
    group.config.adapters = group.lora->loading();
  }
  return group;
}

int64_t ReplicaGroup::cache_devices() const {
  return engine_devices(plan) * (ffn ? ffn->attention_groups : 1);
}

ComposedStepsConfig ReplicaGroup::composed() const {
  return {.model = model,
          .plan = plan,
          .models = models,
          .stack = stack,
          .kv_dtype = kv_dtype,
          .two_batch_overlap = two_batch_overlap};
}

ReplicaSummary ReplicaGroup::summary() const {
  return {.device = models.kernels.device().name,
          .scheduler = config.scheduler,
          .count = count,
          .devices_each = cache_devices() + (ffn ? ffn->devices : 0),
          .kv_blocks = config.options.num_gpu_blocks * config.options.lock_step_ranks,
          .block_size = config.options.block_size};
}

std::vector<TypicalStep> ReplicaGroup::typical_steps(const StepMix& mix, const std::string& flag) const {
  if (!has_operators) {
    throw InputError(
        {.source = flag, .expected = "steps of our own kernels without drafts or adapters: others have no operators"});
  }
  return foretoken::typical_steps(composed(), mix, logits);
}

}  // namespace foretoken
