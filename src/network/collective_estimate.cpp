#include "network/collective_estimate.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "network/between_nodes.h"
#include "network/calibration/stack_collectives.h"
#include "network/collective_plan.h"
#include "network/ring_link.h"
#include "network/shared_cards.h"
#include "network/topology/cluster_topology.h"
#include "network/transfer/collective.h"
#include "network/transfer/refusal.h"

namespace foretoken {
namespace {

// Links of accelerators that carry NCCL's LL128 messages; those of a grid are taken to do so.
bool is_nvlink(const NodeFabric& fabric) {
  return fabric.kind == NodeFabricKind::nvswitch || fabric.kind == NodeFabricKind::nvlink_mesh ||
         has_neighbors_alone(fabric);
}

bool has_switch(const Topology& topology) {
  for (NetworkNode node = 0; node < topology.node_count(); ++node) {
    if (topology.kind(node) == NetworkNodeKind::network_switch) return true;
  }
  return false;
}

GroupShape shape_of(const GroupLayout& layout) {
  return {.ranks = layout.members(),
          .nodes = layout.nodes(),
          .most_per_node = layout.most_per_node(),
          .fewest_per_node = layout.fewest_per_node()};
}

// Group number k of several side by side: those between its devices first, then those behind it.
ProcessGroup beside(const ProcessGroup& group, int64_t k) {
  if (k == 0) return group;
  if (group.stride() == 0) {
    refuse_collective("concurrent", "a list of devices",
                      "a group with a stride: only such a group says where the next one lies");
  }
  const int64_t behind = k / group.stride() * group.stride() * group.size();
  return ProcessGroup::strided(group.device(0) + k % group.stride() + behind, group.size(), group.stride());
}

// On PCIe beyond two devices.
constexpr std::string_view one_figure_helps =
    "beyond two devices the host decides, which no sheet tells: measure one large message and give it ({known} "
    "256M=12ms)";

}  // namespace

std::string measured_basis(std::string_view library, const CommunicationTime& time) {
  std::string basis = fmt::format("a law of {} learned on other systems, and this one's link rates", library);
  if (time.tier == Tier::measured) basis = fmt::format("{} measured on such a node", library);
  if (time.tier == Tier::sibling) basis = fmt::format("{} measured on a node of the same generation", library);
  if (time.uses_known_time) basis += ", set right by the time that was given ({known})";
  if (!time.wire_is_known) basis += fmt::format("; {}", one_figure_helps);
  return basis;
}

Cluster cluster_of(const Node& node) {
  return {.name = node.name, .title = node.title, .node = node, .node_count = 1};
}

namespace {

// Hosts of PCIe boards differ, so that the sweep of one says little of another; pairs may have a bridge.
bool runs_ring(const Node& node, int64_t ranks) {
  const bool is_bridged_pair = ranks == 2 && node.fabric.bridge;
  const bool is_unknown_host = node.fabric.kind == NodeFabricKind::pcie && !node.fabric.is_swept;
  return (has_given_ring(node) || is_unknown_host) && !is_bridged_pair;
}

std::string ring_basis(const Node& node, const RingRange& ring, int64_t ranks) {
  if (has_given_ring(node)) {
    return fmt::format("a ring at {:.3g} GB/s and {:.3g} us per hop ({{link}})", ring.usual.bandwidth.value() / giga,
                       ring.usual.latency.value() * 1e6);
  }
  return fmt::format(
      "a ring over PCIe; hosts differ: {:.3g} GB/s and {:.3g} us per hop are assumed, {:.2g} to {:.2g} GB/s are "
      "possible{}",
      ring.usual.bandwidth.value() / giga, ring.usual.latency.value() * 1e6, ring.slowest.bandwidth.value() / giga,
      ring.fastest.bandwidth.value() / giga, ranks > 2 ? fmt::format("; {}", one_figure_helps) : "");
}

}  // namespace

struct CollectiveModel::Group {
  GroupShape shape;
  std::optional<GroupLayout> layout;  // where every member is looked at
};

CollectiveModel::CollectiveModel(Cluster cluster, CollectiveOptions options)
    : name_(cluster.name), options_(options), cluster_(std::move(cluster)) {
  const Node& node = cluster_->node;
  limits_ = {.nvlink = is_nvlink(node.fabric),
             .reduces_in_switch = node.fabric.kind == NodeFabricKind::nvswitch && has_reducing_switch(node.device)};
  domain_ = devices_per_node(*cluster_);
  if (options_.fidelity == Fidelity::flow || options_.reports_links || options_.uneven)
    topology_ = cluster_->node_count == 1 ? topology_of(node) : topology_of(*cluster_);
}

CollectiveModel::CollectiveModel(Topology topology, std::string name, int64_t domain, CollectiveOptions options)
    : name_(std::move(name)), options_(options), topology_(std::move(topology)), domain_(domain) {
  limits_ = {.nvlink = true, .reduces_in_switch = has_switch(*topology_), .is_ideal = true};
  if (domain_ == 0) domain_ = topology_->device_count();
}

int64_t CollectiveModel::device_count() const {
  return cluster_ ? total_devices(*cluster_) : topology_->device_count();
}

int64_t CollectiveModel::nodes_of(const ProcessGroup& group) const {
  if (cluster_) return group_shape(group, *cluster_).nodes;
  return domain_ == 0 ? 1 : group_layout(group, domain_, false).nodes();
}

double CollectiveModel::groups_per_card(const ProcessGroup& group) const {
  return cluster_ ? foretoken::groups_per_card(cluster_->node, group) : 1;
}

CollectiveModel::Group CollectiveModel::group_of(const CollectiveRequest& request) const {
  if (cluster_ && !topology_) return {.shape = group_shape(request.group, *cluster_)};
  GroupLayout layout = group_layout(request.group, domain_, cluster_ && is_mesh(*cluster_));
  const GroupShape shape = cluster_ ? group_shape(request.group, *cluster_) : shape_of(layout);
  return {.shape = shape, .layout = std::move(layout)};
}

MessageWay CollectiveModel::way_of(const CollectiveRequest& request, const Group& group) const {
  const bool all_reduces = request.kind == CollectiveKind::all_reduce || request.kind == CollectiveKind::barrier;
  return {.nvlink = limits_.nvlink, .ranks = group.shape.ranks, .nodes = group.shape.nodes, .all_reduces = all_reduces};
}

MessageCosts CollectiveModel::costs_of(const CollectiveRequest& request, const Group& group,
                                       const AlgorithmAndProtocol& candidate) const {
  return message_costs(candidate.protocol, candidate.algorithm->steps, way_of(request, group));
}

namespace {

SentBy sent_by(const CollectiveAlgorithm& algorithm) {
  return algorithm.sends_and_receives ? SentBy::sends_and_receives : SentBy::collective;
}

}  // namespace

ClosedForm CollectiveModel::as_run(const CollectiveRequest& request, const Group& group,
                                   const AlgorithmAndProtocol& candidate, ClosedForm on_links) const {
  if (!cluster_ || group.shape.nodes == 1 || candidate.protocol == Protocol::ideal) return on_links;
  ClosedForm form = std::move(on_links);
  if (request.kind != CollectiveKind::barrier && request.bytes > 0 && !request.pairs) {
    const MessageWay way = way_of(request, group);
    const Bytes sent = wire_bytes({.kind = request.kind, .ranks = group.shape.ranks, .bytes = request.bytes});
    const Seconds least(sent.value() / most_bus_bandwidth(candidate.protocol, way));
    form.wire =
        std::max(form.wire, least) / tree_share(candidate.protocol, candidate.algorithm->steps, way, request.bytes);
  }
  return as_clusters_run_it(std::move(form),
                            candidate.algorithm->sends_and_receives ? SentBy::sends_and_receives : SentBy::collective);
}

TransferPlan CollectiveModel::bare_plan_of(const CollectiveRequest& request, const Group& group,
                                           const AlgorithmAndProtocol& candidate) const {
  const MessageCosts costs = costs_of(request, group, candidate);
  if (request.pairs) return uneven_all_to_all(*request.pairs, request.group, domain_, costs);
  const GroupLayout& layout = group.layout.value();
  const int32_t root = layout.place_of(request.group.device(request.root));
  return transfer_plan(candidate.algorithm->plan(request.kind, layout, root), request.kind, request.bytes, layout,
                       costs);
}

TransferPlan CollectiveModel::plan_of(const CollectiveRequest& request, const Group& group,
                                      const AlgorithmAndProtocol& candidate) const {
  TransferPlan plan = bare_plan_of(request, group, candidate);
  if (cluster_ && group.shape.nodes > 1) {
    const ClosedForm on_links = time_on_links(request, group, candidate);
    plan.start += as_run(request, group, candidate, on_links).total() - on_links.total();
  }
  return plan;
}

ClosedForm CollectiveModel::closed_form_of(const CollectiveRequest& request, const Group& group,
                                           const AlgorithmAndProtocol& candidate) const {
  if (group.shape.ranks == 1) return {};
  return as_run(request, group, candidate, time_on_links(request, group, candidate));
}

ClosedForm CollectiveModel::time_on_links(const CollectiveRequest& request, const Group& group,
                                          const AlgorithmAndProtocol& candidate) const {
  if (!cluster_ || request.pairs) {
    const TransferPlan plan = bare_plan_of(request, group, candidate);
    return closed_form(PlanRouter(*topology_, LinkRouting::adaptive).route(plan, 0), *topology_);
  }
  const double bytes = request.kind == CollectiveKind::barrier ? 0 : request.bytes;
  GroupRates rates = group_rates(*cluster_, group.shape);
  if (group.shape.nodes > 1 && runs_ring(cluster_->node, group.shape.most_per_node)) {
    const RingLink inside = ring_inside(cluster_->node, group.shape.most_per_node).usual;
    rates.device = inside.bandwidth;
    rates.near_latency = inside.latency;
  }
  for (BytesPerSecond* rate : {&rates.whole_card, &rates.card, &rates.spine}) *rate = *rate / request.groups_per_card;
  return closed_form(candidate.algorithm->loads(request.kind, group.shape), bytes, rates,
                     costs_of(request, group, candidate));
}

void CollectiveModel::for_each_plan(const CollectiveRequest& request, const AlgorithmAndProtocol& candidate,
                                    const std::function<void(const TransferPlan&)>& take) const {
  for (int64_t k = 0; k < request.concurrent; ++k) {
    CollectiveRequest other = request;
    other.group = beside(request.group, k);
    check_group(other.group, device_count(), name_);
    take(plan_of(other, group_of(other), candidate));
  }
}

Seconds CollectiveModel::flow_time(const CollectiveRequest& request, const AlgorithmAndProtocol& candidate,
                                   std::vector<LinkUse>& link_use) const {
  FlowSimulator simulator(*topology_, {.routing = options_.routing, .record_link_use = options_.records_link_use});
  for_each_plan(request, candidate, [&](const TransferPlan& plan) { simulator.start(plan, 0); });
  while (!simulator.advance().empty()) {
  }
  link_use.assign(simulator.link_use().begin(), simulator.link_use().end());
  return to_seconds(simulator.now());
}

std::vector<LinkReport> CollectiveModel::link_reports(const CollectiveRequest& request,
                                                      const AlgorithmAndProtocol& candidate, Seconds time) const {
  std::vector<double> bytes(topology_->links().size(), 0);
  PlanRouter router(*topology_, options_.routing);
  uint64_t number = 0;  // counts as the simulator does, for the same paths
  for_each_plan(request, candidate, [&](const TransferPlan& plan) {
    const RoutedPlan routed = router.route(plan, number++);
    for (const RoutedStage& stage : routed.stages) {
      for (const LinkLoad& load : stage.loads) bytes[load.link] += load.weight * stage.largest_transfer;
    }
  });
  std::vector<LinkReport> reports;
  for (size_t l = 0; l < bytes.size(); ++l) {
    if (bytes[l] == 0) continue;
    const Link& link = topology_->link(static_cast<LinkIndex>(l));
    reports.push_back({.from = topology_->name(link.from),
                       .to = topology_->name(link.to),
                       .bandwidth = link.bandwidth,
                       .bytes = bytes[l],
                       .use = time.value() > 0 ? bytes[l] / (link.bandwidth * time).value() : 0});
  }
  std::stable_sort(reports.begin(), reports.end(),
                   [](const LinkReport& a, const LinkReport& b) { return a.use > b.use; });
  return reports;
}

bool CollectiveModel::is_as_nccl(const CollectiveRequest& request) const {
  return request.choice.algorithm == "auto" && !request.choice.protocol && !request.pairs &&
         options_.fidelity == Fidelity::closed;
}

// What NCCL itself chooses, inside one node, was measured; not what someone forces.
std::optional<CommunicationTime> CollectiveModel::measured_time(const CollectiveRequest& request,
                                                                const Group& group) const {
  if (options_.measured == nullptr || !cluster_ || !is_as_nccl(request)) return {};
  if (group.shape.nodes > 1 || group.shape.ranks == 1 || has_given_ring(cluster_->node)) return {};
  const CollectiveShape shape{.kind = request.kind, .ranks = request.group.size(), .bytes = request.bytes};
  // Engines keep their kernels off PCIe.
  const bool has_kernel = !request.kernel.empty() && request.kind == CollectiveKind::all_reduce && request.bytes > 0 &&
                          !options_.measured->system().is_host_link;
  const auto call = has_kernel ? std::optional(engine_all_reduce_call(request.kernel, false, shape.ranks, shape.bytes))
                               : nccl_call(shape);
  return call ? options_.measured->estimate(*call) : std::nullopt;
}

// What is known of a collective inside one node without the formula: measured times, or rings where hosts differ.
std::optional<CollectiveModel::NodeTime> CollectiveModel::node_time(const CollectiveRequest& request,
                                                                    const Group& group) const {
  const bool by_ring =
      cluster_ && group.shape.nodes == 1 && is_as_nccl(request) && runs_ring(cluster_->node, group.shape.ranks);
  const std::optional<CommunicationTime> measured = measured_time(request, group);
  if (measured && (!by_ring || (measured->uses_known_time && measured->wire_is_known))) {
    const bool is_nccl = request.kernel.empty() || request.kind != CollectiveKind::all_reduce;
    return NodeTime{
        .seconds = measured->seconds,
        .source = std::string(tier_name(measured->tier)),
        .basis = measured_basis(is_nccl ? "NCCL" : std::string(request.kernel) + "'s all-reduce", *measured)};
  }
  if (!by_ring) return {};
  const RingRange ring = ring_inside(cluster_->node, group.shape.ranks);
  return NodeTime{.seconds = ring_collective_seconds(
                      {.kind = request.kind, .ranks = request.group.size(), .bytes = request.bytes}, ring),
                  .source = "ring",
                  .basis = ring_basis(cluster_->node, ring, group.shape.ranks)};
}

// Every rank still sends its part inside its node: another node makes that no faster.
std::optional<CollectiveModel::NodeTime> CollectiveModel::part_inside_node(const CollectiveRequest& request,
                                                                           const Group& group) const {
  const int64_t ranks = group.shape.most_per_node;
  if (!cluster_ || group.shape.nodes == 1 || ranks == 1 || request.group.stride() == 0) return {};
  const ProcessGroup members = ProcessGroup::strided(request.group.device(0), ranks, request.group.stride());
  const Group inside{.shape = group_shape(members, *cluster_)};
  const auto time = [&](double bytes) {
    return node_time({.kind = request.kind, .bytes = bytes, .group = members, .choice = request.choice}, inside);
  };
  const auto sent_by = [&](int64_t all) {
    return wire_bytes({.kind = request.kind, .ranks = all, .bytes = request.bytes}).value();
  };
  switch (request.kind) {
    case CollectiveKind::all_reduce:
      return time(request.bytes);
    case CollectiveKind::all_to_all:
      return time(request.bytes * static_cast<double>(ranks) / static_cast<double>(group.shape.ranks));
    case CollectiveKind::all_gather:
    case CollectiveKind::reduce_scatter: {
      // A rank sends more of the same buffer in a larger group. Measured times need not grow with every size.
      std::optional<NodeTime> more = time(request.bytes * sent_by(group.shape.ranks) / sent_by(ranks));
      const std::optional<NodeTime> same = time(request.bytes);
      if (!more || !same) return {};
      more->seconds = larger_of(more->seconds, same->seconds);
      return more;
    }
    default:
      return {};
  }
}

// Where nothing was measured of what this predicts, the factors are judgement, not statistics.
Estimate CollectiveModel::with_interval(Seconds time, const Choice& choice, Seconds least, const Group& group,
                                        std::string& basis) const {
  double faster = 0.5, slower = 2.5;
  const bool is_pcie = cluster_ && cluster_->node.fabric.kind == NodeFabricKind::pcie;
  if (!cluster_) {
    basis = "the links alone: real software only adds to it";
    faster = 1;
  } else if (group.shape.nodes > 1 && is_pcie) {
    basis = "link rates and NCCL's cost model; few runs between PCIe hosts were measured, so the interval is a guess";
    slower = 5;
  } else if (group.shape.nodes > 1) {
    basis = "link rates and NCCL's cost model, calibrated on published runs of 18 clusters of 2 to 12 nodes";
    const ClusterSpread spread = cluster_spread(choice.time, group.shape, sent_by(*choice.chosen.algorithm));
    faster = spread.low;
    slower = spread.high;
  } else if (is_pcie && group.shape.ranks > 2) {
    basis = fmt::format("the slot's rate; {}", one_figure_helps);
    slower = 5;
  } else {
    basis = "link rates and NCCL's own cost model; nothing was measured on this machine, so the interval is a guess";
  }
  const double seconds = time.value();
  return {.value = seconds,
          .low = std::min(seconds, std::max(least.value(), faster * seconds)),
          .high = slower * seconds,
          .kind = Confidence::roofline};
}

Seconds CollectiveModel::least_on_links(const CollectiveRequest& request, const Group& group) const {
  Seconds least(std::numeric_limits<double>::infinity());
  for (const AlgorithmAndProtocol& candidate : candidates(request.kind, group.shape, request.choice, limits_)) {
    least = std::min(least, time_on_links(request, group, {candidate.algorithm, Protocol::ideal}).wire);
  }
  return least;
}

void CollectiveModel::check_pairs(const CollectiveRequest& request) const {
  ensure(options_.uneven, "whoever asks for uneven pairs says so when the model is made");
  ensure(request.pairs->ranks == request.group.size(), "every rank of the group has its pairs");
  if (request.kind != CollectiveKind::all_to_all)
    refuse_collective("pairs", std::string(collective_kind_name(request.kind)),
                      "an all_to_all: no other has bytes for each pair");
  if (request.choice.algorithm != "auto" && request.choice.algorithm != "direct")
    refuse_collective("algorithm", request.choice.algorithm, "direct, where every pair has bytes of its own");
  if (request.concurrent > 1)
    refuse_collective("concurrent", "uneven pairs", "one group, where every pair has bytes of its own");
}

void CollectiveModel::check(const CollectiveRequest& request) const {
  check_group(request.group, device_count(), name_);
  if (!std::isfinite(request.bytes) || request.bytes < 0)
    refuse_collective("bytes", number_text(request.bytes), "a size of at least zero");
  if (request.root < 0 || request.root >= request.group.size())
    refuse_collective("root", fmt::format("{}", request.root),
                      fmt::format("a rank from 0 to {}", request.group.size() - 1));
  if (request.kind == CollectiveKind::send_recv && request.group.size() != 2)
    refuse_collective("ranks", fmt::format("{}", request.group.size()), "two ranks for a send_recv");
  if (request.concurrent > 1 && options_.fidelity != Fidelity::flow)
    refuse_collective("concurrent", fmt::format("{} groups by formula", request.concurrent),
                      "fidelity flow, where groups share links");
  if (request.pairs) check_pairs(request);
}

Choice CollectiveModel::choice_for(const CollectiveRequest& request, const Group& group) const {
  return choose(candidates(request.kind, group.shape, request.choice, limits_),
                [&](const AlgorithmAndProtocol& candidate) { return closed_form_of(request, group, candidate); });
}

TransferPlan CollectiveModel::plan(const CollectiveRequest& request) const {
  check(request);
  const Group group = group_of(request);
  return plan_of(request, group, choice_for(request, group).chosen);
}

CollectiveEstimate CollectiveModel::estimate(const CollectiveRequest& request) const {
  check(request);
  const Group group = group_of(request);
  CollectiveEstimate result;
  result.choice = choice_for(request, group);
  const AlgorithmAndProtocol& chosen = result.choice.chosen;
  if (group.shape.ranks == 1) {
    result.source = "formula";
    result.basis = "one rank sends nothing";
  } else if (const std::optional<NodeTime> known = node_time(request, group)) {
    result.seconds = known->seconds;
    result.source = known->source;
    result.basis = known->basis;
  } else {
    const bool by_flow = options_.fidelity == Fidelity::flow;
    const Seconds time = by_flow ? flow_time(request, chosen, result.link_use) : result.choice.time.total();
    result.seconds = with_interval(time, result.choice, least_on_links(request, group), group, result.basis);
    result.source = by_flow ? "flow" : "formula";
    const std::optional<NodeTime> inside = part_inside_node(request, group);
    if (inside && (inside->seconds.value > result.seconds.value || inside->seconds.high > result.seconds.high)) {
      const Confidence kind = result.seconds.kind;
      result.seconds = larger_of(result.seconds, inside->seconds);
      result.seconds.kind = kind;
      result.basis += fmt::format("; at least the part inside each node: {}", inside->basis);
    }
  }
  const Seconds time(result.seconds.value);
  if (options_.reports_links && group.shape.ranks > 1) result.links = link_reports(request, chosen, time);
  if (time.value() > 0) {
    const double bytes = request.pairs ? request.pairs->most_sent() : request.bytes;
    const Bytes wire = request.pairs
                           ? Bytes(bytes)
                           : wire_bytes({.kind = request.kind, .ranks = request.group.size(), .bytes = bytes});
    result.algorithm_bandwidth = bytes / time.value();
    result.bus_bandwidth = (wire / time).value();
  }
  return result;
}

}  // namespace foretoken
