#include "serving/engine/engine_builder.h"

#include <algorithm>
#include <mutex>
#include <variant>

#include <fmt/format.h>

#include "base/error.h"
#include "compose/calibrated_stack.h"
#include "compose/engine_release.h"
#include "compose/two_batch.h"
#include "compose/vendor_stack.h"
#include "library/library.h"
#include "serving/engine/engine_setup.h"
#include "serving/steps/composed_steps.h"
#include "serving/steps/op_tables.h"
#include "serving/steps/sustained_steps.h"
#include "serving/steps/vidur_tables.h"

namespace foretoken {

// Engines whose steps take the same time.
struct EngineBuilder::Family {
  std::shared_ptr<SustainedGrid> grid;
  std::shared_ptr<StepTimes> times;
  std::shared_ptr<DraftEngine> drafter;
  std::shared_ptr<StepTimes> drafting_times;

  // To a group; made where no other engine of the family has made them.
  void give_steps(const EngineSpec& spec, const ComposedStepsConfig& composed, ReplicaGroup& group);
  void give_drafts(const EngineSpec& spec, const ComposedStepsConfig& composed, ReplicaGroup& group);
};

namespace {

// A family's grids take some megabytes.
constexpr size_t most_families_kept = 512;

bool shares_keys(const Model& model) {
  for (const Layer& layer : model.layers) {
    if (const auto* attention = std::get_if<Attention>(&layer.mixer)) return attention->kv_heads < attention->heads;
  }
  return false;
}

void check_source(const EngineSpec& spec) {
  if (!spec.steps.op_tables.empty() && !spec.steps.vidur_tables.empty()) {
    throw InputError(
        {.field = "op_tables", .value = "together with {vidur_tables}", .expected = "only one of the two"});
  }
  if (spec.ffn && (spec.steps.is_measured() || spec.boards == BoardState::held_busy || spec.speculation)) {
    throw InputError({.field = "ffn_pool",
                      .expected = "step times from foretoken's own kernels, without {sustained}, {energy}, power "
                                  "limits and {speculative_config}"});
  }
  if (spec.speculation && spec.diffusion.block_tokens > 0) {
    throw InputError(
        {.field = "diffusion_block", .value = "with {speculative_config}", .expected = "only one of the two"});
  }
}

void check_adapters(const EngineSpec& spec, const ParallelPlan& plan) {
  if (!spec.lora) return;
  if (spec.steps.is_measured()) {
    throw InputError({.field = "enable_lora",
                      .expected = "step times from foretoken's own kernels, because tables have no adapters"});
  }
  if (lock_step_ranks(plan) > 1) {
    throw InputError({.field = "enable_lora",
                      .value = "with data-parallel ranks that share experts",
                      .expected = "independent ranks: adapters are not simulated on ranks that run in lockstep"});
  }
}

std::unique_ptr<StepTimes> steps_without_drafts(const EngineSpec& spec, const ComposedStepsConfig& composed) {
  if (spec.ffn) return attention_ffn_steps(composed, *spec.ffn);
  const StepSource& source = spec.steps;
  if (!source.op_tables.empty()) return read_op_tables(source.op_tables, op_table_options(composed));
  if (!source.vidur_tables.empty()) {
    return read_vidur_tables(source.vidur_tables, {.layers = static_cast<int64_t>(composed.model.layers.size()),
                                                   .grouped_query = shares_keys(composed.model),
                                                   .tensor = composed.plan.tensor,
                                                   .pipeline_stages = composed.plan.pipeline});
  }
  return compose_steps(composed);
}

void apply(const SchedulingChoices& choices, SchedulerOptions& options) {
  options.policy = choices.policy;
  options.ttft_goals = choices.ttft_goals;
  options.enable_prefix_caching = choices.enable_prefix_caching;
  options.scheduler_reserve_full_isl = choices.scheduler_reserve_full_isl;
  options.long_prefill_token_threshold = choices.long_prefill_token_threshold;
  options.batch_wait_timeout_iters = choices.batch_wait_timeout_iters;
  options.batch_wait_max_tokens_ratio = choices.batch_wait_max_tokens_ratio;
  if (choices.watermark) options.watermark = choices.watermark;
}

// Of each decode in a step.
int64_t decode_tokens_of(const EngineSpec& spec) {
  return spec.diffusion.block_tokens > 0 ? spec.diffusion.block_tokens : tokens_of_decode(spec.speculation);
}

std::string model_key(const Model& model) {
  return fmt::format("{} {} {} {} {}", model.name, static_cast<int>(model.scheme),
                     static_cast<int>(model.mixer_scheme()), static_cast<int>(model.expert_scheme),
                     static_cast<int>(model.dtype));
}

int64_t experts_in_a_layer(const Model& model) {
  for (const Layer& layer : model.layers) {
    if (const Moe* moe = std::get_if<Moe>(&layer.feed_forward)) return moe->experts;
  }
  return 0;
}

// Where data-parallel ranks share the experts though nobody said so. Nothing = as it was asked for.
std::optional<EngineSpec> with_shared_experts(const EngineSpec& asked) {
  const ParallelPlan& plan = asked.plan;
  const bool shares = engine_kind(asked.flags.engine).ranks_share_experts && plan.data > 1 && plan.expert == 1;
  if (!shares || !asked.model.has_experts()) return std::nullopt;
  const int64_t ranks = plan.tensor * plan.data;
  std::string apart;  // why they cannot be simulated so
  if (plan.context > 1) apart = "experts are not divided over context-parallel ranks";
  if (asked.lora) apart = "adapters are not simulated on ranks that run together";
  if (asked.ffn) apart = "the experts run on {ffn_pool}";
  if (asked.steps.is_measured()) apart = "step times come from tables";
  if (experts_in_a_layer(asked.model) % ranks != 0) apart = fmt::format("{} ranks do not divide the experts", ranks);
  EngineSpec spec = asked;
  std::string& note = spec.model.notes.emplace_back();
  note = fmt::format(
      "{} splits each expert over all {} GPUs{} ({{data_parallel_size}} {}), so these ranks take every step together. ",
      family_title(engine_kind(asked.flags.engine).family), ranks, plan.pipeline > 1 ? " of a pipeline stage" : "",
      plan.data);
  if (apart.empty()) {
    spec.plan.expert = ranks;
    spec.plan.exchange = ExpertExchange::all_gather;
    note += "foretoken divides whole experts over the GPUs instead, as with {enable_expert_parallel}.";
  } else {
    note += fmt::format("foretoken simulates {} independent servers instead, because {}.", plan.data, apart);
  }
  return spec;
}

// Of what two engines of one builder can differ in, and step times depend on.
std::string family_key(const EngineSpec& spec, const ParallelPlan& plan, const Stack& captured) {
  std::string key = fmt::format("{} | {} | {} | {} {} | {} {} | {}", model_key(spec.model), spec.device.name,
                                plan_key(plan), captured.name, captured.graph_sizes.size(), spec.flags.enforce_eager,
                                static_cast<int>(spec.flags.kv_dtype), static_cast<int>(spec.boards));
  if (engine_devices(plan) > 1) key += " | " + placement_key(spec.placement);
  if (spec.speculation) {
    const SpeculativeConfig& drafts = *spec.speculation;
    key += fmt::format(" | {} {} {} {} {} {} {} {} {}", drafts.method->name, drafts.num_speculative_tokens,
                       drafts.tree_tokens, drafts.model, drafts.quantization, drafts.draft_tensor_parallel_size,
                       drafts.disable_by_batch_size, drafts.draft_context, drafts.same_for_all);
    if (drafts.acceptance) key += fmt::format(" {}", fmt::join(drafts.acceptance->reached(), " "));
    for (const Acceptance& end : drafts.unknown_acceptance) key += fmt::format(" | {}", fmt::join(end.reached(), " "));
  }
  return key;
}

// Stacks by name, each read once for all engines of a search.
class StackShelf {
 public:
  explicit StackShelf(StackCatalogue catalogue) : catalogue_(std::move(catalogue)) {}
  Stack stack(const std::string& name) {
    const std::scoped_lock lock(mutex_);
    const auto found = stacks_.find(name);
    return found != stacks_.end() ? found->second : stacks_.emplace(name, catalogue_.stack(name)).first->second;
  }

