// What one micro-batch costs one rank in one piece of a model (a layer, the embedding, the head), as the kernel and
// network layers tell it, sorted by what bounds it. A training stack (training_stack.h) makes a time of it.
#pragma once

#include <vector>

#include "kernel/kernel.h"
#include "kernel/power.h"
#include "model/model.h"
#include "model/step.h"
#include "network/collective_estimate.h"
#include "training/training_plan.h"

namespace foretoken {

// Seconds of one pass, kernels one after the other. Training keeps boards busy without a pause, so multiplies are as
// slow as the power limit makes them.
struct PassCosts {
  double linear = 0;           // matrix multiplies in 16 bits or more
  double quantized = 0;        // the same in 8 bits and less, weights and activations
  double cast_elements = 0;    // activations and gradients that they read
  double attention = 0;        // scores, softmax and values, recurrences
  double experts = 0;          // multiplies of routed experts
  double expert_elements = 0;  // of tokens and activations that are put in order for them, and back
  double passes = 0;           // what only streams memory: norms, activations, rotary, residuals, the loss
  double tensor = 0, context = 0, expert = 0;  // collectives, by the group they run in

  void scale(double factor);
};

struct PieceCosts {
  PassCosts forward;
  PassCosts backward_input;                  // gradients of what comes in; all of the backward that is not of weights
  PassCosts backward_weight;                 // gradients of weights
  double shared_parameters = 0;              // trained ones on this rank that all data and context ranks hold
  double expert_parameters = 0;              // and those of routed experts
  double held_shared = 0, held_experts = 0;  // the same with those that are not trained
};

// How attention runs.
//   flash    one kernel; its backward computes the scores again
//   unfused  two batched multiplies with a softmax, its mask and dropout between them, every score in memory
enum class AttentionKernel : uint8_t { flash, unfused };

struct PieceRequest {
  int64_t micro_batch = 1;
  int64_t sequence_length = 2048;
  ParallelPlan parallel;  // `pipeline` says nothing here
  LoraAdapter lora;
  AttentionKernel attention = AttentionKernel::flash;
  ContextExchange context_exchange = ContextExchange::ring;
  Routing routing = Routing::balanced;
  double expert_capacity = 0;  // an expert takes at most so many times its even share of tokens; 0 = all that come
  int64_t packed_length = 0;   // tokens of each of the documents that fill a sequence; 0 = one document
};

// Keys in reach of a token, twice the mean: sum of squares over sum of documents.
double attended_length(int64_t sequence_length, int64_t packed_length);

// The machine that trains. What it points to must outlive the calls.
struct TrainingMachine {
  const KernelPredictor* kernels = nullptr;
  const CollectiveModel* network = nullptr;
  const PowerModel* power = nullptr;  // null: kernels run as fast as on a cool board
};

// An encoder-decoder is not cut into stages: each of its decoder layers stands for an equal share of the whole model,
// and the embedding and the head for nothing.
PieceCosts layer_costs(const Model& model, const Layer& layer, const PieceRequest& request,
                       const TrainingMachine& machine);
PieceCosts embedding_costs(const Model& model, const PieceRequest& request, const TrainingMachine& machine);
// Final norm, head and loss.
PieceCosts head_costs(const Model& model, const PieceRequest& request, const TrainingMachine& machine);

}  // namespace foretoken
