#include "network/replay/stuck.h"

#include <algorithm>
#include <vector>

#include "base/error.h"

namespace foretoken {
namespace {

class Detective {
 public:
  Detective(const ReplayWorkload& workload, const NodeNumbers& numbers, const Matching& matching,
            std::span<const NodeRun> runs)
      : workload_(workload),
        numbers_(numbers),
        matching_(matching),
        runs_(runs),
        blockers_(workload.ranks.size()),
        call_before_(matching.calls.size(), no_node) {
    for (uint32_t call = 0; call < matching.calls.size(); ++call) {
      if (matching.calls[call].following != no_node) call_before_[matching.calls[call].following] = call;
    }
  }

  // An unfinished node that this one waits for.
  uint32_t awaited_by(uint32_t number) {
    const size_t rank = numbers_.rank_of(number);
    const ReplayNode& node = workload_.ranks[rank].nodes[numbers_.place_of(number)];
    if (!begun(number)) {
      const uint32_t blocker = blockers_of(rank)[numbers_.place_of(number)];
      return blocker != no_node ? blocker : earlier_of_group(number);
    }
    if (node.kind == ReplayKind::receive) return matching_.partner[number];
    ensure(node.kind == ReplayKind::collective, "only collectives and receives begin and never end");
    for (const uint32_t member : matching_.members_of(matching_.calls[matching_.partner[number]], workload_)) {
      if (!begun(member)) return member;
    }
    throw InternalError("a collective whose members are all there starts");
  }

 private:
  bool begun(uint32_t number) const { return runs_[number].start >= 0; }
  bool finished(uint32_t number) const { return runs_[number].finish >= 0; }

  // For each node of a rank an unfinished one that it depends on.
  const std::vector<uint32_t>& blockers_of(size_t rank) {
    std::vector<uint32_t>& blockers = blockers_[rank];
    const RankProgram& program = workload_.ranks[rank];
    if (!blockers.empty()) return blockers;
    blockers.assign(program.nodes.size(), no_node);
    for (size_t node = 0; node < program.nodes.size(); ++node) {
      if (finished(numbers_.number(rank, node))) continue;
      for (const uint32_t dependent : program.dependents_of(node)) blockers[dependent] = numbers_.number(rank, node);
    }
    return blockers;
  }

  // The collective of its group that comes before it on its rank.
  uint32_t earlier_of_group(uint32_t number) const {
    const uint32_t before = call_before_[matching_.partner[number]];
    ensure(before != no_node, "a node that has not begun waits for another one");
    for (const uint32_t member : matching_.members_of(matching_.calls[before], workload_)) {
      if (numbers_.rank_of(member) == numbers_.rank_of(number)) return member;
    }
    throw InternalError("every collective of a group has the same members");
  }

  const ReplayWorkload& workload_;
  const NodeNumbers& numbers_;
  const Matching& matching_;
  std::span<const NodeRun> runs_;
  std::vector<std::vector<uint32_t>> blockers_;  // by rank, where asked for
  std::vector<uint32_t> call_before_;            // of the same group
};

}  // namespace

std::string waiting_circle(const ReplayWorkload& workload, const NodeNumbers& numbers, const Matching& matching,
                           std::span<const NodeRun> runs) {
  Detective detective(workload, numbers, matching, runs);
  std::vector<uint32_t> walk;
  uint32_t at = 0;
  while (runs[at].finish >= 0) ++at;
  std::vector<bool> seen(runs.size());
  for (; !seen[at]; at = detective.awaited_by(at)) {
    seen[at] = true;
    walk.push_back(at);
  }
  const auto name = [&](uint32_t number) {
    return node_text(workload, numbers.rank_of(number), numbers.place_of(number));
  };
  constexpr size_t most_named = 12;
  std::string text;
  size_t named = 0;
  for (auto step = std::find(walk.begin(), walk.end(), at); step != walk.end() && named < most_named; ++step, ++named) {
    text += name(*step) + " -> ";
  }
  return text + (named < most_named ? name(at) : "...");
}

}  // namespace foretoken
