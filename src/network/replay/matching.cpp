#include "network/replay/matching.h"

#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "model/shapes.h"

namespace foretoken {
namespace {

// Where each rank may bring another size: uneven all-to-all, and one root whose buffer counts.
bool sizes_may_differ(CollectiveKind kind) {
  return kind == CollectiveKind::all_to_all || kind == CollectiveKind::broadcast || kind == CollectiveKind::gather ||
         kind == CollectiveKind::scatter;
}

[[noreturn]] void refuse(const ReplayWorkload& workload, size_t rank, size_t node, std::string value,
                         std::string expected) {
  const RankProgram& program = workload.ranks[rank];
  throw InputError(
      {.source = program.source,
       .path = fmt::format("node {} ({})", program.nodes[node].id, printable(workload.names[program.nodes[node].name])),
       .value = std::move(value),
       .expected = std::move(expected)});
}

class Matcher {
 public:
  Matcher(const ReplayWorkload& workload, const NodeNumbers& numbers)
      : workload_(workload), numbers_(numbers), calls_of_group_(workload.groups.size()) {
    result_.partner.assign(numbers.count(), no_node);
  }

  Matching match() {
    for (size_t rank = 0; rank < workload_.ranks.size(); ++rank) {
      done_in_group_.assign(workload_.groups.size(), 0);
      const std::vector<ReplayNode>& nodes = workload_.ranks[rank].nodes;
      for (size_t node = 0; node < nodes.size(); ++node) {
        switch (nodes[node].kind) {
          case ReplayKind::collective:
            join_call(rank, node);
            break;
          case ReplayKind::send:
            check_peer(rank, node);
            sent_[{static_cast<int32_t>(rank), nodes[node].peer, nodes[node].tag}].push_back(
                numbers_.number(rank, node));
            break;
          case ReplayKind::receive:
            check_peer(rank, node);
            received_[{nodes[node].peer, static_cast<int32_t>(rank), nodes[node].tag}].push_back(
                numbers_.number(rank, node));
            break;
          default:
            break;
        }
      }
    }
    check_calls();
    pair_messages();
    return std::move(result_);
  }

 private:
  using Channel = std::tuple<int32_t, int32_t, int64_t>;  // from, to, tag

  const ReplayNode& node_at(uint32_t number) const {
    return workload_.ranks[numbers_.rank_of(number)].nodes[numbers_.place_of(number)];
  }

  void join_call(size_t rank, size_t place) {
    const ReplayNode& node = workload_.ranks[rank].nodes[place];
    const auto group_index = static_cast<size_t>(node.group);
    const ReplayGroup& group = workload_.groups[group_index];
    const auto seat = std::lower_bound(group.ranks.begin(), group.ranks.end(), static_cast<int32_t>(rank));
    if (seat == group.ranks.end() || *seat != static_cast<int32_t>(rank)) {
      refuse(workload_, rank, place, fmt::format("a collective of process group {}", printable(group.name)),
             fmt::format("a group that holds rank {}", rank));
    }
    std::vector<uint32_t>& calls = calls_of_group_[group_index];
    const size_t turn = done_in_group_[group_index]++;
    if (turn == calls.size()) {
      const auto number = static_cast<uint32_t>(result_.calls.size());
      if (turn > 0) result_.calls[calls.back()].following = number;
      calls.push_back(number);
      result_.calls.push_back({.kind = node.collective,
                               .group = node.group,
                               .bytes = node.bytes,
                               .kernel = node.kernel,
                               .first_member = result_.members.size()});
      result_.members.resize(result_.members.size() + group.ranks.size(), no_node);
    }
    CollectiveCall& call = result_.calls[calls[turn]];
    if (call.kind != node.collective || (call.bytes != node.bytes && !sizes_may_differ(call.kind))) {
      disagree(rank, place, call, turn);
    }
    call.bytes = std::max(call.bytes, node.bytes);
    take_root(rank, place, call);
    result_.members[call.first_member + static_cast<size_t>(seat - group.ranks.begin())] = numbers_.number(rank, place);
    result_.partner[numbers_.number(rank, place)] = calls[turn];
  }

  void take_root(size_t rank, size_t place, CollectiveCall& call) const {
    const int32_t root = workload_.ranks[rank].nodes[place].root;
    if (root < 0 || root == call.root) return;
    const ReplayGroup& group = workload_.groups[static_cast<size_t>(call.group)];
    if (!std::binary_search(group.ranks.begin(), group.ranks.end(), root)) {
      refuse(workload_, rank, place, fmt::format("root {}", root),
             fmt::format("a rank of process group {}", printable(group.name)));
    }
    if (call.root >= 0) {
      refuse(workload_, rank, place, fmt::format("root {}", root),
             fmt::format("root {}, as in other ranks", call.root));
    }
    call.root = root;
  }

