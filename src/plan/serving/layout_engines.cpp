#include "plan/serving/layout_engines.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "serving/engine/engine_setup.h"

namespace foretoken {
namespace {

// An engine's memory report and options take some kilobytes.
constexpr size_t most_engines_kept = 4096;

}  // namespace

int64_t planned_model_len(const ServingQuestion& question, const Traffic& traffic) {
  if (question.max_model_len > 0) return question.max_model_len;
  constexpr int64_t step = 1024;
  const int64_t needed = (traffic.lengths().totals.back() + step - 1) / step * step;
  return question.model.max_positions > 0 ? std::min(needed, question.model.max_positions) : needed;
}

EngineShelf::EngineShelf(const ServingQuestion& question, const ServingFacts& facts, const Traffic& traffic)
    : question_(&question), max_model_len_(planned_model_len(question, traffic)), builder_(facts) {}

LayoutEngines EngineShelf::engines(const ServingLayout& layout) {
  // Those that somebody works with stay: whoever asks again for the same gets the same.
  const bool is_known =
      engines_.contains(key_of(layout.pool)) && (!layout.decode || engines_.contains(key_of(*layout.decode)));
  if (!is_known && engines_.size() > most_engines_kept) engines_.clear();
  const Attempt& first = engine(layout.pool);
  const Attempt& second = layout.decode ? engine(*layout.decode) : first;
  if (!first.engine || !second.engine) return {.failure = std::max(first.failure, second.failure)};
  return {.pool = &*first.engine, .decode = layout.decode ? &*second.engine : nullptr};
}

std::string EngineShelf::key_of(const EnginePool& pool) {
  return fmt::format("{} {} {} {}", pool.engine.key(), pool.max_num_seqs, pool.max_num_batched_tokens, pool.max_loras);
}

const EngineShelf::Attempt& EngineShelf::engine(const EnginePool& pool) {
  const std::string key = key_of(pool);
  auto found = engines_.find(key);
  if (found == engines_.end()) {
    found = engines_.emplace(key, attempted(pool)).first;
  }
  return found->second;
}

EngineShelf::Attempt EngineShelf::attempted(const EnginePool& pool) {
  try {
    ReadyEngine engine = made(pool);
    const ServingMemory& memory = engine.group.memory;
    // One with a shorter context would start, and refuse the longest requests.
    if (memory.asked_model_len > 0) return {.failure = StartFailure::no_room};
    if (memory.runs_out_while_starting()) return {.failure = StartFailure::runs_out};
    return {.engine = std::move(engine)};
  } catch (const EngineDoesNotFit&) {
    return {.failure = StartFailure::no_room};  // nothing that other limits or no drafter would mend
  } catch (const InputError&) {
    return {.failure = StartFailure::refuses_limits};
  }
}

EngineSpec EngineShelf::spec_of(const EnginePool& pool) const {
  const EngineChoice& choice = pool.engine;
  EngineSpec spec{
      .model = question_->model_of(choice),
      .device = question_->hardware_of(choice.device).device,
      .plan = choice.plan(),
      .flags = {.engine = choice.engine,
                .memory_fraction = pool.memory_fraction > 0 ? pool.memory_fraction : question_->memory_fraction,
                .max_num_batched_tokens = pool.max_num_batched_tokens,
                .max_num_seqs = pool.max_num_seqs,
                .max_model_len = max_model_len_,
                .kv_dtype = choice.kv_dtype},
      .scheduling = {.enable_chunked_prefill = true},  // as launch lines say
      .boards = BoardState::metered,
      .remedies = RemediesSought::no};
  if (question_->lora) {
    spec.lora = question_->lora;
    spec.lora->max_loras = pool.max_loras;
  }
  if (choice.speculates && question_->drafts) {
    spec.speculation = question_->drafts->config;
    spec.draft_model = question_->drafts->model;
  }
  return spec;
}

ReadyEngine EngineShelf::made(const EnginePool& pool) {
  const EngineSpec spec = spec_of(pool);
  ReadyEngine ready{.group = builder_.build(spec)};
  if (ready.draw() != nullptr) {
    const HardwareChoice& hardware = question_->hardware_of(pool.engine.device);
    ready.boards =
        metered_boards(hardware.device, hardware.node, *ready.group.models.power, FacilityRates().supply_efficiency);
    ready.boards.boards_each = pool.engine.devices();
  }
  if (spec.speculation) {
    ready.tokens_per_decode = spec.speculation->acceptance->expected_tokens(spec.speculation->num_speculative_tokens);
  }
  return ready;
}

}  // namespace foretoken
