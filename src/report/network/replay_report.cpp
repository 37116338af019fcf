#include "report/network/replay_report.h"

#include <algorithm>
#include <iterator>
#include <set>

#include <fmt/format.h>

#include "base/counted.h"
#include "base/error.h"
#include "base/text.h"
#include "network/transfer/collective.h"
#include "report/parts/table.h"

namespace foretoken {
namespace {

struct ReplayPart {
  std::string_view name;
  std::string_view key;
  Picoseconds RankTimes::*time;
};

constexpr ReplayPart run_parts[] = {
    {"compute", "compute_seconds", &RankTimes::compute},
    {"exposed communication", "exposed_communication_seconds", &RankTimes::exposed_communication},
    {"remote memory", "memory_seconds", &RankTimes::memory},
    {"waiting for other ranks", "waiting_seconds", &RankTimes::waiting},
    {"host only", "host_seconds", &RankTimes::host},
    {"idle", "idle_seconds", &RankTimes::idle},
};

double seconds(Picoseconds time) {
  return to_seconds(time).value();
}

std::string time_text(Picoseconds time) {
  return time == 0 ? "0" : duration_text(seconds(time));
}

double share(Picoseconds part, Picoseconds whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

// What nccl-tests calls bus bandwidth: bytes over the wire of one rank per second.
double bus_bandwidth(const CollectiveSummary& one) {
  if (one.total == 0) return 0;
  const CollectiveShape shape{.kind = one.kind, .ranks = one.ranks, .bytes = one.bytes};
  return wire_bytes(shape).value() * static_cast<double>(one.calls) / seconds(one.total);
}

Json times_json(const RankTimes& times) {
  Json result = Json::object();
  for (const ReplayPart& part : run_parts) result.set(std::string(part.key), seconds(times.*part.time));
  return result.set("communication_seconds", seconds(times.communication)).set("finish_seconds", seconds(times.finish));
}

Json collectives_json(const std::vector<CollectiveSummary>& collectives) {
  Json result = Json::array();
  for (const CollectiveSummary& one : collectives) {
    result.push(Json::object({{"collective", collective_kind_name(one.kind)},
                              {"ranks", one.ranks},
                              {"bytes", one.bytes},
                              {"calls", one.calls},
                              {"total_seconds", seconds(one.total)},
                              {"shortest_seconds", seconds(one.shortest)},
                              {"longest_seconds", seconds(one.longest)},
                              {"waiting_for_last_rank_seconds", seconds(one.skew)},
                              {"bus_bandwidth_bytes_per_second", bus_bandwidth(one)}}));
  }
  return result;
}

Json path_parts_json(const std::vector<PathPart>& parts) {
  Json result = Json::array();
  for (const PathPart& part : parts) {
    Json one = Json::object({{"kind", part.kind}});
    if (!part.name.empty()) one.set("name", part.name);
    result.push(std::move(one.set("nodes", part.nodes).set("seconds", seconds(part.time))));
  }
  return result;
}

Json path_json(const ReplayWorkload& workload, const ReplayResult& result, const ReplaySummary& summary) {
  constexpr size_t most_steps = 1000;  // more is what --trace is for
  Json steps = Json::array();
  for (const PathStep& step : result.critical_path) {
    if (steps.items().size() == most_steps) break;
    const ReplayNode& node = workload.ranks[step.rank].nodes[step.node];
    steps.push(Json::object({{"rank", int64_t{step.rank}},
                             {"node", static_cast<int64_t>(node.id)},
                             {"name", workload.names[node.name]},
                             {"start_seconds", seconds(step.start)},
                             {"seconds", seconds(step.finish - step.start)}}));
  }
  return Json::object({{"nodes", result.critical_path.size()},
                       {"by_kind", path_parts_json(summary.path_by_kind)},
                       {"by_name", path_parts_json(summary.path_by_name)},
                       {"first_steps", std::move(steps)}});
}

std::string times_table(const ReplayResult& result, const ReplaySummary& summary) {
  Table table({{"rank time", Table::Align::left}, {"mean"}, {"share"}, {"least"}, {"most"}, {"on rank"}});
  for (const ReplayPart& part : run_parts) {
    const auto [least, most] =
        std::minmax_element(result.ranks.begin(), result.ranks.end(),
                            [&](const RankTimes& a, const RankTimes& b) { return a.*part.time < b.*part.time; });
    if (*most.*part.time == 0) continue;
    table.add({std::string(part.name), time_text(summary.mean.*part.time),
               fmt::format("{:.1f}%", 100 * share(summary.mean.*part.time, summary.makespan)),
               time_text(*least.*part.time), time_text(*most.*part.time),
               fmt::format("{}", most - result.ranks.begin())});
  }
  return table.text();
}

std::string collectives_table(const std::vector<CollectiveSummary>& collectives) {
  constexpr size_t most_rows = 20;
  Table table({{"collective", Table::Align::left},
               {"ranks"},
               {"size"},
               {"calls"},
               {"mean"},
               {"longest"},
               {"bus bandwidth"},
               {"wait for last rank"}});
  for (size_t i = 0; i < std::min(most_rows, collectives.size()); ++i) {
    const CollectiveSummary& one = collectives[i];
    table.add({std::string(collective_kind_name(one.kind)), fmt::format("{}", one.ranks), bytes_text(one.bytes),
               fmt::format("{}", one.calls), time_text(one.total / one.calls), time_text(one.longest),
               rate_text(bus_bandwidth(one), "B/s"), time_text(one.skew / one.calls)});
  }
  std::string text = table.text();
  if (collectives.size() > most_rows)
    text += fmt::format("and {} more kinds and sizes\n", collectives.size() - most_rows);
  return text;
}

std::string path_table(const ReplaySummary& summary) {
  constexpr size_t most_rows = 10;
  Table table({{"critical path", Table::Align::left}, {"", Table::Align::left}, {"nodes"}, {"time"}, {"share"}});
  const auto add = [&](const PathPart& part) {
    if (part.time == 0) return;
    table.add({part.kind, printable(part.name), fmt::format("{}", part.nodes), time_text(part.time),
               fmt::format("{:.1f}%", 100 * share(part.time, summary.makespan))});
  };
  for (const PathPart& part : summary.path_by_kind) add(part);
  table.add_rule();
  for (size_t i = 0; i < std::min(most_rows, summary.path_by_name.size()); ++i) add(summary.path_by_name[i]);
  return table.text();
}

// Tracks of a rank: its lanes, then the process groups it talks in, then sends and receives.
class TraceWriter {
 public:
  TraceWriter(const ReplayWorkload& workload, const ReplayResult& result) : workload_(workload), result_(result) {
    for (const std::string& name : workload.names) names_.push_back(Json(name).dump(0));
  }

  std::string text(size_t ranks) {
    text_ = R"({"displayTimeUnit":"ms","traceEvents":[)";
    for (size_t rank = 0; rank < std::min(ranks, workload_.ranks.size()); ++rank) add_rank(rank);
    return std::move(text_) + "]}\n";
  }

 private:
  // Behind all lanes: messages, then groups.
  static constexpr size_t send_track = 1'000'000, receive_track = 1'000'001, first_group_track = 2'000'000;

  size_t track_of(const ReplayNode& node) const {
    switch (node.kind) {
      case ReplayKind::collective:
        return first_group_track + static_cast<size_t>(node.group);
      case ReplayKind::send:
        return send_track;
      case ReplayKind::receive:
        return receive_track;
      default:
        return static_cast<size_t>(node.lane);
    }
  }

  std::string track_name(size_t rank, const ReplayNode& node) const {
    switch (node.kind) {
      case ReplayKind::collective:
        return "group " + workload_.groups[static_cast<size_t>(node.group)].name;
      case ReplayKind::send:
      case ReplayKind::receive:
        return std::string(replay_kind_name(node.kind));
      default: {
        const ReplayLane& lane = workload_.ranks[rank].lanes[static_cast<size_t>(node.lane)];
        return fmt::format("{} {}", replay_kind_name(lane.kind), lane.number);
      }
    }
  }

  void begin_event() { text_ += text_.back() == '[' ? "\n" : ",\n"; }

  void add_rank(size_t rank) {
    begin_event();
    fmt::format_to(std::back_inserter(text_),
                   R"({{"ph":"M","name":"process_name","pid":{},"tid":0,"args":{{"name":"rank {}"}}}})", rank, rank);
    std::set<size_t> named;
    const std::vector<ReplayNode>& nodes = workload_.ranks[rank].nodes;
    for (size_t i = 0; i < nodes.size(); ++i) {
      if (nodes[i].kind == ReplayKind::marker) continue;
      const size_t track = track_of(nodes[i]);
      if (named.insert(track).second) {
        begin_event();
        fmt::format_to(std::back_inserter(text_),
                       R"({{"ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":{}}}}})", rank, track,
                       Json(track_name(rank, nodes[i])).dump(0));
      }
      add_node(rank, track, nodes[i], result_.nodes[rank][i]);
    }
  }

  void add_node(size_t rank, size_t track, const ReplayNode& node, const NodeRun& run) {
    constexpr double picoseconds_per_microsecond = 1e6;
    begin_event();
    fmt::format_to(std::back_inserter(text_),
                   R"({{"ph":"X","cat":"{}","name":{},"pid":{},"tid":{},"ts":{},"dur":{},"args":{{"node":{})",
                   replay_kind_name(node.kind), names_[node.name], rank, track,
                   static_cast<double>(run.start) / picoseconds_per_microsecond,
                   static_cast<double>(run.finish - run.start) / picoseconds_per_microsecond, node.id);
    if (node.kind == ReplayKind::collective) {
      fmt::format_to(std::back_inserter(text_), R"(,"collective":"{}")", collective_kind_name(node.collective));
    }
    if (node.bytes > 0) fmt::format_to(std::back_inserter(text_), R"(,"bytes":{})", node.bytes);
    text_ += "}}";
  }

  const ReplayWorkload& workload_;
  const ReplayResult& result_;
  std::vector<std::string> names_;  // as JSON text
  std::string text_;
};

}  // namespace

Json replay_json(const ReplayWorkload& workload, const ReplayResult& result, const ReplayOrigin& origin) {
  const ReplaySummary summary = summarize_replay(workload, result);
  Json ranks = Json::array();
  for (const RankTimes& times : result.ranks) ranks.push(times_json(times));
  return Json::object({{"trace", origin.prefix},
                       {"network", origin.network},
                       {"compute", origin.compute},
                       {"ranks", workload.ranks.size()},
                       {"nodes", workload.node_count()},
                       {"seconds", seconds(result.makespan)},
                       {"mean_rank", times_json(summary.mean)},
                       {"collectives", collectives_json(summary.collectives)},
                       {"critical_path", path_json(workload, result, summary)},
                       {"by_rank", std::move(ranks)}});
}

std::string replay_text(const ReplayWorkload& workload, const ReplayResult& result, const ReplayOrigin& origin) {
  const ReplaySummary summary = summarize_replay(workload, result);
  std::string text = fmt::format("{}: {}, {}, {}\n", origin.prefix, counted(workload.ranks.size(), "rank"),
                                 counted(workload.node_count(), "node"), time_text(result.makespan));
  text += fmt::format("network: {}; compute times: {}\n\n", origin.network, origin.compute);
  text += times_table(result, summary);
  const double hidden = 1 - share(summary.mean.exposed_communication, summary.mean.communication);
  if (summary.mean.communication > 0) {
    text += fmt::format("{:.0f}% of the communication time is hidden behind compute\n", 100 * hidden);
  }
  if (!summary.collectives.empty()) text += "\n" + collectives_table(summary.collectives);
  return text + "\n" + path_table(summary);
}

std::string replay_trace(const ReplayWorkload& workload, const ReplayResult& result, size_t ranks) {
  return TraceWriter(workload, result).text(ranks);
}

}  // namespace foretoken
