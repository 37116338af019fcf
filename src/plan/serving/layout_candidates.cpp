#include "plan/serving/layout_candidates.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"

namespace foretoken {
namespace {

// Layouts of a group whose bounds are as near as that are alike until they are simulated.
constexpr double alike = 0.98;

// Of two that differ only in limits that no run reaches: whose cache holds more, else the engine's own or lower limits.
// It does not matter which of them was listed first.
bool stands_before(const LayoutCandidate& a, const LayoutCandidate& b) {
  if (a.filled_blocks != b.filled_blocks) return a.filled_blocks > b.filled_blocks;
  const auto limits = [](const ServingLayout& layout) {
    const EnginePool& decode = layout.decode ? *layout.decode : layout.pool;
    return std::tuple(layout.pool.host_gib, decode.max_num_seqs, decode.max_num_batched_tokens,
                      layout.pool.max_num_seqs, layout.pool.max_num_batched_tokens);
  };
  return limits(*a.layout) < limits(*b.layout);
}

// The same for layouts that run alike where they reach the same limits.
std::string alike_key(ServingLayout layout) {
  layout.pool.host_gib = layout.pool.max_num_seqs = layout.pool.max_num_batched_tokens = 0;
  if (layout.decode) layout.decode->max_num_seqs = layout.decode->max_num_batched_tokens = 0;
  return layout.key();
}

// What two layouts may differ in and have the same key.
struct Differing {
  bool limits = false, replicas = false;
};
std::string engines_key(const ServingLayout& layout, const Differing& may_differ) {
  ServingLayout plain = layout;
  for (EnginePool* pool : {&plain.pool, plain.decode ? &*plain.decode : nullptr}) {
    if (pool == nullptr) continue;
    if (may_differ.limits) pool->max_num_seqs = pool->max_num_batched_tokens = 0;
    if (may_differ.replicas) pool->replicas = 0;
  }
  return plain.key();
}

void remember_tried(TriedEngine& tried, const LayoutJudgement& judgement, const ServingLayout& layout) {
  if (tried.alone_ms.empty()) tried.alone_ms = judgement.alone_ms;
  for (size_t i = 0; i < judgement.alone_ms.size(); ++i) {
    tried.alone_ms[i] = std::min(tried.alone_ms[i], judgement.alone_ms[i]);
  }
  if (judgement.pruned || judgement.most_requests_per_s <= tried.most_requests_per_s) return;
  tried.most_requests_per_s = judgement.most_requests_per_s;
  tried.most_capable = layout;
}

void remember_alone(std::vector<FastestAlone>& fastest, const LayoutJudgement& judgement, const ServingLayout& layout) {
  if (fastest.empty()) {
    for (const double ms : judgement.alone_ms) fastest.push_back({.ms = ms, .layout = layout});
  }
  for (size_t i = 0; i < judgement.alone_ms.size(); ++i) {
    if (judgement.alone_ms[i] < fastest[i].ms) fastest[i] = {.ms = judgement.alone_ms[i], .layout = layout};
  }
}

LayoutCandidate candidate_of(const ServingLayout& layout, const LayoutJudgement& judgement) {
  return {.layout = &layout,
          .bound = judgement.most_requests_per_s,
          .most_requests_per_s = judgement.most_requests_per_s,
          .shape = judgement.shape,
          .group = engines_key(layout, {.limits = true}),
          .kind = engines_key(layout, {.replicas = true}),
          .family = engines_key(layout, {.limits = true, .replicas = true}),
          .plain_group = layout.pool.host_gib > 0 ? alike_key(layout) : "",
          .filled_blocks = judgement.filled_blocks,
          .point = {}};
}

// The first of each group whose bound is about the group's best.
void choose_for_groups(std::vector<LayoutCandidate>& candidates) {
  std::map<std::string, double> most;
  for (const LayoutCandidate& one : candidates) most[one.group] = std::max(most[one.group], one.most_requests_per_s);
  std::map<std::string, bool> stands;
  for (LayoutCandidate& one : candidates) {
    if (stands[one.group] || one.most_requests_per_s < alike * most[one.group]) continue;
    one.stands_for_group = stands[one.group] = true;
  }
}

// Counts the layout with its device and engine; the reason if it cannot do what is asked for.
std::optional<PruneReason> ruled_out(const ServingQuestion& question, const LayoutJudgement& judgement,
                                     const ServingLayout& layout, ServingSearchResult& result) {
  remember_alone(result.fastest_alone, judgement, layout);
  std::optional<PruneReason> pruned = judgement.pruned;
  if (!pruned && question.rate && judgement.most_requests_per_s < *question.rate) {
    pruned = PruneReason::too_few_requests;
  }
  TriedEngine* tried = tried_with(result, layout);
  if (tried != nullptr) {
    ++tried->layouts;
    remember_tried(*tried, judgement, layout);
  }
  if (pruned) {
    ++result.pruned[static_cast<size_t>(*pruned)];
    if (tried != nullptr) ++tried->pruned[static_cast<size_t>(*pruned)];
  }
  return pruned;
}

}  // namespace

TriedEngine* tried_with(ServingSearchResult& result, const ServingLayout& layout) {
  if (layout.is_mixed()) return nullptr;
  const auto same = std::find_if(result.tried.begin(), result.tried.end(), [&](const TriedEngine& one) {
    return one.device == layout.pool.engine.device && one.engine == layout.pool.engine.engine;
  });
  ensure(same != result.tried.end(), "layouts are of devices and engines that were asked for");
  return &*same;
}

Multiple multiple_of(const ServingLayout& layout, const ServingLayout& other) {
  const auto times = [](const EnginePool& pool, const EnginePool& others) {
    return static_cast<double>(pool.replicas) / static_cast<double>(others.replicas);
  };
  const double prompts = times(layout.pool, other.pool);
  const double decodes = layout.decode ? times(*layout.decode, *other.decode) : prompts;
  return {.least = std::min(prompts, decodes), .most = std::max(prompts, decodes)};
}

std::vector<LayoutCandidate> layout_candidates(const ServingQuestion& question, const SearchedPart& part,
                                               ServingSearchResult& result) {
  if (part.hardware != nullptr) {
    for (const std::string& engine : question.choices.engines) {
      result.tried.push_back(
          {.device = part.hardware->device.name, .engine = engine, .most_capable = {}, .alone_ms = {}});
    }
  }
  std::vector<LayoutCandidate> candidates;
  std::map<std::string, size_t> seen;  // by group and the limits that can be reached: the layout that stands for all
  for (size_t i = 0; i < part.space.layouts.size(); ++i) {
    const ServingLayout& layout = part.space.layouts[i];
    const LayoutJudgement& judgement = part.judgements[i];
    if (ruled_out(question, judgement, layout, result)) continue;
    LayoutCandidate own = candidate_of(layout, judgement);
    const std::string runs_as = fmt::format("{} {}", own.plain_group.empty() ? own.group : own.plain_group,
                                            fmt::join(judgement.reachable, " "));
    const auto [place, is_new] = seen.try_emplace(runs_as, candidates.size());
    if (judgement.reachable.empty() || is_new) {
      candidates.push_back(std::move(own));
      continue;
    }
    ++result.merged;
    if (stands_before(own, candidates[place->second])) candidates[place->second] = std::move(own);
  }
  choose_for_groups(candidates);
  return candidates;
}

}  // namespace foretoken
