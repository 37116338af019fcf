// Double binary tree (double_tree.h). Inside a node of several nodes a chain hangs below the member that sits in the
// tree.
#include <algorithm>
#include <optional>

#include "network/algorithms/common.h"
#include "network/algorithms/double_tree.h"
#include "network/algorithms/list.h"

namespace foretoken {
namespace tree {
namespace {

// The members of one channel, by position in the tree, then along the chain below it.
using Channel = std::vector<std::vector<int32_t>>;

bool holds(const std::vector<int32_t>& chain, std::optional<int32_t> root) {
  return root && std::find(chain.begin(), chain.end(), *root) != chain.end();
}

// One channel for each member of a node: in channel c, member c sits in the tree. The root's node comes first.
std::vector<Channel> channels_of(const GroupLayout& layout, std::optional<int32_t> root) {
  std::vector<Channel> channels;
  const bool one_node = layout.nodes() == 1;
  const int64_t count = one_node ? 1 : layout.fewest_per_node();
  for (int64_t c = 0; c < count; ++c) {
    Channel& channel = channels.emplace_back();
    for (int64_t node = 0; node < layout.nodes(); ++node) {
      const int64_t first = layout.first_places[node], size = layout.members_of(node);
      for (int64_t i = 0; i < size; ++i) {
        if (one_node || i == 0) channel.emplace_back();
        channel.back().push_back(static_cast<int32_t>(first + (c + member_on_way(i, size, layout.mesh)) % size));
      }
    }
    for (size_t position = 0; position < channel.size(); ++position) {
      if (!holds(channel[position], root)) continue;
      std::rotate(channel.begin(), channel.begin() + static_cast<int64_t>(position), channel.end());
      break;
    }
  }
  return channels;
}

struct Edge {
  int32_t child = 0, parent = 0;
  int64_t block = 0;
};

// A chain leads to its first member; in the root's node to the root, wherever that stands.
void add_chain(const std::vector<int32_t>& chain, std::optional<int32_t> root, int64_t block,
               std::vector<Edge>& edges) {
  const auto end = holds(chain, root) ? std::find(chain.begin(), chain.end(), *root) : chain.begin();
  for (auto member = chain.begin(); member + 1 < chain.end(); ++member) {
    const bool leads_back = member >= end;
    edges.push_back(
        {.child = leads_back ? member[1] : member[0], .parent = leads_back ? member[0] : member[1], .block = block});
  }
}

// One member has, or gets, the data of a broadcast or a reduce.
TreeRoots roots_of(bool has_root) {
  return has_root ? TreeRoots::shared : TreeRoots::own;
}

std::vector<Edge> edges_of(const std::vector<Channel>& channels, std::optional<int32_t> root) {
  std::vector<Edge> edges;
  for (size_t c = 0; c < channels.size(); ++c) {
    for (const TreeEdge& edge : double_tree(std::ssize(channels[c]), roots_of(root.has_value()))) {
      edges.push_back({.child = channels[c][static_cast<size_t>(edge.child)].front(),
                       .parent = channels[c][static_cast<size_t>(edge.parent)].front(),
                       .block = static_cast<int64_t>(c) * 2 + edge.half});
    }
    for (int64_t half = 0; half < 2; ++half) {
      for (const std::vector<int32_t>& chain : channels[c]) {
        add_chain(chain, root, static_cast<int64_t>(c) * 2 + half, edges);
      }
    }
  }
  return edges;
}

std::string unsuitable(CollectiveKind kind, const GroupShape&) {
  if (is_all_reduce(kind) || kind == CollectiveKind::broadcast || kind == CollectiveKind::reduce) return {};
  return not_for("a tree", kind);
}

struct Depth {
  int64_t far = 0, near = 0;
};

Depth depth_of(int64_t nodes, int64_t most_per_node) {
  return nodes == 1 ? Depth{.far = ceil_log2(most_per_node)}
                    : Depth{.far = ceil_log2(nodes), .near = most_per_node - 1};
}

BlockPlan plan(CollectiveKind kind, const GroupLayout& layout, int32_t root_place) {
  // In an all-reduce whoever sits at the top of a tree is its root.
  const std::optional<int32_t> root = is_all_reduce(kind) ? std::nullopt : std::optional(root_place);
  const std::vector<Channel> channels = channels_of(layout, root);
  const std::vector<Edge> edges = edges_of(channels, root);
  const Depth depth = depth_of(layout.nodes(), layout.most_per_node());
  BlockStage up{.messages = depth.far, .near_messages = depth.near, .reduces = true};
  BlockStage down{.messages = depth.far, .near_messages = depth.near};
  for (const Edge& edge : edges) {
    up.transfers.push_back({.from = edge.child, .to = edge.parent, .first = edge.block, .count = 1});
    down.transfers.push_back({.from = edge.parent, .to = edge.child, .first = edge.block, .count = 1});
  }
  BlockPlan plan{.blocks = 2 * static_cast<int64_t>(channels.size())};
  if (kind != CollectiveKind::broadcast) plan.stages.push_back(std::move(up));
  if (kind != CollectiveKind::reduce) plan.stages.push_back(std::move(down));
  return plan;
}

std::vector<StageLoad> loads(CollectiveKind kind, const GroupShape& shape) {
  const Depth depth = depth_of(shape.nodes, shape.most_per_node);
  StageLoad load{.messages = static_cast<double>(depth.far), .near_messages = static_cast<double>(depth.near)};
  // A member inside one tree has two children there, each with half of its channel's share, or is the root of both.
  if (shape.nodes == 1) {
    const double most = double_tree_load(shape.ranks, roots_of(!is_all_reduce(kind)));
    load.device = most;
    load.pair = shape.ranks == 2 ? most : 0.5;
  } else {
    const auto channels = static_cast<double>(shape.fewest_per_node);
    const double chain = shape.is_even() ? (channels - 1) / channels : 1;
    // A root stands in the middle of most chains, and has both sides to serve.
    load.device = shape.most_per_node == 1 ? 0 : is_all_reduce(kind) ? chain : 2 * chain;
    // Chains that lead to a root go both ways over its links.
    const double per_link = is_all_reduce(kind) ? channels_per_link(shape) : std::min(channels, 2.0);
    load.pair = shape.most_per_node == 1 ? 0 : per_link / channels;
    load.card = double_tree_load(shape.nodes, roots_of(!is_all_reduce(kind))) / channels;
    load.reach = reach_along_rails(shape);
    load.spine = spine_load(shape, load, short_edges_part(shape, roots_of(!is_all_reduce(kind))));
  }
  return std::vector<StageLoad>(is_all_reduce(kind) ? 2 : 1, load);
}

// Across nodes; inside one NCCL's tree is a chain.
bool nccl_considers(CollectiveKind kind, const GroupShape& shape) {
  return is_all_reduce(kind) && shape.nodes > 1;
}

}  // namespace
}  // namespace tree

CollectiveAlgorithm tree_algorithm() {
  return {.name = "tree",
          .summary = "two binary trees, half of the buffer each: latency grows with the logarithm of the nodes",
          .unsuitable = tree::unsuitable,
          .plan = tree::plan,
          .loads = tree::loads,
          .nccl_considers = tree::nccl_considers,
          .steps = StepKind::tree};
}

}  // namespace foretoken
