#include <algorithm>
#include <memory>
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
        prompts_stop_ranks_(options.prompts_stop_ranks) {
    SchedulerOptions one = options;
    one.lock_step_ranks = 1;
    for (int64_t rank = 0; rank < options.lock_step_ranks; ++rank) ranks_.push_back(kind.make(one));
    parts_.resize(ranks_.size());
  }

  int64_t capacity_tokens() const override { return ranks_.front()->capacity_tokens(); }

  void add(Sequence& sequence) override {
    choose_rank(sequence);
    rank_of(sequence).add(sequence);
  }

  void schedule(Batch& batch) override {
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
      if (parts_[i].empty()) {
        const SchedulerLoad load = ranks_[i]->load();
        if (load.waiting + load.running > 0) return 0;
        continue;
      }
      const int64_t repeats = ranks_[i]->repeats(parts_[i]);
      if (repeats == 0) return 0;
      least = least < 0 ? repeats : std::min(least, repeats);
    }
    return std::max<int64_t>(0, least);
  }

  void repeat(Batch& batch, int64_t count) override {
    for (size_t i = 0; i < ranks_.size(); ++i) {
      if (!parts_[i].empty()) ranks_[i]->repeat(parts_[i], count);
    }
    batch.clear();
    join_parts(batch);
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

  void release(Sequence& sequence) override { rank_of(sequence).release(sequence); }
  void set_aside(Sequence& sequence) override { rank_of(sequence).set_aside(sequence); }
  void receive(Sequence& sequence) override { rank_of(sequence).receive(sequence); }

  bool expect(Sequence& sequence, int64_t spare) override {
    choose_rank(sequence);
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
    for (const auto& rank : ranks_) {
      const SchedulerLoad one = rank->load();
      sum.running += one.running;
      sum.waiting += one.waiting;
      sum.blocks_used += one.blocks_used;
      sum.blocks += one.blocks;
    }
    return sum;
  }

 private:
  Scheduler& rank_of(const Sequence& sequence) const { return *ranks_[static_cast<size_t>(sequence.rank)]; }

  void choose_rank(Sequence& sequence) {
    if (sequence.request.follows) {  // it shares its prompt with the one before
      sequence.rank = last_rank_;
      return;
    }
    loads_.clear();
    for (const auto& rank : ranks_) {
      const SchedulerLoad load = rank->load();
      loads_.push_back({.replica = static_cast<int32_t>(loads_.size()),
                        .outstanding = load.running + load.waiting,
                        .running = load.running,
                        .waiting = load.waiting,
                        .blocks_used = load.blocks_used,
                        .blocks = load.blocks});
    }
    sequence.rank = last_rank_ = static_cast<int32_t>(router_->choose(sequence.request, loads_));
  }

  void join_parts(Batch& batch) const {
    for (const Batch& part : parts_) batch.join(part);
  }

  std::unique_ptr<RequestRouter> router_;
  bool prompts_stop_ranks_;
  std::vector<std::unique_ptr<Scheduler>> ranks_;
  std::vector<Batch> parts_;  // of the step chosen last, by rank
  std::vector<ReplicaLoad> loads_;
  int32_t last_rank_ = 0;
};

}  // namespace

std::unique_ptr<Scheduler> make_lock_step_ranks(const SchedulerKind& kind, const SchedulerOptions& options) {
  return std::make_unique<LockStepRanks>(kind, options);
}

}  // namespace foretoken
