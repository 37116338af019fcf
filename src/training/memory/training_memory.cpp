#include "training/memory/training_memory.h"

#include <algorithm>
#include <span>

#include "base/error.h"
#include "compose/serving_engine.h"
#include "training/memory/chunks_in_flight.h"

namespace foretoken {
namespace {

// What several parts of a model come to on one rank.
struct HeldParts {
  double parameters = 0, plain_parameters = 0, expert_parameters = 0, adapter_parameters = 0;
  Bytes kept;     // of one micro-batch that waits for its backward pass
  Bytes redone;   // beyond its input, of the largest layer that is computed again
  Bytes working;  // of the widest operator outside the head

  void add_part(const PartMemory& part) {
    add_states(part);
    working = std::max(working, part.working);
  }
  void add_states(const PartMemory& part) {
    parameters += part.parameters;
    plain_parameters += part.plain_parameters;
    expert_parameters += part.expert_parameters;
    adapter_parameters += part.adapter_parameters;
  }
  void add_layer(const PartMemory& layer, Recompute recompute, const LayerModules& modules) {
    add_part(layer);
    Bytes spared;
    if (recompute == Recompute::full) spared = layer.saved - layer.input;
    if (recompute == Recompute::op) spared = layer.saved - layer.op_kept;
    if (recompute == Recompute::selective) spared = layer.spared(modules);
    kept += layer.saved - spared;
    // Scores are written and read in the attention core alone, which has room for them already.
    redone = std::max(redone, recompute == Recompute::selective ? spared - layer.scores : spared);
  }
  void add_layers(std::span<const PartMemory> layers, const TrainingPlan& plan) {
    const int64_t recomputed = plan.recompute_layers > 0 ? plan.recompute_layers : static_cast<int64_t>(layers.size());
    for (size_t i = 0; i < layers.size(); ++i) {
      const bool spared = plan.recompute == Recompute::full && static_cast<int64_t>(i) >= recomputed;
      add_layer(layers[i], spared ? Recompute::none : plan.recompute, plan.recompute_modules);
    }
  }
};

// Ranks that share one copy of a state, for what all data x context ranks hold and for routed experts: expert ranks
// beyond the tensor group are among the data x context ranks.
struct ShardGroups {
  double shared = 1, experts = 1;
};

ShardGroups shard_groups(const TrainingPlan& plan) {
  return {.shared = static_cast<double>(plan.sharded_over()),
          .experts = static_cast<double>(plan.experts_sharded_over())};
}

// Bytes of one state: whole, or the part of one rank.
struct StateBytes {
  Bytes whole, part;
  Bytes held(bool sharded) const { return sharded ? part : whole; }
};

class StateCounter {
 public:
  StateCounter(const TrainingPlan& plan, const TrainingFormats& formats)
      : formats_(formats), groups_(shard_groups(plan)), frozen_(formats.lora.rank > 0) {}

  // bitsandbytes, torchao and Transformer Engine quantize a frozen base in the linear layers of decoder layers alone;
  // the rest stays in 16 bits.
  StateBytes weights(const HeldParts& held) const {
    constexpr double plain_bytes = 2;
    const double base = frozen_ ? formats_.frozen_weight_bytes : formats_.weight_bytes;
    const double more = frozen_ ? std::max(0.0, plain_bytes - base) : 0;
    return state(
        held.parameters * base + held.plain_parameters * more + held.adapter_parameters * formats_.weight_bytes,
        held.expert_parameters * base);
  }
  // Gradients, the optimizer's state, or the weights that it changes.
  StateBytes trained(const HeldParts& held, double bytes) const {
    if (frozen_) return state(held.adapter_parameters * bytes, 0);
    return state(held.parameters * bytes, held.expert_parameters * bytes);
  }

 private:
  StateBytes state(double shared, double experts) const {
    return {.whole = Bytes(shared + experts), .part = Bytes(shared / groups_.shared + experts / groups_.experts)};
  }

