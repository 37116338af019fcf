// The tiers as one replica uses them: its cache asks here for what it has lost, and tells what it computes and loses.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "serving/steps/step_times.h"
#include "serving/tiers/kv_tiers.h"

namespace foretoken {

struct Sequence;

// Contents are named by the hashes of kv_blocks.h. Everything happens at the time that was last set.
class ReplicaTiers {
 public:
  // `times` tell what computing again would take; both outlive this.
  ReplicaTiers(KvTiers& tiers, size_t replica, StepTimes& times) : tiers_(&tiers), replica_(replica), times_(&times) {}

  void set_time(Picoseconds now) { now_ = now; }

  // ---- asked by the cache ----
  // How many of the first contents, of so many tokens each, are to be loaded on top of `context_tokens`.
  int64_t find(std::span<const uint64_t> contents, int64_t content_tokens, int64_t context_tokens);
  // They are: the step that is chosen now waits for them. `used_tokens` of them count as found, the first time or after
  // a preemption.
  void load(std::span<const uint64_t> contents, int64_t content_tokens, int64_t used_tokens, bool resumed);
  bool loads_apart() const { return tiers_->settings().loads == TierLoads::apart; }
  // What was loaded since the last step was chosen is of this sequence, which waits apart.
  void set_apart(Sequence& sequence);
  // A request with these contents begins to wait.
  void prefetch(std::span<const uint64_t> contents, int64_t content_tokens);

  // ---- told by the cache ----
  void computed(uint64_t content, int64_t tokens);
  void found_on_gpu(uint64_t content, int64_t tokens);
  void let_go(std::span<const uint64_t> contents);  // by a sequence that ends or is preempted, the last first
  // They are looked for or put next.
  void bring_near(std::span<const uint64_t> contents) const;
  void evicted(uint64_t content, int64_t tokens);

  // ---- preempted sequences ----
  // Keeps its cache, where that is done and there is room.
  void swap_out(int64_t request, int64_t tokens);
  // Tokens that are kept of it; 0 = none.
  int64_t swapped_tokens(int64_t request) const;
  // It goes on: `tokens` are loaded, all that is kept is given up.
  void swap_in(int64_t request, int64_t tokens);

  // ---- asked by the replica, for the step chosen since the last ----
  // Sequences that wait apart since the last call, and until when.
  struct Apart {
    Sequence* sequence = nullptr;
    Picoseconds until = 0;
  };
  std::vector<Apart> take_apart() { return std::exchange(apart_, {}); }
  // When it can begin, if nothing else keeps it from beginning at `begin`.
  Picoseconds earliest_begin(Picoseconds begin);
  // When it ends, if it begins at `begin` and computes for `length`. Nothing is pending afterwards.
  Picoseconds end(Picoseconds begin, Picoseconds length);

 private:
  struct Loads {
    Picoseconds begin = 0, end = 0;
    bool any = false;
  };

  // Tokens to be read from each tier, and when all of them can be.
  struct Reads {
    std::vector<int64_t> tokens;
    std::vector<Picoseconds> ready;
  };

  TierStore& store(size_t tier) const { return tiers_->store(tier, replica_); }
  bool writes_back() const { return tiers_->settings().writes == TierWrites::back; }
  // The tier of a content that can be read now, and when it is there.
  struct Held {
    size_t tier = 0;
    Picoseconds ready = 0;
  };
  std::optional<Held> held(uint64_t content) const;
  std::optional<size_t> tier_with(uint64_t content) const;
  Reads reads_of(std::span<const uint64_t> contents, int64_t content_tokens) const;
  Picoseconds load_end(std::span<const uint64_t> contents, int64_t content_tokens) const;
  int64_t quickest(std::span<const uint64_t> contents, int64_t content_tokens, int64_t context_tokens);
  void read(size_t tier, int64_t tokens, Picoseconds ready);
  bool keep(size_t tier, const TierEntry& entry);
  void put(size_t tier, uint64_t content, int64_t tokens);
  void put_everywhere(uint64_t content, int64_t tokens);
  double compute_seconds(int64_t tokens, int64_t context_tokens);

  KvTiers* tiers_;
  size_t replica_;
  StepTimes* times_;
  Picoseconds now_ = 0;
  std::vector<Apart> apart_;
  Loads loads_;                  // of the step that is being chosen
  Picoseconds swapped_out_ = 0;  // what it takes the place of has left by then
};

}  // namespace foretoken
