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
#include "network/rank_places.h"

namespace foretoken {
namespace {

struct RankGroup {
  std::string name;
  std::vector<int32_t> members;
};

std::span<const ParallelAxis> rank_order_of(const StepEstimate& step) {
  return step.rank_order.empty() ? usual_rank_order(step.request.phase) : step.rank_order;
}

class StepTracer {
 public:
  StepTracer(const StepEstimate& step, const Stack& stack, double host_factor, int64_t rank)
      : step_(step),
        plan_(step.plan),
        places_(plan_, rank_order_of(step)),
        rank_(rank),
        position_(places_.position_of(rank)),
        stage_(position_.stage),
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
    RankPosition peer = position_;
    peer.stage = stage;
    add_message_node(name, type, places_.rank_at(peer), pass == Pass::forward ? 0 : 1, bytes, seconds);
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
    RankPosition before = position_, behind = position_;
    if (--before.context >= 0) {
      add_message_node(name, ChakraNodeType::receive, places_.rank_at(before), tag, shape.bytes, 0);
    }
    if (++behind.context < plan_.context) {
      add_message_node(name, ChakraNodeType::send, places_.rank_at(behind), tag, shape.bytes, seconds);
    }
  }

  void add_collective(const std::string& name, const CollectiveShape& shape, std::string_view kernel, double seconds) {
    const RankGroup group = group_of(shape);
    groups_.try_emplace(group.name, group.members);
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

  // The i-th of a stage's ranks, tensor ranks first, then context, then data.
  int64_t rank_of_stage(int64_t i) const {
    return places_.rank_at({.tensor = i % plan_.tensor,
                            .context = i / plan_.tensor % plan_.context,
                            .data = i / (plan_.tensor * plan_.context),
                            .stage = stage_});
  }

  // Names are numbers, as ASTRA-sim wants them, and differ between groups of the whole job.
  RankGroup group_of(const CollectiveShape& shape) const {
    const int64_t place =
        position_.tensor + plan_.tensor * (position_.context + plan_.context * position_.data);  // in the stage
    auto kind = static_cast<int64_t>(shape.axis);
    RankGroup group;
    const auto add_member = [&](int64_t rank) { group.members.push_back(static_cast<int32_t>(rank)); };
    switch (shape.axis) {
      case ParallelAxis::tensor:
      case ParallelAxis::expert: {  // tensor ranks, and those of the next replicas that share the experts
        const int64_t first = place / shape.ranks * shape.ranks;
        for (int64_t i = 0; i < shape.ranks; ++i) add_member(rank_of_stage(first + i));
        break;
      }
      case ParallelAxis::context:
        for (int64_t context = 0; context < shape.ranks; ++context) {
          RankPosition one = position_;
          one.context = context;
          add_member(places_.rank_at(one));
        }
        break;
      case ParallelAxis::data: {
        // All replicas, or those whose experts are the same: every so many of them.
        const int64_t replicas = plan_.data * plan_.context, apart = replicas / shape.ranks;
        const int64_t stride = plan_.tensor * apart, first = place % stride;
        for (int64_t i = 0; i < shape.ranks; ++i) add_member(rank_of_stage(first + i * stride));
        if (apart > 1) kind = static_cast<int64_t>(ParallelAxis::context) + 1;
        break;
      }
      case ParallelAxis::pipeline:  // the first stage and the last share the embedding table
        for (const int64_t stage : {int64_t{0}, plan_.pipeline - 1}) {
          RankPosition one = position_;
          one.stage = stage;
          add_member(places_.rank_at(one));
        }
        break;
    }
    ensure(std::find(group.members.begin(), group.members.end(), rank_) != group.members.end(),
           "a rank is in the process group of its own collective");
    group.name = fmt::format("{}", kind * rank_count(plan_) + group.members.front());
    return group;
  }

  const StepEstimate& step_;
  const ParallelPlan& plan_;
  RankPlaces places_;
  int64_t rank_ = 0;
  RankPosition position_;
  int64_t stage_ = 0;
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
