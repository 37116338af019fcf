#include "network/replay/summary.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace foretoken {
namespace {

std::vector<CollectiveSummary> summarize_collectives(const ReplayWorkload& workload, const ReplayResult& result) {
  std::map<std::tuple<CollectiveKind, int64_t, double>, CollectiveSummary> groups;
  for (const CollectiveRun& run : result.collectives) {
    const auto ranks = static_cast<int64_t>(workload.groups[static_cast<size_t>(run.group)].ranks.size());
    CollectiveSummary& summary = groups[{run.kind, ranks, run.bytes}];
    const Picoseconds time = run.finish - run.start;
    summary.kind = run.kind;
    summary.ranks = ranks;
    summary.bytes = run.bytes;
    summary.shortest = summary.calls == 0 ? time : std::min(summary.shortest, time);
    summary.longest = std::max(summary.longest, time);
    summary.total += time;
    summary.skew += run.start - run.first_arrival;
    ++summary.calls;
  }
  std::vector<CollectiveSummary> sorted;
  sorted.reserve(groups.size());
  for (const auto& [key, summary] : groups) sorted.push_back(summary);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const CollectiveSummary& a, const CollectiveSummary& b) { return a.total > b.total; });
  return sorted;
}

std::string kind_of(const ReplayNode& node) {
  return std::string(node.kind == ReplayKind::collective ? collective_kind_name(node.collective)
                                                         : replay_kind_name(node.kind));
}

std::vector<PathPart> summarize_path(const ReplayWorkload& workload, const ReplayResult& result, bool by_name) {
  std::map<std::pair<std::string, std::string>, PathPart> parts;
  for (const PathStep& step : result.critical_path) {
    const ReplayNode& node = workload.ranks[step.rank].nodes[step.node];
    const std::string kind = kind_of(node), name = by_name ? workload.names[node.name] : "";
    PathPart& part = parts[{kind, name}];
    part.kind = kind;
    part.name = name;
    part.time += step.finish - step.start;
    ++part.nodes;
  }
  std::vector<PathPart> sorted;
  sorted.reserve(parts.size());
  for (auto& [key, part] : parts) sorted.push_back(std::move(part));
  std::stable_sort(sorted.begin(), sorted.end(), [](const PathPart& a, const PathPart& b) { return a.time > b.time; });
  return sorted;
}

RankTimes mean_of(const std::vector<RankTimes>& ranks) {
  RankTimes mean;
  const auto count = static_cast<Picoseconds>(ranks.size());
  for (Picoseconds RankTimes::*part :
       {&RankTimes::compute, &RankTimes::exposed_communication, &RankTimes::memory, &RankTimes::waiting,
        &RankTimes::host, &RankTimes::idle, &RankTimes::communication, &RankTimes::finish}) {
    // Quotient and remainder apart: the sum over many ranks might not fit the clock.
    Picoseconds remainders = 0;
    for (const RankTimes& rank : ranks) {
      mean.*part += rank.*part / count;
      remainders += rank.*part % count;
    }
    mean.*part += remainders / count;
  }
  return mean;
}

}  // namespace

ReplaySummary summarize_replay(const ReplayWorkload& workload, const ReplayResult& result) {
  return {.makespan = result.makespan,
          .mean = mean_of(result.ranks),
          .collectives = summarize_collectives(workload, result),
          .path_by_kind = summarize_path(workload, result, false),
          .path_by_name = summarize_path(workload, result, true)};
}

}  // namespace foretoken
