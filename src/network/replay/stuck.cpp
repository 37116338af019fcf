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
      : workload_(workload), numbers_(numbers), matching_(matching), runs_(runs) {}

  // An unfinished node that this one waits for.
  uint32_t awaited_by(uint32_t number) const {
    const size_t rank = numbers_.rank_of(number), place = numbers_.place_of(number);
    const ReplayNode& node = workload_.ranks[rank].nodes[place];
    if (!begun(number)) {
      for (size_t other = 0; other < place; ++other) {
        const auto dependents = workload_.ranks[rank].dependents_of(other);
        const bool waits = std::find(dependents.begin(), dependents.end(), place) != dependents.end();
        if (waits && !finished(numbers_.number(rank, other))) return numbers_.number(rank, other);
      }
      return earlier_of_group(number);
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

  // The collective of its group that comes before it on its rank.
  uint32_t earlier_of_group(uint32_t number) const {
    const uint32_t mine = matching_.partner[number];
    for (const CollectiveCall& call : matching_.calls) {
      if (call.following != mine) continue;
      for (const uint32_t member : matching_.members_of(call, workload_)) {
        if (numbers_.rank_of(member) == numbers_.rank_of(number)) return member;
      }
    }
    throw InternalError("a node that has not begun waits for another one");
  }

  const ReplayWorkload& workload_;
  const NodeNumbers& numbers_;
  const Matching& matching_;
  std::span<const NodeRun> runs_;
};

}  // namespace

std::string waiting_circle(const ReplayWorkload& workload, const NodeNumbers& numbers, const Matching& matching,
                           std::span<const NodeRun> runs) {
  const Detective detective(workload, numbers, matching, runs);
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
