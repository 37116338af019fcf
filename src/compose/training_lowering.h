// What training software makes of a layer's operators: grouped multiplies of routed experts, attention in one kernel or
// written out, documents that do not see each other. Calls are sorted by what bounds them, for the factors of a
// training stack.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "model/step.h"

namespace foretoken {

// How attention runs.
//   flash    one kernel; its backward computes the scores again
//   unfused  two batched multiplies with a softmax, its mask and dropout between them, every score in memory
enum class AttentionKernel : uint8_t { flash, unfused };

enum class CostKind : uint8_t {
  linear,     // matrix multiplies in 16 bits or more
  quantized,  // the same in 8 bits and less, weights and activations
  attention,  // scores, softmax and values, recurrences
  experts,    // multiplies of routed experts
  passes,     // what only streams memory: norms, activations, rotary, residuals, the loss
  tensor,     // collectives, by the group they run in
  context,
  expert,
};
inline constexpr size_t cost_kind_count = 8;

enum class TrainingPass : uint8_t {
  forward,
  backward_input,   // gradients of what comes in; all of the backward that is not of weights
  backward_weight,  // gradients of weights
};
inline constexpr size_t training_pass_count = 3;

struct TrainingCall {
  Operator call;
  CostKind kind = CostKind::linear;
  TrainingPass pass = TrainingPass::forward;
  double share = 1;             // of the call's time: kernels that do not know documents are given all of the sequence
  double cast_elements = 0;     // activations and gradients that quantized multiplies read, of all calls
  double expert_elements = 0;   // of tokens that are put in order for experts, and back
  double between_elements = 0;  // of activations between their multiplies
  double expert_starts = 0;     // multiplies of single experts, of all calls
};

// Bytes that tensor ranks gather before a multiply, relative to 16-bit activations: quantized layers quantize first.
struct GatheredShares {
  double forward = 1, backward = 1;
};

// Where activations are dropped at random: what blocks add to the residual stream, and the attention's scores.
struct Dropout {
  bool hidden = false, attention = false;
};

struct TrainingRules {
  AttentionKernel attention = AttentionKernel::flash;
  int64_t sequence_length = 2048;
  int64_t packed_length = 0;   // tokens of each of the documents that fill a sequence; 0 = one document
  double expert_capacity = 0;  // an expert takes at most so many times its even share of tokens; 0 = all that come
  GatheredShares gathered;
  Dropout dropout;
};

// Keys in reach of a token, twice the mean: sum of squares over sum of documents.
double attended_length(int64_t sequence_length, int64_t packed_length);

// The calls of one micro-batch. What comes once a step is left out: the optimizer, collectives of data and pipeline
// ranks.
std::vector<TrainingCall> training_calls(const std::vector<Operator>& operators, const TrainingRules& rules);

}  // namespace foretoken
