#include "network/transfer/protocol.h"

#include <algorithm>
#include <array>
#include <limits>

#include "base/error.h"
#include "base/portable_math.h"

namespace foretoken {
namespace {

struct StepLatencies {
  double ll, ll128, simple;  // microseconds
  double of(Protocol protocol) const {
    return protocol == Protocol::ll ? ll : protocol == Protocol::ll128 ? ll128 : simple;
  }
};

struct StepConstants {
  StepLatencies base, nvlink, pcie, network;
};

// Of the published all-to-alls between nodes (data/networks/published/between_nodes.csv).
constexpr double far_post = 1.5;

constexpr StepConstants ring_steps{
    .base = {6.6, 14.0, 8.4}, .nvlink = {0.6, 1.9, 3.4}, .pcie = {1.0, 2.5, 5.7}, .network = {2.7, 4.0, 14.0}};
constexpr StepConstants tree_steps{
    .base = {6.8, 14.0, 8.4}, .nvlink = {0.6, 1.25, 4.0}, .pcie = {1.0, 1.9, 4.0}, .network = {5.0, 8.5, 14.0}};
// 25 us for the whole all-reduce, which is two messages here.
constexpr StepConstants in_switch_steps{.base = {0, 0, 0}, .nvlink = {0, 0, 12.5}, .pcie = {}, .network = {0, 0, 18}};
constexpr StepConstants in_switch_tree_steps{
    .base = {0, 0, 0}, .nvlink = {0, 0, 12.5}, .pcie = {}, .network = {0, 0, 20.9}};
// A step over the network is 14 us, of which other steps hide most (interLat / 3.5).
constexpr StepConstants pat_steps{.base = {8, 8, 8}, .nvlink = {4, 4, 4}, .pcie = {4, 4, 4}, .network = {4, 4, 4}};

const StepConstants& constants_of(StepKind step) {
  switch (step) {
    case StepKind::ring:
      return ring_steps;
    case StepKind::tree:
      return tree_steps;
    case StepKind::in_switch:
      return in_switch_steps;
    case StepKind::in_switch_tree:
      return in_switch_tree_steps;
    case StepKind::pat:
      return pat_steps;
  }
  throw InternalError("every kind of step has its constants");
}

double wire_factor(Protocol protocol, StepKind step) {
  const double reached = step == StepKind::tree ? 0.92 : step == StepKind::pat ? 0.75 : 1;
  switch (protocol) {
    case Protocol::ll:
      return step == StepKind::tree ? 3.8 / reached : 2;
    case Protocol::ll128:
      return 128.0 / 120 / reached;
    case Protocol::simple:
      return 1 / reached;
    case Protocol::ideal:
      return 1;
  }
  throw InternalError("every protocol has a wire factor");
}

// Shares for 64 B, 128 B, ... 256 MB; none from 512 MB on.
struct TreeShares {
  std::array<double, 24> of;
};
constexpr TreeShares tree_shares_ll{
    {1, 1, 1, 1, 0.9, 0.8, 0.7, 0.7, 0.7, 0.7, 0.6, 0.5, 0.4, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1, 1, 1, 1}};
constexpr TreeShares tree_shares_ll128{
    {1, 1, 1, 1, 1, 0.9, 0.8, 0.8, 0.8, 0.7, 0.6, 0.6, 0.6, 0.6, 0.6, 0.6, 0.8, 0.9, 0.9, 0.9, 0.9, 1, 1, 1}};
constexpr TreeShares tree_shares_simple{{0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.8, 0.7, 0.6, 0.6, 0.5,
                                         0.5, 0.5, 0.5, 0.6, 0.7, 0.8, 0.7, 0.7, 0.8, 0.9, 0.9, 1}};

}  // namespace

std::string_view protocol_name(Protocol protocol) {
  return protocol_names[static_cast<size_t>(protocol)];
}

MessageCosts message_costs(Protocol protocol, StepKind step, const MessageWay& way) {
  if (protocol == Protocol::ideal) return {};
  constexpr double usable_nvlink = 20.0 / 25, in_switch_efficiency = 0.85;
  const bool is_ring = step == StepKind::ring;
  const bool reduces_in_switch = step == StepKind::in_switch || step == StepKind::in_switch_tree;
  const StepConstants& constants = constants_of(step);
  const double wire = wire_factor(protocol, step);
  const double near_rate = !way.nvlink ? 1 : reduces_in_switch ? usable_nvlink * in_switch_efficiency : usable_nvlink;
  double start = constants.base.of(protocol);
  double near = (way.nvlink ? constants.nvlink : constants.pcie).of(protocol);
  double far = constants.network.of(protocol);
  if (is_ring && way.between_nodes()) {
    // One rank of a node has nothing to hide the network behind: NCCL counts a step of a tree.
    if (way.ranks == way.nodes) far = tree_steps.network.of(protocol);
    // Each step posts to the network, simple three times. Other sends and receives of a rank have none
    // (ncclNetOverhead).
    near = std::max(near, protocol == Protocol::simple ? 3.0 : 1.0);
  }
  if (step == StepKind::pat) start += 2.8 * static_cast<double>(way.ranks);
  return {.start = microseconds(start),
          .near_message = microseconds(near),
          .far_message = microseconds(far),
          .post = microseconds(far_post),
          .near_wire = wire / near_rate,
          .far_wire = wire};
}

double most_bus_bandwidth(Protocol protocol, const MessageWay& way) {
  if (protocol != Protocol::ll || !way.between_nodes()) return std::numeric_limits<double>::infinity();
  return (way.nodes == 2 ? 39 : 20.4) * giga;
}

double tree_share(Protocol protocol, StepKind step, const MessageWay& way, double bytes) {
  if (step != StepKind::tree || !way.all_reduces || !way.between_nodes() || protocol == Protocol::ideal) return 1;
  const TreeShares& shares = protocol == Protocol::ll      ? tree_shares_ll
                             : protocol == Protocol::ll128 ? tree_shares_ll128
                                                           : tree_shares_simple;
  const double position = portable_log2(std::max(bytes, 64.0) / 64);
  const auto last = static_cast<double>(shares.of.size() - 1);
  if (position >= last) return shares.of.back();
  const auto before = static_cast<size_t>(position);
  const double part = position - static_cast<double>(before);
  return shares.of[before] * (1 - part) + shares.of[before + 1] * part;
}

}  // namespace foretoken
