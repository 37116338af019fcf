#include "serving/engine/engine_setup.h"

#include <algorithm>

#include <fmt/format.h>

#include "compose/captured_sizes.h"
#include "compose/engine_release.h"

namespace foretoken {
namespace {

InputProblem shortage_problem(const ServingMemory& memory) {
  std::string remedies;
  for (const Remedy& remedy : memory.remedies) remedies += (remedies.empty() ? "" : ", ") + remedy.change;
  return {.source = "memory of a GPU",
          .value = memory_shortage(memory),
          .expected = fmt::format(
              "enough for the model and one sequence of {} tokens ({{max_model_len}}): this engine would not start",
              memory.flags.max_model_len),
          .suggestion = remedies};
}

}  // namespace

EngineDoesNotFit::EngineDoesNotFit(ServingMemory memory)
    : InputError(shortage_problem(memory)), memory_(std::move(memory)) {}

std::string_view engine_family(std::string_view engine) {
  return engine_kind(engine).family;
}

namespace {

// Null where the name is that of a family alone.
const ReleaseBehavior* behavior_of(std::string_view engine) {
  const std::optional<EngineRelease> release = engine_release(engine);
  return release ? &release_behavior(release->family, release->version) : nullptr;
}

}  // namespace

std::string usual_stack(std::string_view engine, bool drafts) {
  const ReleaseBehavior* release = behavior_of(engine);
  if (release == nullptr) return std::string(engine_family(engine));
  return std::string(drafts ? release->stack_with_drafts : release->stack);
}

std::string usual_scheduler(std::string_view engine) {
  const ReleaseBehavior* release = behavior_of(engine);
  return std::string(release != nullptr ? release->scheduler : engine_family(engine));
}

bool schedules_ahead(std::string_view engine) {
  const ReleaseBehavior* release = behavior_of(engine);
  return release == nullptr || release->schedules_ahead;
}

SchedulerOptions scheduler_options(const ServingMemory& memory, const ParallelPlan& plan) {
  const EngineFlags& flags = memory.flags;
  if (!memory.starts) {
    const bool was_given = flags.num_gpu_blocks_override > 0 || flags.kv_cache_memory_bytes > 0;
    if (was_given) throw InputError(shortage_problem(memory));
    throw EngineDoesNotFit(memory);
  }
  const bool is_of_each_stage = engine_kind(flags.engine).sequences_of_each_stage;
  return {.max_num_batched_tokens = flags.max_num_batched_tokens,
          .max_num_seqs = flags.max_num_seqs * (is_of_each_stage ? plan.pipeline : 1),
          .max_model_len = flags.max_model_len,
          .num_gpu_blocks = static_cast<int64_t>(memory.blocks.value),
          .block_size = memory.layout.block_tokens > 0 ? memory.layout.block_tokens : flags.block_size,
          .pipeline_stages = plan.pipeline,
          .lock_step_ranks = lock_step_ranks(plan),
          .rank_router = usual_router(flags.engine, lock_step_ranks(plan)),
          .cache_groups = memory.layout.shared_pool && !memory.layout.grows_evenly() ? memory.layout.groups
                                                                                     : std::vector<CacheGroup>{}};
}

SchedulerOptions without_cache(SchedulerOptions options) {
  options.enable_chunked_prefill = options.enable_prefix_caching = false;
  options.max_num_batched_tokens = std::max(options.max_num_batched_tokens, options.max_model_len);
  options.block_size = std::max<int64_t>(1, options.max_model_len);
  options.num_gpu_blocks = options.max_num_seqs + 1;
  return options;
}

Stack engine_stack(Stack stack, const EngineFlags& flags, int64_t decode_tokens) {
  if (flags.enforce_eager) {
    run_uncompiled(stack);
    return stack;
  }
  capture_up_to(stack, largest_graph(flags, decode_tokens));
  return stack;
}

FrontCosts engine_front(const Stack& stack, bool offline) {
  return offline ? FrontCosts{} : stack.costs.front;
}

EngineRanks engine_ranks(ParallelPlan plan) {
  const int64_t data = plan.data;
  if (plan.expert <= plan.tensor) plan.data = 1;
  return {.plan = plan, .engines = data / lock_step_ranks(plan)};
}

EngineSetup set_up_engine(ServingMemory memory, const ParallelPlan& plan, Stack stack, const EngineSettings& settings) {
  Stack captured = engine_stack(std::move(stack), memory.flags, settings.decode_tokens);
  ReplicaConfig config{.scheduler = settings.scheduler,
                       .options = scheduler_options(memory, plan),
                       .front = engine_front(captured, settings.offline)};
  if (lock_step_ranks(plan) > 1) config.first_token_doubt = engine_kind(memory.flags.engine).doubt_of_ranks;
  return {.memory = std::move(memory), .stack = std::move(captured), .config = std::move(config)};
}

int64_t engine_devices(const ParallelPlan& plan) {
  return plan.tensor * plan.pipeline * plan.context * lock_step_ranks(plan);
}

std::string usual_router(std::string_view engine, int64_t data_parallel_ranks) {
  return data_parallel_ranks > 1 ? std::string(engine_kind(engine).rank_router) : "round_robin";
}

FirstToken usual_first_token(std::string_view engine) {
  return engine_kind(engine).decode_gives_first_token ? FirstToken::decode : FirstToken::transfer;
}

}  // namespace foretoken
