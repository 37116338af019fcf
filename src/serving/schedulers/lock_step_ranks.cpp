#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "base/error.h"
#include "serving/schedulers/list.h"
#include "serving/scheduling/router.h"

namespace foretoken {
namespace {

// Data-parallel ranks whose experts are spread over all of them: none can start a step before all have ended theirs,
// and one without requests runs along (vLLM: dummy batches; SGLang: idle batches; TensorRT-LLM: attention DP).
class LockStepRanks final : public Scheduler {
 public:
  LockStepRanks(const SchedulerKind& kind, const SchedulerOptions& options)
      : router_(router_kind(options.rank_router).make(options.speculation.seed)),
        prompts_stop_ranks_(options.prompts_stop_ranks),
        block_size_(options.block_size),
        may_be_quiet_(options.quiet_decodes && options.pipeline_stages == 1 && !options.prompts_stop_ranks &&
                      options.cache_groups.empty() && options.lower_tiers == nullptr &&
                      options.speculation.slots() == 0) {
    SchedulerOptions one = options;
    one.lock_step_ranks = 1;
    for (int64_t rank = 0; rank < options.lock_step_ranks; ++rank) ranks_.push_back(kind.make(one));
    parts_.resize(ranks_.size());
    quiet_.resize(ranks_.size());
  }

  int64_t capacity_tokens() const override { return ranks_.front()->capacity_tokens(); }
  int64_t longest_prompt() const override { return ranks_.front()->longest_prompt(); }

  void add(Sequence& sequence) override {
    choose_rank(sequence);
    changed(sequence).add(sequence);
  }

  void schedule(Batch& batch) override {
    if (may_be_quiet_) {
      schedule_those_that_change();
      for (size_t i = 0; i < ranks_.size(); ++i) {
        quiet_[i].decodes ? batch.join(quiet_[i].decodes) : batch.join(parts_[i]);
      }
      return;
    }
    bool has_prompts = false;
    for (size_t i = 0; i < ranks_.size(); ++i) {
      parts_[i].clear();
      if (prompts_stop_ranks_) {
        ranks_[i]->schedule_prompts(parts_[i]);
        has_prompts = has_prompts || !parts_[i].empty();
      } else {
        ranks_[i]->schedule(parts_[i]);
      }
    }
    if (prompts_stop_ranks_ && !has_prompts) {
      for (size_t i = 0; i < ranks_.size(); ++i) ranks_[i]->schedule_decodes(parts_[i]);
    }
    join_parts(batch);
  }

  int64_t repeats(const Batch& /*batch*/) const override {
    int64_t least = -1;
    for (size_t i = 0; i < ranks_.size(); ++i) {
      if (quiet_[i].decodes) return 0;  // beside it one changes
      if (is_idle(i)) continue;
      const int64_t repeats = parts_[i].empty() ? 0 : ranks_[i]->repeats(parts_[i]);
      if (repeats == 0) return 0;
      least = least < 0 ? repeats : std::min(least, repeats);
    }
    return std::max<int64_t>(0, least);
  }

  void repeat(Batch& batch, int64_t count) override {
    for (size_t i = 0; i < ranks_.size(); ++i) {
      if (!parts_[i].empty()) ranks_[i]->repeat(parts_[i], count);
      quiet_[i].left.reset();
    }
    batch.clear();
    join_parts(batch);
  }

  void settle() override {
    for (size_t i = 0; i < ranks_.size(); ++i) settle(i);
  }

  Sequence* first_late(Picoseconds now) const override {
    for (const auto& rank : ranks_) {
      if (Sequence* const late = rank->first_late(now)) return late;
    }
    return nullptr;
  }

  // It may go to any of them.
  bool arrival_matters() const override {
    return std::any_of(ranks_.begin(), ranks_.end(), [](const auto& rank) { return rank->arrival_matters(); });
  }

