#include "plan/serving/layout_engines.h"

#include <algorithm>

#include "base/error.h"
#include "compose/serving_memory.h"
#include "serving/steps/composed_steps.h"

namespace foretoken {
namespace {

// A family's grids take some megabytes.
constexpr size_t most_families_kept = 64;

}  // namespace

// Engines of one EngineChoice.
struct EngineShelf::Family {
  Model model;
  ParallelPlan plan;
  DeviceModels models;
  Stack stack;
  std::map<size_t, std::unique_ptr<StepTimes>> times;  // by the number of graphs that are captured
  std::optional<DraftEngine> drafter;
  std::map<size_t, std::unique_ptr<StepTimes>> drafting_times;
  std::unique_ptr<SustainedGrid> draw;                     // null where nobody asked yet, or nothing is known
  std::map<std::pair<int64_t, int64_t>, Attempt> engines;  // by their limits
};

int64_t planned_model_len(const ServingQuestion& question, const Traffic& traffic) {
  if (question.max_model_len > 0) return question.max_model_len;
  constexpr int64_t step = 1024;
  const int64_t needed = (traffic.lengths().totals.back() + step - 1) / step * step;
  return question.model.max_positions > 0 ? std::min(needed, question.model.max_positions) : needed;
}

EngineShelf::EngineShelf(const ServingQuestion& question, const ServingFacts& facts, const Traffic& traffic)
    : question_(&question), facts_(&facts), max_model_len_(planned_model_len(question, traffic)) {}
EngineShelf::~EngineShelf() = default;

LayoutEngines EngineShelf::engines(const ServingLayout& layout) {
  if (families_.size() > most_families_kept) families_.clear();
  const Attempt& first = engine(layout.pool);
  const Attempt& second = layout.decode ? engine(*layout.decode) : first;
  if (!first.engine || !second.engine) return {.clash = first.clash || second.clash};
  return {.pool = &*first.engine, .decode = layout.decode ? &*second.engine : nullptr};
}

const EngineShelf::Attempt& EngineShelf::engine(const EnginePool& pool) {
  Family& own = family(pool.engine);
  const std::pair limits(pool.max_num_seqs, pool.max_num_batched_tokens);
  auto found = own.engines.find(limits);
  if (found == own.engines.end()) {
    Attempt attempt;
    try {
      attempt.engine = made(own, pool);
    } catch (const InputError&) {
      attempt.clash = true;
    }
    found = own.engines.emplace(limits, std::move(attempt)).first;
  }
  return found->second;
}

const DeviceModels& EngineShelf::models(const std::string& device, const ParallelPlan& plan) {
  const std::pair key(device, engine_devices(plan) > 1);
  const auto found = models_.find(key);
  if (found != models_.end()) return found->second;
  return models_.emplace(key, facts_->device_models(question_->hardware_of(device).device, plan)).first->second;
}

EngineShelf::Family& EngineShelf::family(const EngineChoice& choice) {
  const std::string key = choice.key();
  const auto found = families_.find(key);
  if (found != families_.end()) return *found->second;
  const ParallelPlan plan = engine_ranks(choice.plan()).plan;
  auto made = std::make_unique<Family>(Family{.model = question_->model_of(choice),
                                              .plan = plan,
                                              .models = models(choice.device, plan),
                                              .stack = facts_->stack(engine_family(choice.engine)),
                                              .times = {},
                                              .drafter = {},
                                              .drafting_times = {},
                                              .draw = {},
                                              .engines = {}});
  return *families_.emplace(key, std::move(made)).first->second;
}

std::optional<ReadyEngine> EngineShelf::made(Family& family, const EnginePool& pool) const {
  const EngineChoice& choice = pool.engine;
  ServingMemory memory = serving_memory(family.model, family.models.kernels.device(), family.plan,
                                        {.engine = choice.engine,
                                         .memory_fraction = question_->memory_fraction,
                                         .max_num_batched_tokens = pool.max_num_batched_tokens,
                                         .max_num_seqs = pool.max_num_seqs,
                                         .max_model_len = max_model_len_,
                                         .kv_dtype = choice.kv_dtype});
  if (!memory.starts) return std::nullopt;
  const bool drafts = choice.speculates && question_->drafts;
  EngineSetup setup = set_up_engine(std::move(memory), family.plan, family.stack,
                                    {.scheduler = std::string(scheduler_kind(engine_family(choice.engine)).name),
                                     .decode_tokens = drafts ? tokens_of_decode(question_->drafts->config) : 1});
  const ComposedStepsConfig composed{.model = family.model,
                                     .plan = family.plan,
                                     .models = family.models,
                                     .stack = setup.stack,
                                     .kv_dtype = choice.kv_dtype};
  const size_t graphs = setup.stack.graph_sizes.size();
  std::unique_ptr<StepTimes>& times = family.times[graphs];
  if (!times) times = compose_steps(composed);
  setup.config.times = times.get();
  ReadyEngine engine{.memory = std::move(setup.memory),
                     .config = std::move(setup.config),
                     .plain_times = times.get(),
                     .stack = std::move(setup.stack)};
  if (const std::optional<PowerModel>& power = family.models.power) {
    if (!family.draw) family.draw = std::make_unique<SustainedGrid>(composed);
    const HardwareChoice& hardware = question_->hardware_of(choice.device);
    engine.draw = family.draw.get();
    engine.boards = metered_boards(hardware.device, hardware.node, *power, FacilityRates().supply_efficiency);
    engine.boards.boards_each = choice.devices();
  }
  if (!drafts) return engine;
  if (!family.drafter) family.drafter.emplace(question_->drafts->config, composed, question_->drafts->model);
  std::unique_ptr<StepTimes>& drafting = family.drafting_times[graphs];
  if (!drafting) drafting = family.drafter->steps(*times);
  engine.config.options = family.drafter->beside(engine.config.options, engine.memory);
  engine.config.times = drafting.get();
  const SpeculativeConfig& config = question_->drafts->config;
  engine.tokens_per_decode = config.acceptance->expected_tokens(config.num_speculative_tokens);
  return engine;
}

}  // namespace foretoken
