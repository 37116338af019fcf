#include "compose/step_chakra.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <span>

#include <fmt/format.h>

#include "base/error.h"
#include "network/calibration/stack_collectives.h"
#include "network/chakra/collectives.h"
#include "network/chakra/groups.h"
#include "network/chakra/nodes.h"

namespace foretoken {
namespace {

// A group of ranks first, first + stride, ...
struct RankGroup {
  std::string name;
  int64_t first = 0, stride = 1, count = 1;
};

class StepTracer {
 public:
  StepTracer(const StepEstimate& step, const Stack& stack, double host_factor, int64_t rank)
      : step_(step),
        plan_(step.plan),
        rank_(rank),
        stage_ranks_(plan_.tensor * plan_.context * plan_.data),
        stage_(rank / stage_ranks_),
        launches_(step.stages[static_cast<size_t>(stage_)].launches),
        calls_(step.stages[static_cast<size_t>(stage_)].calls),
        events_(step_timeline(step.stages[static_cast<size_t>(stage_)], stack, step.dispatch, host_factor)) {}

  ChakraTrace trace() {
    double device_free = 0;
    bool went_forward = false, went_backward = false;
    for (const TimelineEvent& event : events_) {
      if (event.on_host) continue;
      const TimedLaunch& timed = launches_[event.launch];
      const Pass pass = calls_[timed.launch.call].pass;
      bool& seen = pass == Pass::forward ? went_forward : went_backward;
      if (!seen) receive_from_stage(pass);
      seen = true;
      add_gap(event.start - device_free);
      device_free = event.start + event.seconds;
      if (const auto* collective = std::get_if<CollectiveShape>(&timed.launch.shape)) {
        add_communication(timed.launch, *collective, pass, event.seconds);
      } else {
        add_kernel(timed, event.seconds);
      }
    }
    add_gap(step_.stages[static_cast<size_t>(stage_)].time.seconds - device_free);
    ChakraTrace trace{.nodes = {chakra_group_node(0, groups_)}};
    for (ChakraNode& node : nodes_) trace.nodes.push_back(std::move(node));
    return trace;
  }

 private:
  ChakraNode& add(std::string name, ChakraNodeType type, double seconds) {
    const uint64_t id = nodes_.size() + 1;
    nodes_.push_back({.id = id, .name = std::move(name), .type = type});
    ChakraNode& node = nodes_.back();
    node.data_dependencies = {id - 1};
    set_duration(node, seconds);
    return node;
  }

  void add_gap(double seconds) {
    if (seconds <= 0) return;
    add("launch gap", ChakraNodeType::compute, seconds).attributes.push_back(chakra_boolean("is_cpu_op", true));
  }

  void add_kernel(const TimedLaunch& timed, double seconds) {
    const auto count = static_cast<double>(timed.launch.count);
    ChakraNode& node = add(timed.launch.name, ChakraNodeType::compute, seconds);
    node.attributes.push_back(chakra_boolean("is_cpu_op", false));
    node.attributes.push_back(chakra_unsigned("num_ops", whole(timed.work.flops.value() / count)));
    node.attributes.push_back(chakra_unsigned("tensor_size", whole(timed.work.bytes().value() / count)));
  }

  static uint64_t whole(double value) { return static_cast<uint64_t>(std::llround(value)); }

  void add_communication(const Launch& launch, const CollectiveShape& shape, Pass pass, double seconds) {
    const std::string& name = launch.name;
    if (shape.kind != CollectiveKind::send_recv) {
      add_collective(name, shape, launch.variant, seconds);
    } else if (shape.axis == ParallelAxis::pipeline) {
      add_message(name, ChakraNodeType::send, stage_ + (pass == Pass::forward ? 1 : -1), pass, shape.bytes, seconds);
    } else {
      add_state_message(name, shape, seconds);
    }
  }

  // What the neighbouring stage of this pass sends, before this stage can go on.
  void receive_from_stage(Pass pass) {
    const int64_t other = stage_ + (pass == Pass::forward ? -1 : 1);
    if (other < 0 || other >= plan_.pipeline) return;
    const StageEstimate& sender = step_.stages[static_cast<size_t>(other)];
    for (const TimedLaunch& timed : sender.launches) {
      const auto* shape = std::get_if<CollectiveShape>(&timed.launch.shape);
      const bool is_message = shape != nullptr && shape->kind == CollectiveKind::send_recv &&
                              shape->axis == ParallelAxis::pipeline && sender.calls[timed.launch.call].pass == pass;
      if (is_message) {
        add_message("pp_receive", ChakraNodeType::receive, other, pass, shape->bytes, 0);
        return;
      }
    }
  }