 private:
  StackCatalogue catalogue_;
  std::mutex mutex_;
  std::map<std::string, Stack> stacks_;
};

// Engines of which each has its own step times.
bool is_one_of_a_kind(const EngineSpec& spec) {
  // A drafter's passes go with the steps of one engine's adapters.
  return spec.ffn || (spec.lora && spec.speculation) || spec.power || spec.steps.is_measured() ||
         spec.two_batch_overlap;
}

}  // namespace

ServingFacts serving_facts(const Library& library, Tier tier) {
  return {.device_models =
              [&library, tier](const Device& device, const ParallelPlan& plan, const PlacementSpec& placement) {
                return library.device_models(device.name, plan, tier, placement);
              },
          .stack = [stacks = std::make_shared<StackShelf>(stacks_of(library))](
                       std::string_view name) { return stacks->stack(std::string(name)); },
          .node = [&library](const Device& device,
                             const PlacementSpec& placement) { return library.node_of(device, placement); },
          .deployment = library.deployment()};
}

EngineBuilder::EngineBuilder(ServingFacts facts) : facts_(std::move(facts)) {}
EngineBuilder::~EngineBuilder() = default;

DeviceModels EngineBuilder::models_of(const Device& device, const ParallelPlan& plan, const PlacementSpec& placement) {
  const bool has_peers = engine_devices(plan) > 1;
  const std::string key = fmt::format("{} {}", device.name, has_peers ? placement_key(placement) : "alone");
  auto found = models_.find(key);
  if (found == models_.end()) {
    found = models_.emplace(key, facts_.device_models(device, plan, placement)).first;
    found->second.kernels = found->second.kernels.remembering();  // engines share most of their kernels
  }
  DeviceModels models = found->second;
  if (models.collectives) {
    std::shared_ptr<const RankNetwork>& network = networks_[fmt::format("{} | {}", key, plan_key(plan))];
    if (!network) network = models.collectives->for_plan(plan);
    models.collectives = network;
  }
  return models;
}

std::shared_ptr<EngineBuilder::Family> EngineBuilder::family_of(const std::string& key) {
  if (key.empty()) return std::make_shared<Family>();
  if (families_.size() > most_families_kept) families_.clear();
  std::shared_ptr<Family>& family = families_[key];
  if (!family) family = std::make_shared<Family>();
  return family;
}

Stack EngineBuilder::stack_of(const EngineSpec& spec, const std::string& family, const ParallelPlan& asked) const {
  const std::string name =
      spec.stack.empty() ? usual_stack(spec.flags.engine, spec.speculation.has_value()) : spec.stack;
  Stack stack = on_host(stack_on(spec.device, name, facts_.stack), facts_.host_factor);
  if (!facts_.deployment || spec.steps.is_measured()) return stack;
  const auto known = facts_.deployment->constants_of(family, spec.device.name, spec.model.name, asked);
  return known ? calibrated(std::move(stack), *known) : stack;
}

EngineSetup EngineBuilder::started(const EngineSpec& spec, const ParallelPlan& plan, const Device& device,
                                   const ParallelPlan& asked) const {
  const std::string family(engine_family(spec.flags.engine));
  EngineFlags flags = spec.flags;
  flags.drafts = spec.speculation.has_value();
  // Tables are of steps alone, from whoever made them: no server of ours stands before them.
  EngineSetup setup = set_up_engine(
      serving_memory(spec.ffn ? attention_part(spec.model) : spec.model, device, plan, flags, spec.remedies), plan,
      stack_of(spec, family, asked),
      {.scheduler = std::string(
           scheduler_kind(spec.scheduler.empty() ? usual_scheduler(spec.flags.engine) : spec.scheduler).name),
       .decode_tokens = decode_tokens_of(spec),
       .offline = spec.offline || spec.steps.is_measured()});
  SchedulerOptions& options = setup.config.options;
  apply(spec.scheduling, options);
  options.enable_chunked_prefill =
      spec.scheduling.enable_chunked_prefill.value_or(scheduler_kind(setup.config.scheduler).cuts_prompts);
  options.async_scheduling = spec.scheduling.async_scheduling.value_or(schedules_ahead(spec.flags.engine));
  if (spec.ffn) options.num_gpu_blocks *= spec.ffn->attention_groups;
  options.speculation = denoising(spec.diffusion);
  if (spec.model.is_encoder_only()) options = without_cache(options);
  options.prompts_stop_ranks =
      spec.speculation.has_value() && engine_kind(spec.flags.engine).prompts_stop_drafting_ranks;
  setup.config.receive_interval = spec.receive_interval;
  setup.config.stream_interval = spec.stream_interval;
  setup.config.ffn_apart = spec.ffn.has_value();
  return setup;
}

void EngineBuilder::Family::give_steps(const EngineSpec& spec, const ComposedStepsConfig& composed,
                                       ReplicaGroup& group) {
  if (!times) {
    std::unique_ptr<StepTimes> made = steps_without_drafts(spec, composed);
    if (spec.boards != BoardState::cool && composed.models.power) {
      const bool watts_alone = spec.boards == BoardState::metered;
      grid = std::make_shared<SustainedGrid>(
          composed, watts_alone ? SustainedGrid::Spacing::coarse : SustainedGrid::Spacing::fine);
      if (spec.boards == BoardState::held_busy) made = sustained_steps(std::move(made), grid);
    }
    times = std::move(made);
  }
  group.sustained_grid = grid;
  group.times = times;
  group.config.times = group.times.get();
}

void EngineBuilder::Family::give_drafts(const EngineSpec& spec, const ComposedStepsConfig& composed,
                                        ReplicaGroup& group) {
  if (spec.steps.is_measured()) {
    throw InputError({.field = "speculative_config",
                      .expected = "step times from foretoken's own kernels, because tables have no drafter"});
  }
  if (!drafter) {
    drafter = std::make_shared<DraftEngine>(*spec.speculation, composed, spec.draft_model);
    drafting_times = drafter->steps(*group.config.times);
  }
  group.drafter = drafter;
  group.drafting_times = drafting_times;
  group.config.options = group.drafter->beside(group.config.options, group.memory);
  group.config.times = group.drafting_times.get();
}

ReplicaGroup EngineBuilder::build(const EngineSpec& asked) {
  const std::optional<EngineSpec> shared = with_shared_experts(asked);
  const EngineSpec& spec = shared ? *shared : asked;
  const auto [plan, ranks] = engine_ranks(spec.plan);
  DeviceModels models = models_of(spec.device, plan, spec.placement);
  if (spec.power) models.power = spec.power;
  const Device& device = models.kernels.device();
  check_engine_runs_on("engine", spec.flags.engine, device);
  if (!spec.stack.empty()) check_engine_runs_on("stack", spec.stack, device);
  check_source(spec);
  if (spec.two_batch_overlap) check_two_batches(spec.model, spec.plan);
  if (spec.plan.context > 1 && lock_step_ranks(spec.plan) > 1) {
    throw InputError({.field = "expert_parallel_size",
                      .value = fmt::format("{} with {} context-parallel ranks", spec.plan.expert, spec.plan.context),
                      .expected = "experts divided over tensor-parallel ranks alone"});
  }
  EngineSetup setup = started(spec, plan, device, asked.plan);
  check_adapters(spec, plan);
  const bool measured_steps = spec.steps.is_measured();
  ReplicaGroup group{.count = spec.replicas * ranks,
                     .data_parallel_ranks = ranks,
                     .model = spec.model,
                     .plan = plan,
                     .placement = spec.placement,
                     .models = std::move(models),
                     .memory = std::move(setup.memory),
                     .stack = std::move(setup.stack),
                     .kv_dtype = spec.flags.kv_dtype,
                     .two_batch_overlap = spec.two_batch_overlap,
                     .ffn = spec.ffn,
                     .has_own_kernels = !measured_steps,
                     .has_operators = !measured_steps && decode_tokens_of(spec) == 1 && !spec.lora && !spec.ffn,
                     .sustained_grid = nullptr,
                     .times = nullptr,
                     .lora = std::nullopt,
                     .lora_times = nullptr,
                     .drafter = nullptr,
                     .drafting_times = nullptr,
                     .pictures = nullptr,
                     .picture_times = nullptr,
                     .config = std::move(setup.config)};
  const ComposedStepsConfig composed = group.composed();
  std::string key = is_one_of_a_kind(spec) ? "" : family_key(spec, plan, group.stack);
  if (facts_.deployment && !key.empty()) key += " | " + plan_key(asked.plan);  // by which calibrations differ
  const std::shared_ptr<Family> family = family_of(key);
  family->give_steps(spec, composed, group);
  if (spec.lora) {
    group.lora.emplace(*spec.lora, composed);
    group.lora_times = group.lora->steps(*group.times);
    group.config.times = group.lora_times.get();
  }
  if (spec.speculation) family->give_drafts(spec, composed, group);
  if (group.lora) {
    group.config.options = group.lora->beside(group.config.options, group.memory);
    group.config.adapters = group.lora->loading();
  }
  return group;
}

int64_t ReplicaGroup::cache_devices() const {
  return engine_devices(plan) * (ffn ? ffn->attention_groups : 1);
}

std::vector<LinkTraffic> ReplicaGroup::links_per_token() const {
  if (!models.collectives || engine_devices(plan) == 1 || ffn || model.is_encoder_only()) return {};
  constexpr int64_t tokens = 64;  // enough that what is sent once a step does not count
  const StepRequest request{.phase = StepPhase::decode, .batch = tokens, .context_len = 1, .kv_dtype = kv_dtype};
  const StepEstimate step =
      estimate_step(model, request, plan, models.kernels, stack, {.collectives = models.collectives.get()});
  std::vector<LinkTraffic> links = step_links(step, *models.collectives);
  for (LinkTraffic& link : links) {
    link.bytes /= static_cast<double>(tokens);
    link.seconds = 0;
  }
  return links;
}

std::optional<StepSources> ReplicaGroup::typical_sources() const {
  if (!has_own_kernels || ffn) return std::nullopt;
  constexpr int64_t usual_batch = 32, usual_length = 1024;
  const int64_t length = model.max_positions > 0 ? std::min(usual_length, model.max_positions) : usual_length;
  const StepRequest request =
      model.is_encoder_only()
          ? StepRequest{.phase = StepPhase::prefill, .batch = 1, .input_len = length}
          : StepRequest{
                .phase = StepPhase::decode, .batch = usual_batch, .context_len = length - 1, .kv_dtype = kv_dtype};
  return sources_of(
      estimate_step(model, request, plan, models.kernels, stack, {.collectives = models.collectives.get()}));
}

ComposedStepsConfig ReplicaGroup::composed() const {
  return {.model = model,
          .plan = plan,
          .models = models,
          .stack = stack,
          .kv_dtype = kv_dtype,
          .two_batch_overlap = two_batch_overlap};
}

}  // namespace foretoken
