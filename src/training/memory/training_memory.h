// What one device of each pipeline stage holds during a training step, and whether it fits.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/estimate.h"
#include "base/units.h"
#include "hardware/device.h"
#include "hardware/node.h"
#include "model/model.h"
#include "model/part_memory.h"
#include "training/memory/training_formats.h"
#include "training/training_plan.h"

namespace foretoken {

// What no formula of the model gives; all are assumptions a user may replace.
struct MemoryOverheads {
  Bytes workspace = gibibytes(1);  // driver context, libraries, communicators
  double fragmentation =
      0.03;  // of what comes and goes with micro-batches, which the allocator hands out again and again
  int64_t gathered_layers = 2;           // sharded parameters: layers whole at once, the current and a prefetched one
  Bytes gradient_bucket = gibibytes(1);  // sharded gradients: whole ones on their way to their owner
  double usable = 0.95;                  // share of the device's memory that a plan should need at most
};

// What the allocator of a framework hands out: no driver, and nothing between its tensors.
constexpr MemoryOverheads allocator_overheads() {
  MemoryOverheads none;
  none.workspace = {};
  none.fragmentation = 0;
  return none;
}

struct TrainingMemory {
  Bytes parameters, gradients, optimizer;
  Bytes activations;    // of all micro-batches in flight
  Bytes communication;  // gathered layers, gradient buckets, what goes to and comes from other stages
  Bytes logits;         // of the one micro-batch that is at the loss
  Bytes workspace;      // with what is there beside the logits, or with the layer that is being computed again and the
                        // gradients of the operator that runs
  Bytes fragmentation;
  Bytes updated_parameters;  // of `parameters`: trained ones that this rank's optimizer changes
  Bytes offloaded;           // of one micro-batch's activations, in host memory: not among the total
  Bytes away_parameters;     // weights in host memory: not among the total
  Bytes away_optimizer;      // the optimizer's state there
  Bytes away_gradients;      // gradients that go there as they are made, as the device made them
  Bytes away_activations;    // of all micro-batches in flight, there
  Bytes host_gradients;      // what the host keeps of gradients: fp32
  Bytes host() const { return away_parameters + away_optimizer + host_gradients + away_activations; }
  Bytes states() const { return parameters + gradients + optimizer; }
  Bytes total() const { return states() + activations + communication + logits + workspace + fragmentation; }
};

// What the model's parts take on one rank. Depends on the plan's tensor, context, expert and data sizes, sequence
// parallelism and the micro-batch alone, so that a search can keep it. The plan must be valid.
ModelParts training_parts(const Model& model, int64_t sequence_length, const TrainingPlan& plan,
                          const TrainingFormats& formats);

// `in_flight`: chunks of the stage that wait for their backward pass at once, see chunks_in_flight().
TrainingMemory stage_memory(const ModelParts& parts, const TrainingPlan& plan, const TrainingFormats& formats,
                            const MemoryOverheads& overheads, int64_t stage, int64_t in_flight);

struct PlanMemory {
  std::vector<TrainingMemory> stages;
  int64_t fullest = 0;
  const TrainingMemory& most() const { return stages[static_cast<size_t>(fullest)]; }
};
// The chunks that each stage holds; some several times over the stages (DualPipe). Recomputation and sharding change
// nothing about it, so that a search can keep it.
using StageChunks = std::vector<std::vector<ChunkLayers>>;
StageChunks stage_chunks(const TrainingPlan& plan, int64_t layers);

// Every stage, with as many chunks in flight as the plan's schedule has.
PlanMemory plan_memory(const ModelParts& parts, const TrainingPlan& plan, const TrainingFormats& formats,
                       const MemoryOverheads& overheads);
PlanMemory plan_memory(const ModelParts& parts, const StageChunks& chunks, const TrainingPlan& plan,
                       const TrainingFormats& formats, const MemoryOverheads& overheads);

// What programs can allocate on a device, or all of its memory where that is not known.
std::optional<Bytes> training_capacity(const Device& device);

// What the devices of one host keep in its memory, and whether it has that much; no capacity = not known.
struct HostMemoryLoad {
  Bytes of_device, of_host;
  std::optional<Bytes> capacity;
  bool fits() const { return !capacity || of_host <= *capacity; }
};
HostMemoryLoad host_memory_use(const PlanMemory& memory, const Node& node, int64_t devices);

// One device's way to host memory: its link, and its share of the memory's bandwidth, which the optimizer runs at.
struct HostMemoryLink {
  BytesPerSecond link = BytesPerSecond(25e9);    // PCIe 4.0 x16
  BytesPerSecond memory = BytesPerSecond(25e9);  // an eighth of a usual host's
};
// With so many devices of the job: those of one host share its memory's bandwidth.
HostMemoryLink host_memory_link(const Node& node, int64_t devices);

// A share of the optimizer's state that is in host memory.
struct OffloadedOptimizer {
  double share = 1;
  int64_t micro_batches = 1;
  // Of whole gradients, the part that this rank's host gets: less than one where replicas share the state alone.
  double of_rank = 1;
};
// With so many micro-batches and replicas as the plan has.
OffloadedOptimizer offloaded_optimizer(const TrainingPlan& plan, double share);

// What a step takes longer with it (arXiv 2101.06840): gradients go out over the link, for each micro-batch where they
// leave as they are made; then the host changes its state at its memory's speed while changed weights come back, those
// apart that stay in host memory. The device's own optimizer is not taken off (host_memory_time.h does). Its interval
// is wide: hosts and their settings differ.
Estimate offload_seconds(const TrainingMemory& memory, const OffloadedOptimizer& offload, const HostMemoryLink& host);

// Need and capacity, in the plain words of a verdict.
//   fits       leaves the margin of MemoryOverheads::usable
//   tight      leaves less
//   uncertain  exceeds the capacity by no more than runs that worked come out at
//   too_large  does not fit
enum class MemoryVerdict : uint8_t { fits, tight, uncertain, too_large };
std::string_view memory_verdict_name(MemoryVerdict verdict);
MemoryVerdict memory_verdict(Bytes need, Bytes capacity, const MemoryOverheads& overheads);

// Of that capacity. Runs that worked come out up to 5% above that (docs/training.md), so only more is
// called too much.
constexpr double memory_tolerance = 1.05;
inline bool fits(Bytes need, Bytes capacity) {
  return need <= memory_tolerance * capacity;
}

}  // namespace foretoken
