#include "network/rank_network.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/error.h"
#include "hardware/usual_cluster.h"
#include "model/work.h"
#include "network/calibration/expert_kernels.h"
#include "network/calibration/stack_collectives.h"
#include "network/shared_cards.h"
#include "network/transfer/collective.h"

namespace foretoken {
namespace {

std::span<const ParallelAxis> order_of(const NetworkFacts& facts) {
  return facts.order.empty() ? std::span<const ParallelAxis>(engine_rank_order) : facts.order;
}

bool is_pcie(const NetworkFacts& facts) {
  if (facts.node) return facts.node->fabric.kind == NodeFabricKind::pcie;
  return !facts.device.link_bandwidth && facts.device.host_bandwidth;
}

}  // namespace

RankNetwork::RankNetwork(std::shared_ptr<const NetworkFacts> facts, const ParallelPlan& plan)
    : facts_(std::move(facts)), places_(plan, order_of(*facts_)) {
  const int64_t ranks = rank_count(plan);
  if (ranks == 1) return;
  if (facts_->node && ranks > facts_->node->device_count) use_cluster(ranks);
  const bool tokens_travel = lock_step_ranks(plan) > 1 && plan.exchange == ExpertExchange::all_to_all;
  if (facts_->node && tokens_travel && facts_->expert_kernels && !is_pcie(*facts_)) {
    expert_kernels_ = facts_->expert_kernels(cluster_ ? cluster_->node : *facts_->node);
  }
  const bool is_bridged_pair = ranks == 2 && facts_->node && facts_->node->fabric.bridge;
  if (!is_bridged_pair) note_pcie();
}

std::shared_ptr<const RankNetwork> RankNetwork::for_plan(const ParallelPlan& plan) const {
  return std::make_shared<const RankNetwork>(facts_, plan);
}

void RankNetwork::use_cluster(int64_t ranks) {
  const Node& node = facts_->node.value();
  const int64_t nodes = (ranks + node.device_count - 1) / node.device_count;
  if (facts_->cluster) {
    cluster_ = facts_->cluster;
    if (total_devices(*cluster_) < ranks) {
      throw InputError({.source = "cluster " + cluster_->name,
                        .value = fmt::format("{} devices", total_devices(*cluster_)),
                        .expected = fmt::format("at least {}, one for each rank", ranks)});
    }
  } else if (facts_->usual_cluster) {
    cluster_ = cluster_with_nodes(facts_->usual_cluster(node), static_cast<int>(nodes));
    notes_.push_back(assumed_cluster_text(*cluster_, ranks));
  }
  if (!cluster_) return;
  if (runs_rings()) cluster_->node.fabric.is_swept = false;  // the sweep is of another box
  across_.emplace(*cluster_, CollectiveOptions{});
}

// The bandwidth decides most of the width, also of decode steps: it differs fourfold and more between hosts.
void RankNetwork::note_pcie() {
  const LinkSpec& link = facts_->link;
  const bool is_alone_in_its_node = facts_->node && facts_->node->device_count == 1;
  if (is_alone_in_its_node || !is_pcie(*facts_) || facts_->has_sweep_of_node || (link.bandwidth && link.latency))
    return;
  const int64_t in_stage = std::ssize(places_.ranks_of_stage(0));
  const int64_t ranks =
      std::max<int64_t>(2, facts_->node ? std::min<int64_t>(in_stage, facts_->node->device_count) : in_stage);
  const RingRange ring = ring_of(ranks);
  const double latency_us = ring.usual.latency.value() * 1e6;
  std::string note = fmt::format("{} GPUs talk over PCIe, and hosts differ: ", facts_->device.title);
  if (link.bandwidth) {
    note += fmt::format(
        "foretoken assumes {:.3g} us a hop. To narrow the interval further, give the latency of a small all-reduce as "
        "{{link}} latency=us, divided by its {} hops",
        latency_us, 2 * (ranks - 1));
  } else {
    note += fmt::format(
        "foretoken assumes {} and {:.3g} us a hop, and the interval covers {:.2g} to {}. One measured number narrows "
        "it most: the bus bandwidth of a large all-reduce among {} GPUs (busbw of nccl-tests), given as {{link}} "
        "bandwidth=GB/s",
        rate_words(ring.usual.bandwidth), latency_us, ring.slowest.bandwidth.value() / 1e9,
        rate_words(ring.fastest.bandwidth), ranks);
  }
  if (facts_->node && facts_->node->fabric.is_swept) {
    note += fmt::format("; {{node}} {} is one box that was measured", facts_->node->name);
  } else if (facts_->device.link_bandwidth && !facts_->node->fabric.bridge) {
    note += ", or {link} nvlink-pairs for GPUs that are bridged in pairs";
  }
  notes_.push_back(note + ".");
}

bool RankNetwork::runs_rings() const {
  if (facts_->node && has_given_ring(*facts_->node)) return true;
  return is_pcie(*facts_) && !facts_->has_sweep_of_node;
}

RingRange RankNetwork::ring_of(int64_t ranks) const {
  if (facts_->node) return ring_inside(*facts_->node, ranks);
  return pcie_ring(facts_->device.host_bandwidth.value().value, std::nullopt, ranks);
}

bool RankNetwork::leaves_node(const StepCollective& call) const {
  return across_ && across_->nodes_of(places_.group(call.shape, call.stage)) > 1;
}

bool RankNetwork::is_bridged(const StepCollective& call) const {
  if (call.shape.ranks != 2 || !facts_->node || !facts_->node->fabric.bridge) return false;
  const ProcessGroup group = places_.group(call.shape, call.stage);
  return group.device(0) / 2 == group.device(1) / 2;
}

Estimate RankNetwork::inside(const StepCollective& call) const {
  if (runs_rings() && !is_bridged(call)) return ring_collective_seconds(call.shape, ring_of(call.shape.ranks));
  return stack_collective_seconds(call.shape, call.kernel, facts_->device, facts_->measured.get());
}

// Inside a node, training exchanges by NCCL, and so do devices whose links DeepEP was not written for.
bool RankNetwork::travels_by_deepep(const StepCollective& call, int64_t nodes) const {
  const CollectiveShape& shape = call.shape;
  const bool travels = shape.kind == CollectiveKind::all_to_all && shape.axis == ParallelAxis::expert;
  if (!travels || call.experts == nullptr || !expert_kernels_) return false;
  return nodes > 1 || (call.experts->received && facts_->device.vendor == "NVIDIA" && !runs_rings());
}

std::optional<Estimate> RankNetwork::expert_seconds(const StepCollective& call, int64_t ranks, int64_t nodes,
                                                    double tokens) const {
  const CollectiveShape& shape = call.shape;
  const MoeShape& experts = *call.experts;
  const ExpertTraffic traffic{.tokens = std::max<int64_t>(1, std::llround(tokens)),
                              .hidden = experts.hidden,
                              .top_k = experts.top_k,
                              .experts = experts.experts};
  const ExpertKernel* kernel =
      find_expert_kernel(travels_with_low_latency(experts) ? "deepep-low-latency" : "deepep-normal");
  ensure(kernel != nullptr, "DeepEP's kernels are in the list");
  std::vector<Estimate> parts;
  for (CommunicationCall one :
       expert_calls(*kernel, shape.returns ? ExpertDirection::combine : ExpertDirection::dispatch,
                    kernel->dispatch_dtypes.front(), ranks, nodes, traffic)) {
    const double values = static_cast<double>(experts.tokens) / static_cast<double>(shape.ranks) *
                          static_cast<double>(experts.top_k * experts.hidden);
    if (!shape.returns && values > 0) one.expert.bytes_per_value = shape.bytes / values;
    const std::optional<CommunicationTime> time = expert_kernels_->estimate(one);
    if (!time) return std::nullopt;
    parts.push_back(time->seconds);
  }
  return sum_of_correlated(parts);
}

ExchangeUse RankNetwork::exchange_use(const StepCollective& call) const {
  const int64_t nodes = across_ ? across_->nodes_of(places_.group(call.shape, call.stage)) : 1;
  if (!travels_by_deepep(call, nodes)) {
    const std::optional<CommunicationCall> nccl = nccl_call(call.shape);
    if (!nccl) return {};
    SystemTraits system;
    if (facts_->device.processors) system.processors = facts_->device.processors->value;
    return {.processors = busy_processors(*nccl, system)};
  }
  if (!travels_with_low_latency(*call.experts)) return {.processors = usual_deepep_processors};
  // Of one token inside a node next to nothing is the wire.
  const int64_t near =
      facts_->node ? std::min<int64_t>(call.shape.ranks, facts_->node->device_count) : call.shape.ranks;
  const std::optional<Estimate> floor = expert_seconds(call, near, 1, 1);
  return {.low_latency = true, .on_device = floor ? floor->value : 0};
}

Estimate RankNetwork::seconds(const StepCollective& call) const {
  if (call.shape.ranks <= 1) return exactly(0);
  const std::optional<ProcessGroup> group =
      across_ ? std::optional(places_.group(call.shape, call.stage)) : std::nullopt;
  const int64_t nodes = group ? across_->nodes_of(*group) : 1;
  if (travels_by_deepep(call, nodes)) {
    const MoeShape& experts = *call.experts;
    const double busiest = expert_load(experts).pairs / static_cast<double>(experts.top_k);
    const double tokens =
        std::max(busiest, static_cast<double>(experts.tokens) / static_cast<double>(call.shape.ranks));
    if (const std::optional<Estimate> time = expert_seconds(call, call.shape.ranks, nodes, tokens)) return *time;
  }
  if (nodes <= 1) return inside(call);
  const Node& node = cluster_->node;
  const double sharing = shares_cards(node) ? groups_per_card(node, *group, places_.ranks_of_stage(call.stage)) : 1;
  return across_
      ->estimate({.kind = call.shape.kind, .bytes = call.shape.bytes, .group = *group, .groups_per_card = sharing})
      .seconds;
}

LinkTraffic RankNetwork::node_link() const {
  LinkTraffic link{.link = "device links"};
  if (is_pcie(*facts_)) {
    link.link = "PCIe";
  } else if (facts_->node && facts_->node->fabric.kind == NodeFabricKind::xgmi) {
    link.link = "xGMI";
  } else if (facts_->device.vendor == "NVIDIA") {
    link.link = "NVLink";
  }
  link.bandwidth = runs_rings()   ? ring_of(2).usual.bandwidth.value()
                   : facts_->node ? facts_->node->fabric.bandwidth.value.value()
                                  : fabric_of(facts_->device).per_device.value();
  return link;
}

std::vector<LinkTraffic> RankNetwork::traffic(const StepCollective& call) const {
  const CollectiveShape& shape = call.shape;
  if (shape.ranks <= 1) return {};
  LinkTraffic near = node_link();
  if (!leaves_node(call)) {
    if (is_bridged(call)) near = {.link = "NVLink bridge", .bandwidth = facts_->node->fabric.bridge->value.value()};
    near.bytes = wire_bytes(shape).value();
    return {near};
  }
  const ProcessGroup group = places_.group(shape, call.stage);
  const GroupShape where = group_shape(group, *cluster_);
  LinkTraffic far{.link = cluster_->fabric.technology, .between_nodes = true};
  far.bandwidth = bandwidth_within_leaf(*cluster_).value();
  if (shape.kind == CollectiveKind::all_to_all || shape.kind == CollectiveKind::send_recv) {
    const double away = shape.kind == CollectiveKind::send_recv
                            ? 1
                            : static_cast<double>(where.ranks - where.most_per_node) / static_cast<double>(where.ranks);
    far.bytes = away * shape.bytes;
    near.bytes = wire_bytes(shape).value() - far.bytes;
  } else {
    const CollectiveEstimate estimate = across_->estimate({.kind = shape.kind, .bytes = shape.bytes, .group = group});
    for (const StageLoad& load : estimate.choice.chosen.algorithm->loads(shape.kind, where)) {
      far.bytes += load.card * shape.bytes;
      near.bytes += load.device * shape.bytes;
    }
  }
  if (near.bytes > 0) return {near, far};
  return {far};
}

Estimate step_collective_seconds(const StepCollective& call, const Device& device, const RankNetwork* network) {
  if (network != nullptr) return network->seconds(call);
  return stack_collective_seconds(call.shape, call.kernel, device, nullptr);
}

const MoeShape* traveling_experts(std::span<const Operator> operators) {
  for (const Operator& one : operators) {
    if (const auto* experts = std::get_if<MoeShape>(&one.shape)) return experts;
  }
  return nullptr;
}

}  // namespace foretoken