  void release(Sequence& sequence) override { changed(sequence).release(sequence); }
  void set_aside(Sequence& sequence) override { changed(sequence).set_aside(sequence); }
  void receive(Sequence& sequence) override { changed(sequence).receive(sequence); }

  // What it takes may leave fewer equal steps to the others; they are the same.
  bool expect(Sequence& sequence, int64_t spare) override {
    choose_rank(sequence);
    settle(static_cast<size_t>(sequence.rank));
    quiet_[static_cast<size_t>(sequence.rank)].left.reset();
    return rank_of(sequence).expect(sequence, spare);
  }

  // The most that one rank takes: whichever a prompt goes to, so many are enough.
  int64_t blocks_ahead(const Batch& /*batch*/, int64_t steps) const override {
    int64_t most = 0;
    for (size_t i = 0; i < ranks_.size(); ++i) most = std::max(most, ranks_[i]->blocks_ahead(parts_[i], steps));
    return most;
  }

  SchedulerLoad load() const override {
    SchedulerLoad sum;
    for (size_t i = 0; i < ranks_.size(); ++i) {
      const SchedulerLoad one = load_of(i);
      sum.running += one.running;
      sum.waiting += one.waiting;
      sum.blocks_used += one.blocks_used;
      sum.blocks += one.blocks;
    }
    return sum;
  }

 private:
  // Of a rank whose decodes go on as they are; what `decodes` counts has happened to none of its sequences yet.
  struct Quiet {
    std::shared_ptr<QuietDecodes> decodes;  // null: its part of the last step is in parts_
    std::optional<int64_t> left;            // equal steps to come but for the last one; nothing = not known
    bool changed = true;                    // since its part was chosen
    int64_t blocks_taken = 0;               // in the steps of `decodes`
    std::vector<int64_t> takers;            // by steps modulo the block size: sequences that take a block then
  };

  bool is_idle(size_t rank) const {
    if (!parts_[rank].empty()) return false;
    const SchedulerLoad load = ranks_[rank]->load();
    return load.waiting + load.running == 0;
  }

  SchedulerLoad load_of(size_t rank) const {
    SchedulerLoad load = ranks_[rank]->load();
    load.blocks_used += quiet_[rank].blocks_taken;
    return load;
  }

  // Ranks whose part would be chosen again go on as they are, unless all of them would: then the engine repeats steps.
  void schedule_those_that_change() {
    bool any_stops = false;
    quiet_now_.clear();
    for (size_t i = 0; i < ranks_.size(); ++i) {
      if (!quiet_[i].changed && !parts_[i].empty() && equal_steps_left(i) > 0) {
        quiet_now_.push_back(i);
        continue;
      }
      schedule_anew(i);
      const int64_t repeats = parts_[i].empty() ? 0 : ranks_[i]->repeats(parts_[i]);
      quiet_[i].left = quiet_steps(parts_[i], repeats);
      any_stops = any_stops || (repeats == 0 && !is_idle(i));
    }
    for (const size_t i : quiet_now_) any_stops ? go_on(i) : schedule_anew(i);
  }

  void schedule_anew(size_t rank) {
    settle(rank);
    parts_[rank].clear();
    ranks_[rank]->schedule(parts_[rank]);
    quiet_[rank].changed = false;
    quiet_[rank].left.reset();
  }

  int64_t equal_steps_left(size_t rank) {
    Quiet& quiet = quiet_[rank];
    if (!quiet.left) quiet.left = quiet_steps(parts_[rank], ranks_[rank]->repeats(parts_[rank]));
    return *quiet.left;
  }

  // Of the steps equal to `part` that follow it: the last of them may end a sequence.
  int64_t quiet_steps(const Batch& part, int64_t repeats) const {
    constexpr size_t least_decodes = 8;  // fewer are as soon brought up to date
    return repeats > 1 && part.entries().size() >= least_decodes && may_lag(part) ? repeats - 1 : 0;
  }

