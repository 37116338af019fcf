// Operators of a step + a device + a software stack -> the step's time and memory, each part accounted for.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/estimate.h"
#include "base/units.h"
#include "compose/dispatch.h"
#include "compose/stack.h"
#include "compose/stage_estimate.h"
#include "compose/timed_launch.h"
#include "kernel/kernel.h"
#include "model/model.h"
#include "model/onnx/graph.h"
#include "model/step.h"
#include "network/rank_network.h"

namespace foretoken {

struct StepEstimate {
  StepRequest request;
  ParallelPlan plan;
  std::vector<ParallelAxis> rank_order = {};  // innermost first; empty = usual_rank_order
  std::string stack;
  Dispatch dispatch = Dispatch::fused;
  int64_t padded_batch = 0;           // of a captured graph; 0 = not padded
  bool two_batches = false;           // one half computed while the other traveled
  std::vector<StageEstimate> stages;  // one per pipeline stage
  Estimate seconds;                   // one batch through all stages, one after the other
  Flops model_flops;   // of the whole model for this request; a training step counts its backward pass too
  double devices = 1;  // over which the step is spread, data parallelism included
  double model_flops_utilization = 0;  // model FLOPs over time and dense peak of all devices of one replica
  double tokens = 0;                   // that the step takes in, over all data-parallel replicas
  Bytes device_memory;                 // 0 = not known
  std::optional<bool> fits_in_memory;  // the fullest stage; nothing where device memory is not known
  std::vector<LinkTraffic> links;      // of all stages, where somebody asked (step_links)
};

struct ExecutionOptions {
  std::optional<Dispatch> dispatch;  // nothing = the stack's for this phase
  double host_factor = 1;            // times the stack's host times: 2 = a host half as fast
  bool two_batch_overlap = false;    // cut the step in two where tokens travel to experts (two_batch.h)
  bool beside_memory = true;         // cut decodes in two where the memory computes beside the device
  bool times_only = false;  // leave operators one by one, memory, FLOPs and the time lost to padding out: for callers
                            // that ask often
  // Between the ranks; null = start-up and wire time from the sheet. Must outlive the call only.
  const RankNetwork* collectives = nullptr;
};

// Kernels and collectives run one after the other on each device, but for the two batches of two_batch_overlap.
StepEstimate estimate_step(const Model& model, const StepRequest& request, const ParallelPlan& plan,
                           const KernelPredictor& predictor, const Stack& stack = {},
                           const ExecutionOptions& options = {});

// The kernels of the head alone, as they are in estimate_step; nothing else is timed.
Estimate estimate_head(const Model& model, const StepRequest& request, const ParallelPlan& plan,
                       const KernelPredictor& predictor, const Stack& stack, const ExecutionOptions& options);

// What a device of each stage sends over each kind of link, added up over the stages.
std::vector<LinkTraffic> step_links(const StepEstimate& step, const RankNetwork& network);

// MBU: weights and KV cache that the step reads, over its time and the memory bandwidth of all devices of one replica.
// Nothing where the sheet gives no bandwidth.
std::optional<double> memory_bandwidth_utilization(const StepEstimate& step, const Device& device);

// Launches that are timed already, put on a host and a device; memory is left to the caller.
StageEstimate stage_of_launches(std::vector<Operator> calls, std::vector<TimedLaunch> launches,
                                const ErrorCorrelations& correlations, const Stack& stack,
                                const DispatchRequest& request);

// Fills in what follows from the stages, the request and the plan.
void complete_step(StepEstimate& step, const Model& model, const Device& device);

// A network's graph on one device: each node is a kernel of its own, as eager frameworks run it; nothing is fused.
StageEstimate estimate_graph(const OnnxGraph& graph, const KernelPredictor& predictor, const Stack& stack = {},
                             const ExecutionOptions& options = {});

// The host's and the device's events of one stage of an estimate made with the same stack and options.
std::vector<TimelineEvent> step_timeline(const StageEstimate& stage, const Stack& stack, Dispatch dispatch,
                                         double host_factor = 1);

}  // namespace foretoken
