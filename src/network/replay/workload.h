// What a replay runs, whatever file it came from: for each rank a graph of nodes, and the process groups they talk in.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/simulated_time.h"
#include "model/shapes.h"

namespace foretoken {

enum class ReplayKind : uint8_t {
  marker,      // takes no time: orders others
  host,        // an operation of the CPU
  compute,     // a kernel
  memory,      // a load or store of remote memory
  collective,  //
  send,        // is over when its bytes have arrived; starts whether the receiver waits for it or not
  receive,     //
};
std::string_view replay_kind_name(ReplayKind kind);

struct ReplayNode {
  uint64_t id = 0;           // in the trace
  Picoseconds duration = 0;  // host, compute, memory
  double bytes = 0;          // collective: as in CollectiveShape; send, receive
  uint32_t name = 0;         // index into ReplayWorkload::names
  int32_t lane = -1;         // of its rank, one node at a time; -1 = none
  int32_t group = -1;        // collective: process group
  int32_t peer = -1;         // send, receive: the other rank
  int32_t root = -1;         // broadcast, reduce, gather, scatter: the rank that has or gets the data; -1 = not said
  int64_t tag = 0;           // send, receive
  int8_t kernel = -1;        // collective: an engine's own, by its place in engine_kernels; -1 = the library's
  ReplayKind kind = ReplayKind::marker;
  CollectiveKind collective = CollectiveKind::all_reduce;
};

// A host thread, a stream of kernels or the memory port of a rank: it runs one node at a time, of those that are ready
// the first in the order of the program.
struct ReplayLane {
  ReplayKind kind = ReplayKind::compute;
  int64_t number = 0;  // thread or stream
};

// Nodes in program order: every node comes behind those it waits for.
struct RankProgram {
  std::string source;  // the file, for complaints
  std::vector<ReplayNode> nodes;
  std::vector<ReplayLane> lanes;
  std::vector<uint32_t> waits_for;        // for each node: how many others
  std::vector<uint32_t> first_dependent;  // for each node, and the end: its place in `dependents`
  std::vector<uint32_t> dependents;       // nodes that wait for it

  std::span<const uint32_t> dependents_of(size_t node) const {
    return std::span(dependents).subspan(first_dependent[node], first_dependent[node + 1] - first_dependent[node]);
  }
};

struct ReplayGroup {
  std::string name;
  std::vector<int32_t> ranks;   // ascending, each once
  std::vector<int32_t> listed;  // the same as the group numbers them, where that is another order; else empty

  std::span<const int32_t> in_order() const { return listed.empty() ? ranks : listed; }
};

struct ReplayWorkload {
  std::vector<RankProgram> ranks;
  std::vector<ReplayGroup> groups;
  std::vector<std::string> names;

  size_t node_count() const;
};

// The nodes of one rank as a trace lists them, each with the ids of the nodes it waits for.
class RankGraph {
 public:
  explicit RankGraph(std::string source) : source_(std::move(source)) {}

  void add(const ReplayNode& node);
  void wait_for(std::span<const uint64_t> ids);  // of the node added last
  // The lane of that kind and number, a new one where there is none yet.
  int32_t lane(ReplayKind kind, int64_t number);

  // The nodes in program order: as they were added, but with those that wait for later ones moved behind them.
  // InputError names the file and the node for an id used twice, a wait for an id that does not exist, or nodes that
  // wait for each other in a circle.
  RankProgram program() &&;

 private:
  std::vector<uint32_t> waited_nodes() const;
  std::span<const uint32_t> waits_of(size_t node, std::span<const uint32_t> waits) const;
  std::vector<uint32_t> program_order(std::span<const uint32_t> waits) const;
  std::string circle(std::span<const uint32_t> waits, const std::vector<bool>& placed) const;

  std::string source_;
  std::vector<ReplayNode> nodes_;
  std::vector<uint32_t> first_wait_;  // for each node: its place in `waits_`
  std::vector<uint64_t> waits_;
  std::vector<ReplayLane> lanes_;
  std::map<std::pair<ReplayKind, int64_t>, int32_t> lane_places_;
};

}  // namespace foretoken
