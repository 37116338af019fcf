// A step cut into two halves: one computes while the tokens of the other travel to their experts and back.
//
// As SGLang orders the operations of the halves A and B in a layer (batch_overlap/operations_strategy.py):
//   normal kernels   attention A, attention B, experts A, experts B, shared experts A, attention A of the next layer,
//   ...
//                    Dispatches and combines are queued beside them, A before B, and hold some processors; multiplies
//                    leave these free all the time, other kernels lose them while an exchange runs.
//   low latency      all in one queue: an exchange sends, lets go of the device and takes in what came when its half is
//                    called again. Between the two runs one stage of the other half: projections before attention (and
//                    the own shared experts) for a dispatch, attention for a combine.
// Layers without an exchange, embedding and head run on the whole batch.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "compose/stage_estimate.h"
#include "hardware/device.h"
#include "kernel/kernel.h"
#include "network/rank_network.h"

namespace foretoken {

// DeepEP's normal kernels take longer beside multiplies than alone: in DeepSeek's prefill profile 1.30 (dispatch) and
// 1.22 (combine) times its unit tests, in SGLang with simulated balance 1.48 and 1.06 (LMSYS, large-scale EP, May 2025,
// figure "Prefill Time Breakdown"); 1.25 and 1.20 of both together.
inline constexpr double slowdown_beside_multiplies = 1.25;

// Of the layers that exchange tokens, for one half; all layers together.
struct HalfStep {
  // What is computed: up to attention, attention and up to the router, shared experts, routed experts, after combining.
  enum Part : size_t { before, attention, shared, routed, after, parts };

  double layers = 0;
  double layer_share = 0;  // of all layers
  double serial = 0;       // seconds of all of it, one after the other on a device that has lent nothing
  // Seconds of the parts when nothing travels, and when something does all the time. The gap after each kernel is in
  // them: tokens travel on while the device is idle.
  std::array<double, parts> alone{}, beside{};
  double gaps = 0;                                       // of the parts
  double dispatch = 0, combine = 0;                      // seconds of travel
  double dispatch_on_device = 0, combine_on_device = 0;  // with low latency: of these, on the device
  bool low_latency = false;
  double lent = 1;    // times as long as kernels take that lose processors to an exchange
  double slowed = 1;  // times as long as an exchange takes beside kernels that use the memory

  void add_gap(Part part, double seconds);
  // Kernels that only the caller knows of: they run with attention.
  void add_attention(double seconds);
  HalfStep& operator+=(const HalfStep& stage);  // of the next pipeline stage
};

// Kernels that read the KV cache can be left out (add_attention). Without a network an exchange holds no processors.
HalfStep half_step(const StageEstimate& half, int64_t stage, const Device& device, const RankNetwork* network,
                   bool with_attention);

struct TwoBatchTime {
  double seconds = 0;  // of both halves through all layers that exchange tokens
  double kernels = 0;  // of it, computing
  double exposed = 0;  // of it, waiting for tokens that travel
  double hidden = 0;   // travel that something was computed beside
};
TwoBatchTime overlap(const HalfStep& half);

// A pipeline stage that runs as two batches. `whole` and `half`: the same stage with all tokens and with half of them.
// The whole where no tokens travel.
StageEstimate in_two_batches(const StageEstimate& whole, const StageEstimate& half, int64_t stage,
                             const ErrorCorrelations& correlations, const Device& device, const RankNetwork* network);

// Sums up `time`, of which kernels, communication and gaps of both halves are known already: the host decides where it
// is longer than these.
void sum_of_halves(const DispatchTime& whole, const DispatchTime& half, DispatchTime& time);

// Of the gaps of a stage, those that the times of its launches hold: dispatch counts them as gaps, not as kernels.
double gaps_in_launches(const StageEstimate& stage);

// Half of a step's sequences, or of its tokens where it has one prompt; nothing where it cannot be cut.
std::optional<StepRequest> half_of(StepRequest request);

// InputError where there is nothing to overlap: no experts, or none on other data-parallel ranks.
void check_two_batches(const Model& model, const ParallelPlan& plan);

}  // namespace foretoken
