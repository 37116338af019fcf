#include "network/replay/workload.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>

#include <fmt/format.h>

#include "base/error.h"

namespace foretoken {

std::string_view replay_kind_name(ReplayKind kind) {
  constexpr std::string_view names[] = {"marker", "host", "compute", "memory", "collective", "send", "receive"};
  return names[static_cast<size_t>(kind)];
}

size_t ReplayWorkload::node_count() const {
  size_t count = 0;
  for (const RankProgram& rank : ranks) count += rank.nodes.size();
  return count;
}

void RankGraph::add(const ReplayNode& node) {
  nodes_.push_back(node);
  first_wait_.push_back(static_cast<uint32_t>(waits_.size()));
}

void RankGraph::wait_for(std::span<const uint64_t> ids) {
  waits_.insert(waits_.end(), ids.begin(), ids.end());
}

int32_t RankGraph::lane(ReplayKind kind, int64_t number) {
  const auto [place, is_new] = lane_places_.try_emplace(std::pair(kind, number), static_cast<int32_t>(lanes_.size()));
  if (is_new) lanes_.push_back({.kind = kind, .number = number});
  return place->second;
}

// `waits_` as places in `nodes_` rather than ids.
std::vector<uint32_t> RankGraph::waited_nodes() const {
  std::vector<uint32_t> by_id(nodes_.size());
  std::iota(by_id.begin(), by_id.end(), 0U);
  const auto earlier_id = [&](uint32_t a, uint32_t b) { return nodes_[a].id < nodes_[b].id; };
  if (!std::is_sorted(by_id.begin(), by_id.end(), earlier_id)) std::sort(by_id.begin(), by_id.end(), earlier_id);
  for (size_t i = 1; i < by_id.size(); ++i) {
    if (nodes_[by_id[i - 1]].id == nodes_[by_id[i]].id) {
      throw InputError({.source = source_,
                        .path = fmt::format("node {}", nodes_[by_id[i]].id),
                        .expected = "ids that no other node of the rank has"});
    }
  }
  // Ids mostly count up by one, so the first guess is nearly always right.
  const uint64_t first_id = nodes_.empty() ? 0 : nodes_[by_id[0]].id;
  std::vector<uint32_t> result;
  result.reserve(waits_.size());
  size_t owner = 0;
  for (size_t i = 0; i < waits_.size(); ++i) {
    while (owner + 1 < nodes_.size() && first_wait_[owner + 1] <= i) ++owner;
    const uint64_t id = waits_[i];
    const uint64_t guess = id - first_id;
    if (guess < by_id.size() && nodes_[by_id[guess]].id == id) {
      result.push_back(by_id[guess]);
      continue;
    }
    const auto found = std::lower_bound(by_id.begin(), by_id.end(), id,
                                        [&](uint32_t node, uint64_t wanted) { return nodes_[node].id < wanted; });
    if (found == by_id.end() || nodes_[*found].id != id) {
      throw InputError({.source = source_,
                        .path = fmt::format("node {}", nodes_[owner].id),
                        .value = fmt::format("depends on node {}", id),
                        .expected = "the id of a node of this rank"});
    }
    result.push_back(*found);
  }
  return result;
}

std::span<const uint32_t> RankGraph::waits_of(size_t node, std::span<const uint32_t> waits) const {
  const size_t end = node + 1 < nodes_.size() ? first_wait_[node + 1] : waits.size();
  return waits.subspan(first_wait_[node], end - first_wait_[node]);
}

// Names a circle among the nodes that could not be placed: each of them waits for another one of them.
std::string RankGraph::circle(std::span<const uint32_t> waits, const std::vector<bool>& placed) const {
  const auto next = [&](uint32_t node) {
    for (const uint32_t waited : waits_of(node, waits)) {
      if (!placed[waited]) return waited;
    }
    throw InternalError("a node that is not placed waits for another one");
  };
  const auto first = static_cast<uint32_t>(std::find(placed.begin(), placed.end(), false) - placed.begin());
  // Two walkers, one twice as fast, meet on the circle (Floyd).
  uint32_t slow = next(first), fast = next(next(first));
  while (slow != fast) slow = next(slow), fast = next(next(fast));
  constexpr int most_named = 12;
  std::string text = fmt::format("{}", nodes_[slow].id);
  int named = 1;
  uint32_t at = next(slow);
  for (; at != slow && named < most_named; at = next(at), ++named) text += fmt::format(" -> {}", nodes_[at].id);
  return text + (at == slow ? fmt::format(" -> {}", nodes_[slow].id) : " -> ...");
}

std::vector<uint32_t> RankGraph::program_order(std::span<const uint32_t> waits) const {
  std::vector<uint32_t> order(nodes_.size());
  std::iota(order.begin(), order.end(), 0U);
  bool in_order = true;
  for (size_t node = 0; node < nodes_.size() && in_order; ++node) {
    for (const uint32_t waited : waits_of(node, waits)) in_order = in_order && waited < node;
  }
  if (in_order) return order;

  std::vector<uint32_t> missing(nodes_.size()), first_dependent(nodes_.size() + 1), dependents(waits.size());
  for (const uint32_t waited : waits) ++first_dependent[waited + 1];
  std::partial_sum(first_dependent.begin(), first_dependent.end(), first_dependent.begin());
  std::vector<uint32_t> next = first_dependent;
  for (size_t node = 0; node < nodes_.size(); ++node) {
    const std::span<const uint32_t> waited = waits_of(node, waits);
    missing[node] = static_cast<uint32_t>(waited.size());
    for (const uint32_t other : waited) dependents[next[other]++] = static_cast<uint32_t>(node);
  }
  std::priority_queue<uint32_t, std::vector<uint32_t>, std::greater<>> ready;
  for (uint32_t node = 0; node < nodes_.size(); ++node) {
    if (missing[node] == 0) ready.push(node);
  }
  order.clear();
  std::vector<bool> placed(nodes_.size());
  while (!ready.empty()) {
    const uint32_t node = ready.top();
    ready.pop();
    order.push_back(node);
    placed[node] = true;
    for (uint32_t i = first_dependent[node]; i < first_dependent[node + 1]; ++i) {
      if (--missing[dependents[i]] == 0) ready.push(dependents[i]);
    }
  }
  if (order.size() < nodes_.size()) {
    throw InputError({.source = source_,
                      .path = "dependencies",
                      .value = fmt::format("nodes wait for each other: {}", circle(waits, placed)),
                      .expected = "no circle among them"});
  }
  return order;
}

RankProgram RankGraph::program() && {
  const std::vector<uint32_t> waits = waited_nodes();
  const std::vector<uint32_t> order = program_order(waits);
  std::vector<uint32_t> place(nodes_.size());
  for (uint32_t i = 0; i < order.size(); ++i) place[order[i]] = i;

  RankProgram program{.source = std::move(source_), .lanes = std::move(lanes_)};
  program.nodes.reserve(nodes_.size());
  program.waits_for.reserve(nodes_.size());
  program.first_dependent.resize(nodes_.size() + 1);
  program.dependents.resize(waits.size());
  for (const uint32_t waited : waits) ++program.first_dependent[place[waited] + 1];
  std::partial_sum(program.first_dependent.begin(), program.first_dependent.end(), program.first_dependent.begin());
  std::vector<uint32_t> next = program.first_dependent;
  for (uint32_t i = 0; i < order.size(); ++i) {
    const uint32_t node = order[i];
    const std::span<const uint32_t> waited = waits_of(node, waits);
    program.nodes.push_back(nodes_[node]);
    program.waits_for.push_back(static_cast<uint32_t>(waited.size()));
    for (const uint32_t other : waited) program.dependents[next[place[other]]++] = i;
  }
  return program;
}

}  // namespace foretoken