  // Nobody asks for single steps of the sequences, and their blocks are the same to all others.
  bool may_lag(const Batch& part) const {
    return std::all_of(part.entries().begin(), part.entries().end(), [&](const BatchEntry& entry) {
      const Sequence& one = *entry.sequence;
      return !one.watched && one.request.thinking_tokens == 0 && one.contents.size() == one.block_hashes.size() &&
             one.blocks * block_size_ - one.computed < block_size_;
    });
  }

  void go_on(size_t rank) {
    Quiet& quiet = quiet_[rank];
    if (!quiet.decodes) {
      const std::span<const BatchEntry> entries = parts_[rank].entries();
      StepBatch step = parts_[rank].step();
      step.prompts = {};
      step.images = {};
      quiet.decodes =
          std::make_shared<QuietDecodes>(QuietDecodes{.entries = {entries.begin(), entries.end()}, .step = step});
      quiet.takers.assign(static_cast<size_t>(block_size_), 0);
      for (const BatchEntry& entry : entries) {
        const Sequence& one = *entry.sequence;
        ++quiet.takers[static_cast<size_t>(one.blocks * block_size_ - one.computed)];
      }
    }
    quiet.blocks_taken += quiet.takers[static_cast<size_t>(quiet.decodes->chosen % block_size_)];
    ++quiet.decodes->chosen;
    --*quiet.left;
  }

  void settle(size_t rank) {
    Quiet& quiet = quiet_[rank];
    if (!quiet.decodes) return;
    QuietDecodes& decodes = *quiet.decodes;
    const int64_t in_flight = decodes.chosen - decodes.ended;
    ranks_[rank]->repeat(parts_[rank], decodes.chosen);
    for (const BatchEntry& entry : decodes.entries) {
      Sequence& sequence = *entry.sequence;
      sequence.produced -= in_flight;
      sequence.steps_in_flight = static_cast<int16_t>(sequence.steps_in_flight + in_flight);
      if (decodes.ended > 0) sequence.record.last_token = decodes.last_token;
    }
    decodes.settled = true;
    quiet.decodes.reset();
    quiet.blocks_taken = 0;
  }

  // The sequence's rank, to which something happens.
  Scheduler& changed(const Sequence& sequence) {
    const auto rank = static_cast<size_t>(sequence.rank);
    settle(rank);
    quiet_[rank].changed = true;
    return *ranks_[rank];
  }

  Scheduler& rank_of(const Sequence& sequence) const { return *ranks_[static_cast<size_t>(sequence.rank)]; }

  void choose_rank(Sequence& sequence) {
    if (sequence.request.follows) {  // it shares its prompt with the one before
      sequence.rank = last_rank_;
      return;
    }
    loads_.clear();
    for (size_t i = 0; i < ranks_.size(); ++i) {
      const SchedulerLoad load = load_of(i);
      loads_.push_back({.replica = static_cast<int32_t>(loads_.size()),
                        .outstanding = load.running + load.waiting,
                        .running = load.running,
                        .waiting = load.waiting,
                        .blocks_used = load.blocks_used,
                        .blocks = load.blocks});
    }
    sequence.rank = last_rank_ = static_cast<int16_t>(router_->choose(sequence.request, loads_));
  }

  void join_parts(Batch& batch) const {
    for (const Batch& part : parts_) batch.join(part);
  }

  std::unique_ptr<RequestRouter> router_;
  bool prompts_stop_ranks_;
  int64_t block_size_;
  bool may_be_quiet_;
  std::vector<std::unique_ptr<Scheduler>> ranks_;
  std::vector<Batch> parts_;  // of the step chosen last, by rank; of a quiet one the last that was chosen anew
  std::vector<Quiet> quiet_;
  std::vector<size_t> quiet_now_;  // scratch
  std::vector<ReplicaLoad> loads_;
  int16_t last_rank_ = 0;
};

}  // namespace

std::unique_ptr<Scheduler> make_lock_step_ranks(const SchedulerKind& kind, const SchedulerOptions& options) {
  return std::make_unique<LockStepRanks>(kind, options);
}

}  // namespace foretoken
