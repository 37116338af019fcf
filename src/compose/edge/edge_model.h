// A whole network on a CPU or phone: time by step and by kind of kernel, memory, and what bounds each step.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/estimate.h"
#include "base/units.h"
#include "compose/edge/edge_lowering.h"
#include "kernel/edge/edge_predictor.h"

namespace foretoken {

struct EdgeModelOptions {
  int64_t batch_times = 1;  // as many times the batch that the graph has
  int64_t threads = 0;      // 0: as many as the sweep had
};

// The most a core does, by the prices of its kernels: what a kernel could take at best.
struct EdgeRoofline {
  double flops_per_second = 0;     // full register tiles, nothing else
  double integers_per_second = 0;  // the same for products of 8 and 4 bits
  double bytes_per_second = 0;     // of the kind that moves most
  double seconds(const Work& work) const;
  double integer_seconds(const Work& work) const;
};
EdgeRoofline edge_roofline(const EdgePredictor& predictor);

// What a step takes.
struct EdgeStepTime {
  size_t step = 0;           // of the lowering
  Estimate seconds;          // in the model, its dispatch included
  double least_seconds = 0;  // by the roofline
  EdgeTerm largest;          // the term of its law that takes longest
  double largest_share = 0;  // of all terms but the call
};

struct EdgeKindTime {
  EdgeKernelKind kind = EdgeKernelKind::traffic;
  int64_t calls = 0;
  double seconds = 0, least_seconds = 0;
  Work work;
};

struct EdgeModelEstimate {
  Estimate seconds;
  double call_seconds = 0;          // of the runtime, once
  double dispatch_seconds = 0;      // of nodes that do nothing, and are run
  std::vector<EdgeStepTime> steps;  // those with calls, in the order they run
  std::vector<EdgeKindTime> kinds;  // most seconds first
  std::map<Confidence, double> seconds_by_confidence;
  std::optional<Estimate> joules;  // where the predictor knows the device's power
};

// What the products of a model read before they read their weights again.
double constant_bytes(const EdgeLowering& lowering);

// InputError where the predictor knows nothing that can price a kernel.
EdgeModelEstimate estimate_edge_model(const EdgeLowering& lowering, const EdgePredictor& predictor,
                                      const EdgeModelOptions& options = {});

// What a reader should know of a run on so many threads; nothing where they were measured, or are those of the sweep.
std::optional<std::string> unmeasured_threads_note(const EdgePredictor& predictor, int64_t threads);

// What a network needs while it runs, at the graph's own batch: its constants, and inputs, outputs and tensors between
// steps where most of them live. What kernels need for themselves (columns of windows, packed weights) is not counted.
struct EdgeMemory {
  Bytes weights, activations;
};
EdgeMemory edge_memory(const OnnxGraph& graph, const EdgeLowering& lowering);

}  // namespace foretoken