  void add_message(const std::string& name, ChakraNodeType type, int64_t stage, Pass pass, double bytes,
                   double seconds) {
    const int64_t peer = stage * stage_ranks_ + rank_ % stage_ranks_;
    add_message_node(name, type, peer, pass == Pass::forward ? 0 : 1, bytes, seconds);
  }

  void add_message_node(const std::string& name, ChakraNodeType type, int64_t peer, int64_t tag, double bytes,
                        double seconds) {
    const bool sends = type == ChakraNodeType::send;
    ChakraNode& node = add(name, type, seconds);
    set_message(node, {.bytes = bytes, .from = sends ? rank_ : peer, .to = sends ? peer : rank_, .tag = tag});
  }

  // The state of a recurrence goes from one context rank to the next.
  void add_state_message(const std::string& name, const CollectiveShape& shape, double seconds) {
    constexpr int64_t tag = 2;
    const int64_t context = rank_ / plan_.tensor % plan_.context;
    if (context > 0) {
      add_message_node(name, ChakraNodeType::receive, rank_ - plan_.tensor, tag, shape.bytes, 0);
    }
    if (context + 1 < plan_.context) {
      add_message_node(name, ChakraNodeType::send, rank_ + plan_.tensor, tag, shape.bytes, seconds);
    }
  }

  void add_collective(const std::string& name, const CollectiveShape& shape, std::string_view kernel, double seconds) {
    const RankGroup group = group_of(shape);
    if (!groups_.contains(group.name)) {
      std::vector<int32_t>& members = groups_[group.name];
      for (int64_t i = 0; i < group.count; ++i) members.push_back(static_cast<int32_t>(group.first + i * group.stride));
    }
    ChakraNode& node = add(name, ChakraNodeType::collective, seconds);
    node.attributes.push_back(chakra_boolean("is_cpu_op", false));
    node.attributes.push_back(chakra_integer("comm_type", static_cast<int64_t>(chakra_collective(shape.kind))));
    node.attributes.push_back(
        chakra_unsigned("comm_size", whole(chakra_comm_size(shape.kind, shape.bytes, shape.ranks))));
    node.attributes.push_back(chakra_text("pg_name", group.name));
    const bool is_engines =
        shape.kind == CollectiveKind::all_reduce &&
        std::find(std::begin(engine_kernels), std::end(engine_kernels), kernel) != std::end(engine_kernels);
    if (is_engines) node.attributes.push_back(chakra_text(std::string(kernel_attribute), std::string(kernel)));
  }

  // Names are numbers, as ASTRA-sim wants them, and differ between groups of the whole job.
  RankGroup group_of(const CollectiveShape& shape) const {
    const int64_t ranks = stage_ranks_ * plan_.pipeline, stage_first = stage_ * stage_ranks_;
    const int64_t place = rank_ - stage_first;
    RankGroup group{.count = shape.ranks};
    auto kind = static_cast<int64_t>(shape.axis);
    switch (shape.axis) {
      case ParallelAxis::tensor:
      case ParallelAxis::expert:  // tensor ranks, and those of the next replicas that share the experts
        group.first = stage_first + place / shape.ranks * shape.ranks;
        break;
      case ParallelAxis::context:
        group.stride = plan_.tensor;
        group.first = rank_ - place / plan_.tensor % plan_.context * plan_.tensor;
        break;
      case ParallelAxis::data: {
        // All replicas, or those whose experts are the same: every so many of them.
        const int64_t replicas = plan_.data * plan_.context, apart = replicas / shape.ranks;
        group.stride = plan_.tensor * apart;
        group.first = stage_first + place % group.stride;
        if (apart > 1) kind = static_cast<int64_t>(ParallelAxis::context) + 1;
        break;
      }
      case ParallelAxis::pipeline:  // the first stage and the last share the embedding table
        group.stride = ranks - stage_ranks_;
        group.first = place;
        break;
    }
    ensure(group.first + (group.count - 1) * group.stride < ranks, "a process group lies within the plan");
    group.name = fmt::format("{}", kind * ranks + group.first);
    return group;
  }

  const StepEstimate& step_;
  const ParallelPlan& plan_;
  int64_t rank_ = 0, stage_ranks_ = 1, stage_ = 0;
  std::span<const TimedLaunch> launches_;
  std::span<const Operator> calls_;
  std::vector<TimelineEvent> events_;
  std::vector<ChakraNode> nodes_;
  NamedGroups groups_;
};

}  // namespace

ChakraTrace step_chakra(const StepEstimate& step, const Stack& stack, double host_factor, int64_t rank) {
  ensure(rank >= 0 && rank < rank_count(step.plan), "the rank is one of the plan");
  return StepTracer(step, stack, host_factor, rank).trace();
}

}  // namespace foretoken
