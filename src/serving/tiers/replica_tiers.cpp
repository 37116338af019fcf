#include "serving/tiers/replica_tiers.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/look_ahead.h"
#include "base/random.h"

namespace foretoken {
namespace {

// Apart from the contents of prompts.
uint64_t sequence_key(int64_t request) {
  uint64_t state = static_cast<uint64_t>(request) ^ 0x5eed5a9ced0ffU;
  return splitmix64(state);
}

}  // namespace

std::optional<ReplicaTiers::Held> ReplicaTiers::held(uint64_t content) const {
  for (size_t tier = 0; tier < tiers_->count(); ++tier) {
    const TierEntry* entry = store(tier).find(content);
    if (entry != nullptr && entry->can_be_read(now_)) return Held{.tier = tier, .ready = entry->ready};
  }
  return std::nullopt;
}

std::optional<size_t> ReplicaTiers::tier_with(uint64_t content) const {
  const std::optional<Held> found = held(content);
  return found ? std::optional(found->tier) : std::nullopt;
}

int64_t ReplicaTiers::find(std::span<const uint64_t> contents, int64_t content_tokens, int64_t context_tokens) {
  size_t found = 0;
  for (; found < contents.size(); ++found) {
    bring_group_near(contents, found, [&](std::span<const uint64_t> group) { bring_near(group); });
    if (!tier_with(contents[found])) break;
  }
  if (found == 0 || !tiers_->settings().recompute_if_faster) return static_cast<int64_t>(found);
  return quickest(contents.first(found), content_tokens, context_tokens);
}

// Of the lengths at which the tier changes: the one after which all of the contents are there the soonest.
int64_t ReplicaTiers::quickest(std::span<const uint64_t> contents, int64_t content_tokens, int64_t context_tokens) {
  const auto seconds_with = [&](size_t loaded) {
    const auto loaded_tokens = static_cast<int64_t>(loaded) * content_tokens;
    const auto tokens_left = static_cast<int64_t>(contents.size() - loaded) * content_tokens;
    return to_seconds(load_end(contents.first(loaded), content_tokens) - now_).value() +
           compute_seconds(tokens_left, context_tokens + loaded_tokens);
  };
  size_t best = 0;
  double best_seconds = seconds_with(0);
  for (size_t i = 1; i <= contents.size(); ++i) {
    if (i < contents.size() && tier_with(contents[i]) == tier_with(contents[i - 1])) continue;
    if (const double seconds = seconds_with(i); seconds < best_seconds) {
      best = i;
      best_seconds = seconds;
    }
  }
  return static_cast<int64_t>(best);
}

double ReplicaTiers::compute_seconds(int64_t tokens, int64_t context_tokens) {
  if (tokens == 0) return 0;
  const std::array<PromptChunk, 1> prompt{
      {{.new_tokens = tokens, .context_tokens = context_tokens, .yields_token = false}}};
  return times_->step_seconds({.prompts = prompt}).value;
}

ReplicaTiers::Reads ReplicaTiers::reads_of(std::span<const uint64_t> contents, int64_t content_tokens) const {
  Reads reads{.tokens = std::vector<int64_t>(tiers_->count()),
              .ready = std::vector<Picoseconds>(tiers_->count(), now_)};
  for (const uint64_t content : contents) {
    const Held found = held(content).value();
    reads.tokens[found.tier] += content_tokens;
    reads.ready[found.tier] = std::max(reads.ready[found.tier], found.ready);
  }
  return reads;
}

Picoseconds ReplicaTiers::load_end(std::span<const uint64_t> contents, int64_t content_tokens) const {
  const Reads reads = reads_of(contents, content_tokens);
  Picoseconds end = now_;
  for (size_t tier = 0; tier < tiers_->count(); ++tier) {
    if (reads.tokens[tier] == 0) continue;
    const double bytes = tiers_->bytes(reads.tokens[tier]);
    end = std::max(end, tiers_->read_link(tier, replica_).end_of(bytes, reads.ready[tier]));
  }
  return end;
}

void ReplicaTiers::load(std::span<const uint64_t> contents, int64_t content_tokens, int64_t used_tokens, bool resumed) {
  const Reads reads = reads_of(contents, content_tokens);
  for (const uint64_t content : contents) {
    const int64_t used = std::min(content_tokens, used_tokens);
    KvTierUse& use = tiers_->use(*tier_with(content));
    (resumed ? use.resumed_tokens : use.hit_tokens) += used;
    used_tokens -= used;
  }
  for (size_t tier = 0; tier < tiers_->count(); ++tier) {
    if (reads.tokens[tier] > 0) read(tier, reads.tokens[tier], reads.ready[tier]);
  }
}

// To the GPU, for the step that is being chosen.
void ReplicaTiers::read(size_t tier, int64_t tokens, Picoseconds ready) {
  TierLink& link = tiers_->read_link(tier, replica_);
  const Picoseconds begin = link.start(ready), end = link.move(tiers_->bytes(tokens), ready);
  loads_.begin = loads_.any ? std::min(loads_.begin, begin) : begin;
  loads_.end = std::max(loads_.end, end);
  loads_.any = true;
  tiers_->use(tier).read_tokens += tokens;
}

void ReplicaTiers::set_apart(Sequence& sequence) {
  ensure(loads_.any, "a sequence waits for what it loads");
  apart_.push_back({.sequence = &sequence, .until = loads_.end});
  ++tiers_->usage().waiting_requests;
  tiers_->usage().requests_waited += loads_.end - now_;
  loads_ = {};
}

void ReplicaTiers::prefetch(std::span<const uint64_t> contents, int64_t content_tokens) {
  if (!tiers_->settings().prefetch) return;
  const double bytes = tiers_->bytes(content_tokens);
  for (const uint64_t content : contents) {
    const std::optional<size_t> tier = tier_with(content);
    if (!tier) return;
    if (*tier == 0) continue;
    TierLink& link = tiers_->read_link(*tier, replica_);
    if (!keep(0, {.key = content, .tokens = content_tokens, .ready = link.end_of(bytes, now_), .awaited = true}))
      return;
    link.move(bytes, now_);
    tiers_->use(*tier).read_tokens += content_tokens;
  }
}

void ReplicaTiers::computed(uint64_t content, int64_t tokens) {
  if (tiers_->settings().writes == TierWrites::through) put_everywhere(content, tokens);
}

void ReplicaTiers::found_on_gpu(uint64_t content, int64_t tokens) {
  if (tiers_->settings().writes == TierWrites::selective) put_everywhere(content, tokens);
}

void ReplicaTiers::evicted(uint64_t content, int64_t tokens) {
  if (writes_back()) put(0, content, tokens);
}

void ReplicaTiers::let_go(std::span<const uint64_t> contents) {
  for (size_t tier = 0; tier < tiers_->count(); ++tier) store(tier).touch_last_first(contents);
}

void ReplicaTiers::bring_near(std::span<const uint64_t> contents) const {
  for (size_t tier = 0; tier < tiers_->count(); ++tier) store(tier).bring_near(contents);
}

void ReplicaTiers::put_everywhere(uint64_t content, int64_t tokens) {
  for (size_t tier = 0; tier < tiers_->count(); ++tier) put(tier, content, tokens);
}

// False where the tier has no room for it. What must go for it moves down where blocks are written back.
bool ReplicaTiers::keep(size_t tier, const TierEntry& entry) {
  std::vector<TierEntry> dropped;
  if (!store(tier).put(entry, dropped)) return false;
  if (writes_back()) {
    for (const TierEntry& one : dropped) put(tier + 1, one.key, one.tokens);
  }
  return true;
}

// Into this tier; written back into the first from here on that has room.
void ReplicaTiers::put(size_t tier, uint64_t content, int64_t tokens) {
  if (tier == tiers_->count()) return;
  if (store(tier).touch(content)) return;
  TierLink& link = tiers_->write_link(tier, replica_);
  const double bytes = tiers_->bytes(tokens);
  if (keep(tier, {.key = content, .tokens = tokens, .ready = link.end_of(bytes, now_)})) {
    link.move(bytes, now_);
    tiers_->use(tier).written_tokens += tokens;
  } else if (writes_back()) {
    put(tier + 1, content, tokens);
  }
}

void ReplicaTiers::swap_out(int64_t request, int64_t tokens) {
  if (!tiers_->settings().swap || tokens == 0) return;
  TierLink& link = tiers_->write_link(0, replica_);
  const double bytes = tiers_->bytes(tokens);
  const Picoseconds out = link.end_of(bytes, now_);
  if (!keep(0, {.key = sequence_key(request), .tokens = tokens, .ready = out, .awaited = true})) return;
  link.move(bytes, now_);
  swapped_out_ = std::max(swapped_out_, out);
  tiers_->use(0).written_tokens += tokens;
  ++tiers_->usage().swapped_sequences;
}

int64_t ReplicaTiers::swapped_tokens(int64_t request) const {
  if (!tiers_->settings().swap) return 0;
  const std::optional<size_t> tier = tier_with(sequence_key(request));
  return tier ? store(*tier).find(sequence_key(request))->tokens : 0;
}

void ReplicaTiers::swap_in(int64_t request, int64_t tokens) {
  const uint64_t key = sequence_key(request);
  const std::optional<size_t> tier = tier_with(key);
  if (!tier) return;
  if (tokens > 0) {
    read(*tier, tokens, std::max(now_, store(*tier).find(key)->ready));
    tiers_->use(*tier).resumed_tokens += tokens;
  }
  for (size_t each = 0; each < tiers_->count(); ++each) store(each).remove(key);
}

Picoseconds ReplicaTiers::earliest_begin(Picoseconds begin) {
  Picoseconds earliest = std::max(begin, swapped_out_);
  if (loads_.any && tiers_->settings().loads == TierLoads::blocking) {
    earliest = std::max(earliest, loads_.end);
    loads_ = {};
  }
  swapped_out_ = 0;
  if (earliest > begin) {
    ++tiers_->usage().waiting_steps;
    tiers_->usage().waited += earliest - begin;
  }
  return earliest;
}

Picoseconds ReplicaTiers::end(Picoseconds begin, Picoseconds length) {
  if (!loads_.any) return begin + length;
  // Layer i of n arrives at loads.begin + i/n of the load, and n - i + 1 layers are left to compute then: the first or
  // the last layer decides.
  const int64_t layers = tiers_->settings().layers;
  const Picoseconds first = loads_.begin + (loads_.end - loads_.begin) / layers + length;
  const Picoseconds last = loads_.end + length / layers;
  const Picoseconds end = std::max({begin + length, first, last});
  loads_ = {};
  if (end > begin + length) {
    ++tiers_->usage().waiting_steps;
    tiers_->usage().waited += end - begin - length;
  }
  return end;
}

}  // namespace foretoken
