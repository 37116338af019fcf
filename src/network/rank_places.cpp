#include "network/rank_places.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"

namespace foretoken {
namespace {

struct AxisName {
  std::string_view name;
  ParallelAxis axis;
};
constexpr AxisName axis_names[] = {{"tp", ParallelAxis::tensor},
                                   {"cp", ParallelAxis::context},
                                   {"pp", ParallelAxis::pipeline},
                                   {"dp", ParallelAxis::data}};

// Devices one stride apart need no list.
ProcessGroup as_group(const std::vector<int32_t>& devices) {
  if (devices.size() < 2) return ProcessGroup::of(devices);
  const int64_t stride = devices[1] - devices[0];
  for (size_t i = 1; i < devices.size(); ++i) {
    if (stride < 1 || devices[i] - devices[i - 1] != stride) return ProcessGroup::of(devices);
  }
  return ProcessGroup::strided(devices[0], static_cast<int64_t>(devices.size()), stride);
}

}  // namespace

std::span<const ParallelAxis> usual_rank_order(StepPhase phase) {
  if (phase == StepPhase::train) return training_rank_order;
  return engine_rank_order;
}

std::vector<ParallelAxis> parse_rank_order(const std::string& flag, const std::string& text) {
  std::vector<ParallelAxis> order;
  const auto fail = [&] {
    throw InputError(
        {.source = flag,
         .value = printable(text),
         .expected = "tp, cp, pp and dp from the innermost to the outermost, such as tp-pp-dp; each once"});
  };
  for (const std::string_view part : split(text, "-")) {
    const auto found = std::find_if(std::begin(axis_names), std::end(axis_names),
                                    [&](const AxisName& one) { return one.name == part; });
    if (found == std::end(axis_names) || std::find(order.begin(), order.end(), found->axis) != order.end()) fail();
    order.push_back(found->axis);
  }
  for (const ParallelAxis axis : engine_rank_order) {
    if (std::find(order.begin(), order.end(), axis) == order.end()) order.push_back(axis);
  }
  return order;
}

std::string placement_key(const PlacementSpec& placement) {
  const LinkSpec& link = placement.link;
  std::string key =
      fmt::format("node {} cluster {} | {} {} {} {} {} {} {} |", placement.node, placement.cluster,
                  link.bandwidth ? link.bandwidth->value() : -1, link.latency ? link.latency->value() : -1,
                  link.pcie_generation, link.peer_access ? static_cast<int>(*link.peer_access) : -1, link.nvlink_pairs,
                  link.nics, link.nic_bandwidth ? link.nic_bandwidth->value() : -1);
  for (const ParallelAxis axis : placement.order) key += fmt::format(" {}", static_cast<int>(axis));
  return key;
}

RankPlaces::RankPlaces(const ParallelPlan& plan, std::span<const ParallelAxis> order) : plan_(plan) {
  int64_t step = 1;
  for (const ParallelAxis axis : order) {
    switch (axis) {
      case ParallelAxis::tensor:
        tensor_step_ = step;
        step *= plan.tensor;
        break;
      case ParallelAxis::context:
        context_step_ = step;
        step *= plan.context;
        break;
      case ParallelAxis::pipeline:
        pipeline_step_ = step;
        step *= plan.pipeline;
        break;
      case ParallelAxis::data:
        data_step_ = step;
        step *= plan.data;
        break;
      case ParallelAxis::expert:
        break;
    }
  }
}

ProcessGroup RankPlaces::group(const CollectiveShape& shape, int64_t stage) const {
  const int64_t first = stage * pipeline_step_;
  if (shape.axis == ParallelAxis::pipeline) {
    // The first stage and the last share the embedding table; sends go to a neighbour.
    const bool is_send = shape.kind == CollectiveKind::send_recv;
    const int64_t other = !is_send ? plan_.pipeline - 1 : stage + 1 < plan_.pipeline ? stage + 1 : stage - 1;
    const int64_t one = is_send ? stage : 0;
    if (other >= 0 && other != one) {
      return ProcessGroup::of(
          {static_cast<int32_t>(one * pipeline_step_), static_cast<int32_t>(other * pipeline_step_)});
    }
    return ProcessGroup::strided(0, shape.ranks);
  }
  const int64_t replicas = plan_.context * plan_.data;
  const auto replica_place = [&](int64_t k) {
    return k % plan_.context * context_step_ + k / plan_.context * data_step_;
  };
  std::vector<int32_t> devices;
  for (int64_t i = 0; i < shape.ranks; ++i) {
    int64_t place = 0;
    switch (shape.axis) {
      case ParallelAxis::tensor:
        place = i * tensor_step_;
        break;
      case ParallelAxis::context:
        place = i * context_step_;
        break;
      case ParallelAxis::expert:  // tensor ranks, then those of the next replicas that share the experts
        place = i % plan_.tensor * tensor_step_ + replica_place(i / plan_.tensor);
        break;
      case ParallelAxis::data:  // all replicas, or those whose experts are the same: every so many of them
        place = replica_place(i * std::max<int64_t>(1, replicas / shape.ranks));
        break;
      case ParallelAxis::pipeline:
        break;
    }
    devices.push_back(static_cast<int32_t>(first + place));
  }
  return as_group(devices);
}

std::vector<int64_t> RankPlaces::ranks_of_stage(int64_t stage) const {
  std::vector<int64_t> devices;
  for (int64_t data = 0; data < plan_.data; ++data) {
    for (int64_t context = 0; context < plan_.context; ++context) {
      for (int64_t tensor = 0; tensor < plan_.tensor; ++tensor) {
        devices.push_back(rank_at({.tensor = tensor, .context = context, .data = data, .stage = stage}));
      }
    }
  }
  return devices;
}

RankPosition RankPlaces::position_of(int64_t rank) const {
  return {.tensor = rank / tensor_step_ % plan_.tensor,
          .context = rank / context_step_ % plan_.context,
          .data = rank / data_step_ % plan_.data,
          .stage = rank / pipeline_step_ % plan_.pipeline};
}

int64_t RankPlaces::rank_at(const RankPosition& position) const {
  return position.tensor * tensor_step_ + position.context * context_step_ + position.data * data_step_ +
         position.stage * pipeline_step_;
}

}  // namespace foretoken
