#include "training/schedule/pipeline_chakra.h"

#include <optional>
#include <span>

#include <fmt/format.h>

#include "network/chakra/nodes.h"
#include "training/schedule/pipeline_kind.h"

namespace foretoken {
namespace {

// The trace of one stage.
class StageTracer {
 public:
  StageTracer(const PipelineKind& kind, const PipelineWork& work, const PipelineMessageBytes& bytes, int64_t stage)
      : kind_(kind), work_(work), bytes_(bytes), stage_(stage), chunks_(work.stages * work.virtual_stages) {}

  // `events` are one, or two that run together.
  void add(std::span<const PipelineEvent> events) {
    std::vector<uint64_t> waits = last_compute_ == 0 ? std::vector<uint64_t>() : std::vector<uint64_t>{last_compute_};
    std::string name;
    double seconds = 0;
    for (const PipelineEvent& event : events) {
      if (const std::optional<Message> message = incoming(event)) waits.push_back(add_message(*message, {}));
      name += fmt::format("{}{} of micro-batch {}, chunk {}", name.empty() ? "" : " + ", pipeline_task_name(event.kind),
                          event.micro_batch, event.chunk);
      seconds += event.seconds;
    }
    ChakraNode& node = add_node(std::move(name), ChakraNodeType::compute, std::move(waits));
    set_duration(node, seconds);
    node.attributes.push_back(chakra_boolean("is_cpu_op", false));
    last_compute_ = node.id;
    for (const PipelineEvent& event : events) {
      if (const std::optional<Message> message = outgoing(event)) add_message(*message, {last_compute_});
    }
  }

  ChakraTrace trace() && { return std::move(trace_); }

 private:
  struct Message {
    bool forward = true;
    int64_t from_chunk = 0, micro_batch = 0;
    int64_t from = 0, to = 0;  // stages
  };

  // Between a chunk and the next one of the direction, where that lies on another stage.
  std::optional<Message> message(bool forward, int64_t from_chunk, int64_t micro_batch) const {
    const int64_t to_chunk = from_chunk + (forward ? 1 : -1);
    if (from_chunk < 0 || to_chunk < 0 || from_chunk >= chunks_ || to_chunk >= chunks_) return std::nullopt;
    const int64_t copy = micro_batch % kind_.model_copies;
    const Message result{.forward = forward,
                         .from_chunk = from_chunk,
                         .micro_batch = micro_batch,
                         .from = kind_.stage_of(work_, from_chunk, copy),
                         .to = kind_.stage_of(work_, to_chunk, copy)};
    if (result.from == result.to) return std::nullopt;
    return result;
  }
  std::optional<Message> incoming(const PipelineEvent& event) const {
    if (event.kind == PipelineTaskKind::backward_weight) return std::nullopt;
    const bool forward = event.kind == PipelineTaskKind::forward;
    return message(forward, event.chunk + (forward ? -1 : 1), event.micro_batch);
  }
  std::optional<Message> outgoing(const PipelineEvent& event) const {
    if (event.kind == PipelineTaskKind::backward_weight) return std::nullopt;
    return message(event.kind == PipelineTaskKind::forward, event.chunk, event.micro_batch);
  }

  uint64_t add_message(const Message& message, std::vector<uint64_t> waits) {
    const bool sends = message.from == stage_;
    ChakraNode& node = add_node(fmt::format("{} micro-batch {}", sends ? "send" : "receive", message.micro_batch),
                                sends ? ChakraNodeType::send : ChakraNodeType::receive, std::move(waits));
    set_message(node, {.bytes = message.forward ? bytes_.forward : bytes_.backward,
                       .from = message.from,
                       .to = message.to,
                       .tag = 2 * (message.micro_batch * chunks_ + message.from_chunk) + (message.forward ? 0 : 1)});
    return node.id;
  }

  ChakraNode& add_node(std::string name, ChakraNodeType type, std::vector<uint64_t> waits) {
    trace_.nodes.push_back(
        {.id = trace_.nodes.size() + 1, .name = std::move(name), .type = type, .data_dependencies = std::move(waits)});
    return trace_.nodes.back();
  }

  const PipelineKind& kind_;
  const PipelineWork& work_;
  const PipelineMessageBytes& bytes_;
  int64_t stage_ = 0, chunks_ = 1;
  uint64_t last_compute_ = 0;  // its node's id
  ChakraTrace trace_;
};

}  // namespace

std::vector<ChakraTrace> pipeline_chakra(std::string_view schedule, const PipelineWork& work,
                                         const PipelineTimeline& timeline, const PipelineMessageBytes& bytes) {
  const PipelineKind& kind = pipeline_kind(schedule);
  std::vector<StageTracer> tracers;
  for (int64_t stage = 0; stage < work.stages; ++stage) tracers.emplace_back(kind, work, bytes, stage);
  const std::span<const PipelineEvent> events = timeline.events;
  for (size_t i = 0; i < events.size();) {
    const size_t count = events[i].pairing == TaskPairing::with_next ? 2 : 1;
    tracers[static_cast<size_t>(events[i].stage)].add(events.subspan(i, count));
    i += count;
  }
  std::vector<ChakraTrace> traces;
  traces.reserve(tracers.size());
  for (StageTracer& tracer : tracers) traces.push_back(std::move(tracer).trace());
  return traces;
}

}  // namespace foretoken
