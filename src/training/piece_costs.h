// What one micro-batch costs one rank in one piece of a model (a layer, the embedding, the head): compose's times of
// its kernels and collectives with their intervals, sorted by what bounds them. A training stack (training_stack.h)
// makes a time of it.
#pragma once

#include <vector>

#include "base/estimate.h"
#include "compose/stack.h"
#include "compose/timed_launch.h"
#include "compose/training_lowering.h"
#include "kernel/kernel.h"
#include "kernel/power.h"
#include "model/model.h"
#include "model/step.h"
#include "network/collective_estimate.h"
#include "training/training_plan.h"

namespace foretoken {

// Seconds of one pass, kernels one after the other, by CostKind. Training keeps boards busy without a pause, so
// multiplies are as slow as the power limit makes them.
struct PassCosts {
  Estimate linear, quantized, attention, experts, passes, tensor, context, expert;
  double host = 0;             // of the host that launches its kernels one by one; 0 = not counted by kernel
  double gaps = 0;             // between those kernels
  double cast_elements = 0;    // see TrainingCall
  double expert_elements = 0;  // see TrainingCall
  double between_elements = 0, expert_starts = 0;

  Estimate& of(CostKind kind);
  const Estimate& of(CostKind kind) const;
};

// One call of the piece, its time as in PassCosts.
struct PieceCall {
  TimedLaunch timed;
  Operator call;
  CostKind kind = CostKind::linear;
  TrainingPass pass = TrainingPass::forward;
  std::string_view form;  // that its errors are kept under (kernel/error_correlation.h)
};

// Of weights that multiply in a layer, as one rank holds them.
struct WeightMatrix {
  int64_t rows = 1, columns = 1;
  double count = 1;
  bool of_experts = false;
};

struct PieceCosts {
  PassCosts forward, backward_input, backward_weight;
  std::vector<PieceCall> calls;              // what the passes are sums of
  std::vector<WeightMatrix> matrices;        // of a layer; none of embedding and head
  double share = 1;                          // of the calls' number: an encoder-decoder's layers stand for parts of it
  double shared_parameters = 0;              // trained ones on this rank that all data and context ranks hold
  double expert_parameters = 0;              // and those of routed experts
  double held_shared = 0, held_experts = 0;  // the same with those that are not trained
  double plain_shared = 0;                   // of held_shared: frozen ones that no quantizer of linear layers touches

  PassCosts& of(TrainingPass pass);
  const PassCosts& of(TrainingPass pass) const;
};

struct PieceRequest {
  int64_t micro_batch = 1;
  int64_t sequence_length = 2048;
  ParallelPlan parallel;  // `pipeline` says nothing here
  LoraAdapter lora;
  AttentionKernel attention = AttentionKernel::flash;
  ContextExchange context_exchange = ContextExchange::ring;
  TokenDispatcher dispatcher = TokenDispatcher::usual;
  Routing routing = Routing::balanced;
  double expert_capacity = 0;  // an expert takes at most so many times its even share of tokens; 0 = all that come
  int64_t packed_length = 0;   // tokens of each of the documents that fill a sequence; 0 = one document
  Dropout dropout;
  GatheredShares gathered;  // by tensor ranks, in layers; the head gathers 16 bits
  // The kernels that software without fusion runs for each operator, and what launching them costs; null = one kernel
  // for each operator. What it points to must outlive the call.
  const Stack* kernels = nullptr;
};

// The machine that trains. What it points to must outlive the calls.
struct TrainingMachine {
  const KernelPredictor* kernels = nullptr;
  const CollectiveModel* network = nullptr;
  const CommunicationPredictor* measured = nullptr;  // kernels that carry tokens to experts; null = by the network
  const PowerModel* power = nullptr;                 // null: kernels run as fast as on a cool board
};

// Of a collective that all ranks run at the same time, each in its own group.
Estimate seconds_side_by_side(const CollectiveModel& network, CollectiveKind kind, double bytes,
                              const ProcessGroup& group);

// An encoder-decoder is not cut into stages: each of its decoder layers stands for an equal share of the whole model,
// and the embedding and the head for nothing.
PieceCosts layer_costs(const Model& model, const Layer& layer, const PieceRequest& request,
                       const TrainingMachine& machine);
PieceCosts embedding_costs(const Model& model, const PieceRequest& request, const TrainingMachine& machine);
// Final norm, head and loss.
PieceCosts head_costs(const Model& model, const PieceRequest& request, const TrainingMachine& machine);

}  // namespace foretoken