  [[noreturn]] void disagree(size_t rank, size_t place, const CollectiveCall& call, size_t turn) const {
    const ReplayNode& node = workload_.ranks[rank].nodes[place];
    const std::span<const uint32_t> members = result_.members_of(call, workload_);
    const auto first = std::find_if(members.begin(), members.end(), [](uint32_t one) { return one != no_node; });
    const size_t other = numbers_.rank_of(*first);
    refuse(
        workload_, rank, place,
        fmt::format("{} of {} bytes, number {} of process group {}", collective_kind_name(node.collective),
                    number_text(node.bytes), turn, printable(workload_.groups[static_cast<size_t>(call.group)].name)),
        fmt::format("{} of {} bytes, as in {}", collective_kind_name(call.kind), number_text(call.bytes),
                    node_text(workload_, other, numbers_.place_of(*first))));
  }

  void check_calls() const {
    for (const CollectiveCall& call : result_.calls) {
      const ReplayGroup& group = workload_.groups[static_cast<size_t>(call.group)];
      const std::span<const uint32_t> members = result_.members_of(call, workload_);
      const auto missing = std::find(members.begin(), members.end(), no_node);
      if (missing == members.end()) continue;
      const auto present = std::find_if(members.begin(), members.end(), [](uint32_t one) { return one != no_node; });
      refuse(workload_, numbers_.rank_of(*present), numbers_.place_of(*present),
             fmt::format("{} of process group {}", collective_kind_name(call.kind), printable(group.name)),
             fmt::format("rank {} to take part; its trace has fewer collectives of this group",
                         group.ranks[static_cast<size_t>(missing - members.begin())]));
    }
  }

  void check_peer(size_t rank, size_t place) const {
    const int32_t peer = workload_.ranks[rank].nodes[place].peer;
    if (peer < 0 || static_cast<size_t>(peer) >= workload_.ranks.size() || static_cast<size_t>(peer) == rank) {
      refuse(workload_, rank, place, fmt::format("a message between ranks {} and {}", rank, peer),
             fmt::format("another rank from 0 to {}", workload_.ranks.size() - 1));
    }
  }

  void pair_messages() {
    for (const auto& [channel, sends] : sent_) {
      const auto found = received_.find(channel);
      pair_channel(channel, sends, found == received_.end() ? std::vector<uint32_t>() : found->second);
    }
    for (const auto& [channel, receives] : received_) {
      if (!sent_.contains(channel)) pair_channel(channel, {}, receives);
    }
  }

  void pair_channel(const Channel& channel, const std::vector<uint32_t>& sends, const std::vector<uint32_t>& receives) {
    const auto& [from, to, tag] = channel;
    if (sends.size() != receives.size()) {
      const bool more_sends = sends.size() > receives.size();
      const uint32_t alone = more_sends ? sends[receives.size()] : receives[sends.size()];
      refuse(workload_, numbers_.rank_of(alone), numbers_.place_of(alone),
             fmt::format("a {} without its {}", more_sends ? "send" : "receive", more_sends ? "receive" : "send"),
             fmt::format("as many receives as sends from rank {} to rank {} with tag {}; found {} and {}", from, to,
                         tag, receives.size(), sends.size()));
    }
    for (size_t i = 0; i < sends.size(); ++i) {
      if (node_at(sends[i]).bytes != node_at(receives[i]).bytes) {
        refuse(workload_, numbers_.rank_of(receives[i]), numbers_.place_of(receives[i]),
               fmt::format("{} bytes", number_text(node_at(receives[i]).bytes)),
               fmt::format("{} bytes, as {} sends", number_text(node_at(sends[i]).bytes),
                           node_text(workload_, numbers_.rank_of(sends[i]), numbers_.place_of(sends[i]))));
      }
      result_.partner[sends[i]] = receives[i];
      result_.partner[receives[i]] = sends[i];
    }
  }

  const ReplayWorkload& workload_;
  const NodeNumbers& numbers_;
  Matching result_;
  std::vector<std::vector<uint32_t>> calls_of_group_;
  std::vector<size_t> done_in_group_;  // by the rank at hand
  std::map<Channel, std::vector<uint32_t>> sent_, received_;
};

}  // namespace

NodeNumbers::NodeNumbers(const ReplayWorkload& workload) {
  size_t count = 0;
  first_.push_back(0);
  for (const RankProgram& rank : workload.ranks) {
    count += rank.nodes.size();
    if (count >= no_node) {
      throw InputError({.source = rank.source, .value = "more than 4 billion nodes", .expected = "fewer"});
    }
    first_.push_back(static_cast<uint32_t>(count));
  }
}

size_t NodeNumbers::rank_of(uint32_t number) const {
  return static_cast<size_t>(std::upper_bound(first_.begin(), first_.end(), number) - first_.begin()) - 1;
}

Matching match(const ReplayWorkload& workload, const NodeNumbers& numbers) {
  return Matcher(workload, numbers).match();
}

std::string node_text(const ReplayWorkload& workload, size_t rank, size_t node) {
  const ReplayNode& one = workload.ranks[rank].nodes[node];
  return fmt::format("rank {} node {} ({})", rank, one.id, printable(workload.names[one.name]));
}

}  // namespace foretoken
