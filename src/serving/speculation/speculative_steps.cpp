#include "serving/speculation/speculative_steps.h"

#include <algorithm>
#include <array>

#include "base/error.h"

namespace foretoken {
namespace {

// Sequences that will decode in the next step, and what is in their cache by then.
struct Proposers {
  int64_t sequences = 0, context_tokens = 0, longest = 0;
};

Proposers proposers_of(const StepBatch& batch) {
  Proposers found{.sequences = batch.decodes,
                  .context_tokens = batch.decode_context_tokens + batch.decodes,
                  .longest = batch.longest_decode_context + (batch.decodes > 0 ? 1 : 0)};
  for (const PromptChunk& chunk : batch.prompts) {
    if (!chunk.yields_token) continue;
    const int64_t tokens = chunk.context_tokens + chunk.new_tokens;
    ++found.sequences;
    found.context_tokens += tokens;
    found.longest = std::max(found.longest, tokens);
  }
  return found;
}

class SpeculativeSteps final : public StepTimes {
 public:
  SpeculativeSteps(StepTimes& target, const Drafter& drafter) : target_(&target), drafter_(drafter) {
    ensure(drafter_.method != nullptr, "a drafter has a method");
    ensure((drafter_.network == nullptr) == (drafter_.method->network == nullptr), "a network runs where there is one");
  }

  Estimate step_seconds(const StepBatch& batch) override {
    const std::array<Estimate, 2> parts{target_->step_seconds(batch), draft_seconds(batch)};
    return sum_of_correlated(parts);
  }

 private:
  Estimate draft_seconds(const StepBatch& batch) {
    const Speculation& speculation = drafter_.speculation;
    const Proposers proposers = proposers_of(batch);
    if (speculation.most_sequences > 0 && proposers.sequences > speculation.most_sequences) return exactly(0);
    if (drafter_.network == nullptr) return ngram_seconds(proposers.sequences, proposers.context_tokens);

    const bool follows = drafter_.method->follows_target;
    const bool is_block = drafter_.method->block_drafts > 0;
    const int64_t passes = proposers.sequences == 0 ? 0 : is_block ? 1 : speculation.draft_tokens - (follows ? 1 : 0);
    std::array<Estimate, 2> parts{exactly(0), exactly(0)};
    if (follows) {
      StepBatch first = bounded(batch);
      first.samples_drafts = false;
      parts[0] = drafter_.network->step_seconds(first);
    }
    if (passes > 0) {
      const int64_t each =
          is_block ? speculation.draft_tokens
                   : (speculation.verified_tokens + speculation.draft_tokens - 1) / speculation.draft_tokens;
      const StepBatch later{.decodes = proposers.sequences,
                            .decode_context_tokens = proposers.context_tokens,
                            .longest_decode_context = proposers.longest,
                            .drafted_tokens = proposers.sequences * (each - 1),
                            .prompts = {}};
      parts[1] = scaled(drafter_.network->step_seconds(bounded(later)), static_cast<double>(passes));
    }
    return sum_of_correlated(parts);
  }

  // With as much context as the drafter reads.
  StepBatch bounded(StepBatch batch) const {
    const int64_t most = drafter_.speculation.draft_context;
    if (most > 0) {
      batch.decode_context_tokens = std::min(batch.decode_context_tokens, batch.decodes * most);
      batch.longest_decode_context = std::min(batch.longest_decode_context, most);
    }
    return batch;
  }

  StepTimes* target_;
  Drafter drafter_;
};

}  // namespace

Estimate ngram_seconds(int64_t sequences, int64_t tokens) {
  if (sequences == 0) return exactly(0);
  constexpr double of_step = 50e-6, of_token = 3e-9, factor = 4;
  const double seconds = of_step + of_token * static_cast<double>(tokens);
  return {.value = seconds, .low = seconds / factor, .high = seconds * factor, .kind = Confidence::roofline};
}

std::unique_ptr<StepTimes> speculative_steps(StepTimes& target, const Drafter& drafter) {
  return std::make_unique<SpeculativeSteps>(target, drafter);
}

}  // namespace foretoken
