// The numbers by which a training framework turns the costs of kernels and collectives into time. One list for all
// frameworks; training_stack.h says which values each has, on which device.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string_view>

namespace foretoken {

enum TrainingConstant {
  // Times over those that the kernel layer gives for the same work on a board at its power limit.
  linear_factor,     // multiplies in 16 bits
  fp8_factor,        // in 8 bits with one scale for all, casts apart
  mxfp8_factor,      // in 8 bits with scales by block, casts apart
  fp4_factor,        // in 4 bits, casts apart
  attention_factor,  // the attention core, in one kernel
  unfused_factor,    // the attention core, every score in memory
  experts_factor,    // grouped multiplies of routed experts
  expert_start_us,   // each expert adds to each of them
  passes_factor,     // passes over memory
  loss_factor,       // those of the loss
  board_factor,      // all of the above
  // Bytes of passes that the kernel layer does not know of.
  fp8_cast_bytes,          // of each element that an 8-bit multiply with one scale for all reads
  fp8_current_cast_bytes,  // the same where the scale is that of the tensor itself, found in a pass of its own
  mxfp8_cast_bytes,        // the same with a scale for each block
  fp4_cast_bytes,          // the same in 4 bits
  move_bytes,              // of each element that is put in order for routed experts, or back
  between_share,           // of those, for each element between their multiplies
  accumulate_bytes,        // of each parameter, for every micro-batch that adds to its gradient
  optimizer_bytes,         // of each parameter, for every step, with clipping of gradients
  optimizer_16_bytes,      // the same where weights, gradients and moments are in 16 bits
  weight_cast_bytes,  // of each trained parameter in fp32, for every micro-batch: weights to 16 bits, gradients back
  gradient_bytes,     // that travel for each parameter
  traffic_factor,   // times of all communication over the network layer's: computing beside it takes its share of both
  exchange_factor,  // times of tokens on their way to experts over other communication's
  // Shares of a communication that computing does not hide.
  tensor_exposed,         // in the forward pass
  tensor_backward_share,  // in the backward pass, over that in the forward pass
  context_exposed,        // at least
  context_hidden,         // a ring hides behind this share of the attention
  expert_exposed,
  data_exposed,
  send_exposed,
  sharded_exposed,  // of the shorter of computing and gathering parameters
  sharded_factor,   // times of those gathers over other communication's
  // The host.
  host_layer_us,       // to launch a layer's kernels, forward twice and backward
  host_tensor,         // that much more with eight tensor ranks
  host_checkpoint_us,  // of a layer that is computed again, besides launching it again: its tensors pass through hooks
  host_micro_batch_us,
  step_us,  // once a step: reading data, clipping, logging
  training_constant_count,
};
using TrainingConstants = std::array<double, training_constant_count>;

struct TrainingConstantFacts {
  std::string_view name;
  double usual, least, most;  // usual: where a stack says nothing
  std::string_view reading;
};
std::span<const TrainingConstantFacts> training_constant_facts();
std::optional<TrainingConstant> training_constant_from_name(std::string_view name);
TrainingConstants usual_training_constants();

}  // namespace foretoken