  const TrainingFormats& formats_;
  ShardGroups groups_;
  bool frozen_;
};

// Whole parts at once: the weights of a layer and of those prefetched behind it, and the gradients of the one that is
// just done. Counted for the largest part.
Bytes gathered_bytes(const ModelParts& parts, std::span<const ChunkLayers> chunks, const StateCounter& states,
                     double gradient_bytes, int64_t gathered_layers) {
  Bytes largest;
  const auto consider = [&](const PartMemory& part) {
    HeldParts alone;
    alone.add_part(part);
    largest = std::max(largest, static_cast<double>(gathered_layers) * states.weights(alone).whole +
                                    states.trained(alone, gradient_bytes).whole);
  };
  for (const ChunkLayers& chunk : chunks) {
    for (int64_t i = 0; i < chunk.count; ++i) consider(parts.layers[static_cast<size_t>(chunk.first + i)]);
    if (chunk.embedding) consider(parts.embedding);
    if (chunk.head) consider(parts.head);
  }
  return largest;
}

TrainingMemory memory_of_stage(const ModelParts& parts, std::span<const ChunkLayers> chunks, const TrainingPlan& plan,
                               const TrainingFormats& formats, const MemoryOverheads& overheads, int64_t in_flight) {
  HeldParts held;
  TrainingMemory memory;
  bool has_embedding = false, has_head = false;
  HeldParts head;  // its gradients are there while its logits still are
  Bytes at_loss;   // what its multiply works with beside the logits
  for (const ChunkLayers& chunk : chunks) {
    held.add_layers(std::span(parts.layers).subspan(static_cast<size_t>(chunk.first), static_cast<size_t>(chunk.count)),
                    plan);
    if (chunk.embedding) {
      held.add_part(parts.embedding);
      held.add_layers(parts.encoder_layers, plan);
      held.kept += parts.embedding.saved;
    }
    if (chunk.head) {
      held.add_states(parts.head);
      head.add_states(parts.head);
      if (chunk.embedding) head.parameters += parts.tied_table;
      if (formats.logit_bytes > 0) at_loss = parts.head.working;  // a fused loss has no logits
      // A micro-batch turns round at the head: one is there at a time.
      const double predictions = 1 + static_cast<double>(parts.draft_layers.size());
      memory.activations += predictions * parts.head.saved;
      constexpr double counted = 4;  // bytes of a logit in the model's parts
      memory.logits += predictions * formats.logit_bytes / counted * parts.head.logits;
    }
    const auto drafts = static_cast<size_t>(chunk.drafts);
    held.add_layers(std::span(parts.draft_layers).first(std::min(drafts, parts.draft_layers.size())), plan);
    has_embedding = has_embedding || chunk.embedding;
    has_head = has_head || chunk.head;
  }
  if (has_head && !has_embedding) {
    held.parameters += parts.tied_table;
    held.plain_parameters += parts.tied_table;
  }

  const StateCounter states(plan, formats);
  const StateBytes weights = states.weights(held);
  const StateBytes gradients = states.trained(held, formats.gradient_bytes);
  const StateBytes optimizer = states.trained(held, formats.optimizer.bytes());
  memory.parameters = weights.held(plan.sharding >= Sharding::parameters);
  const bool keeps_gathered =
      formats.keeps_gathered_in_pipelines && plan.sharding == Sharding::parameters && plan.stages() > 1;
  memory.gradients = gradients.held(plan.sharding >= Sharding::gradients && !keeps_gathered);
  const Bytes held_optimizer = optimizer.held(plan.sharding >= Sharding::optimizer);
  memory.away_optimizer = formats.offloaded_optimizer * held_optimizer;
  memory.optimizer = held_optimizer - memory.away_optimizer;
  memory.away_parameters = formats.offloaded_parameters * memory.parameters;
  memory.parameters = memory.parameters - memory.away_parameters;
  memory.updated_parameters = (1 - formats.offloaded_parameters) *
                              states.trained(held, formats.weight_bytes).held(plan.sharding >= Sharding::optimizer);

  const bool sends_gradients = formats.offloads_gradients && plan.sharding >= Sharding::gradients;
  const double sent = sends_gradients ? formats.offloaded_optimizer : 0;
  memory.away_gradients = sent * memory.gradients;
  memory.gradients = memory.gradients - memory.away_gradients;
  constexpr double fp32_bytes = 4;
  memory.host_gradients = fp32_bytes / formats.gradient_bytes * memory.away_gradients;

  // Never more than what was not held to begin with.
  const Bytes away = gradients.whole - gradients.part + memory.away_gradients;
  if (plan.sharding == Sharding::gradients) memory.communication = std::min(overheads.gradient_bucket, away);
  if (plan.sharding == Sharding::parameters || formats.offloaded_parameters > 0) {
    const Bytes gathered = gathered_bytes(parts, chunks, states, formats.gradient_bytes, overheads.gathered_layers);
    memory.communication =
        std::min(gathered, away + weights.whole - (plan.sharding == Sharding::parameters ? weights.part : Bytes{}));
  }
  if (keeps_gathered) memory.communication = weights.whole;
  if (plan.stages() > 1) memory.communication += 2 * parts.layers.front().input;

  const double each = static_cast<double>(in_flight) / static_cast<double>(chunks.size());
  const Bytes activations = memory.activations + each * held.kept;
  memory.away_activations = formats.offloaded_activations * activations;
  memory.activations = activations - memory.away_activations;
  memory.offloaded = formats.offloaded_activations * held.kept;
  // Either a micro-batch is at its loss, or a layer is computed again and its widest operator runs.
  const Bytes in_layer = held.redone + held.working, beside_logits = std::max(at_loss, in_layer - memory.logits);
  const bool in_buckets = plan.sharding != Sharding::parameters && plan.sharded_over() > 1;  // DDP holds them
  if (formats.frees_gradients && !in_buckets && plan.micro_batches() == 1 && plan.stages() == 1) {
    const Bytes busiest = memory.activations + memory.logits + beside_logits;
    const Bytes of_head = std::min(memory.gradients, states.trained(head, formats.gradient_bytes).whole);
    // A table that embedding and head share gets its gradient from both.
    const Bytes again(formats.lora.rank > 0 ? 0 : head.parameters > 0 ? parts.tied_table * formats.gradient_bytes : 0);
    const Bytes in_backward = std::max(memory.activations + of_head, memory.gradients + again) + in_layer;
    memory.gradients = std::max(Bytes(), in_backward - busiest);
  }
  memory.workspace = overheads.workspace + beside_logits;
  memory.fragmentation = overheads.fragmentation * (memory.activations + memory.logits + beside_logits);
  return memory;
}

}  // namespace

ModelParts training_parts(const Model& model, int64_t sequence_length, const TrainingPlan& plan,
                          const TrainingFormats& formats) {
  const StepRequest micro_batch{.phase = StepPhase::train,
                                .batch = plan.micro_batch,
                                .input_len = sequence_length,
                                .routing = Routing::balanced,
                                .lora = formats.lora};
  return model_parts(model, micro_batch, plan.parallel, formats.saved);
}

StageChunks stage_chunks(const TrainingPlan& plan, int64_t layers) {
  StageChunks held(static_cast<size_t>(plan.stages()));
  const PipelineWork work = pipeline_work(plan);
  const int64_t copies = model_copies(plan.schedule);
  int64_t chunk = 0;
  for (const ChunkLayers& range : chunk_layers(plan, layers)) {
    for (int64_t copy = 0; copy < copies; ++copy) {
      held[static_cast<size_t>(stage_of_chunk(plan.schedule, work, chunk, copy))].push_back(range);
    }
    ++chunk;
  }
  return held;
}

TrainingMemory stage_memory(const ModelParts& parts, const TrainingPlan& plan, const TrainingFormats& formats,
                            const MemoryOverheads& overheads, int64_t stage, int64_t in_flight) {
  ensure(stage >= 0 && stage < plan.stages(), "a stage is one of the plan's");
  const StageChunks chunks = stage_chunks(plan, static_cast<int64_t>(parts.layers.size()));
  return memory_of_stage(parts, chunks[static_cast<size_t>(stage)], plan, formats, overheads, in_flight);
}

PlanMemory plan_memory(const ModelParts& parts, const TrainingPlan& plan, const TrainingFormats& formats,
                       const MemoryOverheads& overheads) {
  return plan_memory(parts, stage_chunks(plan, static_cast<int64_t>(parts.layers.size())), plan, formats, overheads);
}

PlanMemory plan_memory(const ModelParts& parts, const StageChunks& chunks, const TrainingPlan& plan,
                       const TrainingFormats& formats, const MemoryOverheads& overheads) {
  const PipelineWork work = pipeline_work(plan);
  PlanMemory memory;
  memory.stages.reserve(chunks.size());
  for (int64_t stage = 0; stage < plan.stages(); ++stage) {
    const int64_t in_flight = chunks_in_flight(plan.schedule, work, stage);
    memory.stages.push_back(
        memory_of_stage(parts, chunks[static_cast<size_t>(stage)], plan, formats, overheads, in_flight));
    if (memory.stages.back().total() > memory.most().total()) memory.fullest = stage;
  }
  return memory;
}

namespace {

// Of a job's devices, those that share one host, and the part of the node's memory and processors that it has.
struct HostShare {
  double devices = 1, of_node = 1;
};

HostShare host_share(const Node& node, int64_t devices) {
  const int64_t all = std::max(1, node.device_count);
  const int64_t of_host = std::max<int64_t>(1, node.host_devices ? node.host_devices->value : all);
  return {.devices = static_cast<double>(std::max<int64_t>(1, std::min(of_host, devices))),
          .of_node = static_cast<double>(of_host) / static_cast<double>(all)};
}

}  // namespace

HostMemoryLink host_memory_link(const Node& node, int64_t devices) {
  HostMemoryLink host;
  const HostShare share = host_share(node, devices);
  if (node.device.host_bandwidth) host.link = node.device.host_bandwidth->value;
  if (node.host && node.host->cpu.memory_bandwidth) {
    host.memory = share.of_node * node.host->count * node.host->cpu.memory_bandwidth->value / share.devices;
  }
  return host;
}

HostMemoryLoad host_memory_use(const PlanMemory& memory, const Node& node, int64_t devices) {
  HostMemoryLoad use;
  for (const TrainingMemory& stage : memory.stages) use.of_device = std::max(use.of_device, stage.host());
  const HostShare share = host_share(node, devices);
  use.of_host = share.devices * use.of_device;
  if (node.host && node.host->cpu.memory) {
    use.capacity = share.of_node * node.host->count * node.host->cpu.memory->value;
  }
  return use;
}

// Of the peaks. Pinned copies of whole buffers reach 60 to 80% of a link (assumed). Gradients that go as they are made
// go tensor by tensor behind a synchronization. DeepSpeed's CPU Adam keeps far from the memory's peak in whole runs: a
// step of 3B on 2 A100 takes 2.4 to 3.1 s (DeepSpeed, pull request 7474), the optimizer of 72B on 32 A100 some 10 s
// (issue 6834), and a step of 7B on 8 A800 17 to 20 s more than without offloading
// (gist.github.com/chenyaofo/d4cd6a20ab4b95cb3a49491747e2139a): 0.2, 0.2 and 0.06 of hosts with 410 GB/s (two sockets
// of DDR4, assumed for the first two), by the bytes counted here.
constexpr double copy_share = 0.7, gradient_copy_share = 0.4, host_optimizer_share = 0.15;

OffloadedOptimizer offloaded_optimizer(const TrainingPlan& plan, double share) {
  const double sharing = static_cast<double>(std::max<int64_t>(1, plan.sharded_over()));
  return {.share = share,
          .micro_batches = plan.micro_batches(),
          .of_rank = plan.sharding == Sharding::optimizer ? 1 / sharing : 1};
}

Estimate offload_seconds(const TrainingMemory& memory, const OffloadedOptimizer& offload, const HostMemoryLink& host) {
  const Bytes gradients = offload.share * (offload.of_rank * memory.gradients + memory.away_gradients);
  const bool as_made = memory.away_gradients.value() > 0;
  // To add to what the host has, the device reads it back and sends the sum (stage_1_and_2.py, stage3.py of DeepSpeed).
  const double trips = as_made ? static_cast<double>(2 * std::max<int64_t>(1, offload.micro_batches) - 1) : 1;
  const Seconds out = trips * gradients / ((as_made ? gradient_copy_share : copy_share) * host.link);
  // The host reads and writes the state once each. Gradients in fp32 are written and read; where the host also finds
  // their norm, they are read for that, then read and written scaled.
  const Bytes passed = 2 * memory.away_optimizer + (as_made ? 5 * memory.host_gradients : 2 * gradients);
  const Seconds back = offload.share * memory.updated_parameters / (copy_share * host.link);
  const double seconds = (out + std::max(back, passed / (host_optimizer_share * host.memory))).value();
  // The runs above took 0.8 to 3 times as long; hosts whose threads are bound to cores are faster.
  constexpr double low = 0.4, high = 3;
  return {.value = seconds, .low = low * seconds, .high = high * seconds, .kind = Confidence::extrapolated};
}

std::string_view memory_verdict_name(MemoryVerdict verdict) {
  constexpr std::string_view names[] = {"fits", "tight", "uncertain", "too_large"};
  return names[static_cast<size_t>(verdict)];
}

MemoryVerdict memory_verdict(Bytes need, Bytes capacity, const MemoryOverheads& overheads) {
  if (!fits(need, capacity)) return MemoryVerdict::too_large;
  if (need > capacity) return MemoryVerdict::uncertain;
  return need <= overheads.usable * capacity ? MemoryVerdict::fits : MemoryVerdict::tight;
}

std::optional<Bytes> training_capacity(const Device& device) {
  if (!device.allocatable_memory && !device.memory) return std::nullopt;
  return Bytes(allocatable_bytes(device).value);
}

}  // namespace foretoken
