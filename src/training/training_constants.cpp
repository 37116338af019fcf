#include "training/training_constants.h"

namespace foretoken {
namespace {

// In the order of TrainingConstant.
constexpr TrainingConstantFacts facts_list[] = {
    {"linear_factor", 1, 0.3, 4, "time of 16-bit multiplies relative to their kernels alone"},
    {"fp8_factor", 1, 0.3, 4, "time of 8-bit multiplies relative to their kernels alone"},
    {"mxfp8_factor", 1, 0.3, 4, "time of 8-bit multiplies with block scales relative to 8-bit kernels alone"},
    {"fp4_factor", 1, 0.3, 4, "time of 4-bit multiplies relative to their kernels alone"},
    {"attention_factor", 1, 0.2, 8, "time of attention relative to its kernels alone"},
    {"unfused_factor", 1, 0.2, 8, "time of unfused attention relative to its kernels alone"},
    {"experts_factor", 1, 0.2, 8, "time of routed expert multiplies relative to one multiply of the same size"},
    {"expert_start_us", 0, 0, 100, "time that each routed expert adds to each of its multiplies"},
    {"passes_factor", 1, 0.2, 8, "time of memory-bound operators relative to the kernels of a fused stack"},
    {"loss_factor", 3, 0.2, 12, "time of the loss relative to one kernel each way"},
    {"board_factor", 1, 0.3, 3, "time of everything on the GPU"},
    // Bytes read and written (rows and columns are cast together), at 85% of the memory's bandwidth.
    {"fp8_cast_bytes", 4.7, 0, 40, "bytes of casts per operand element, with one scale of earlier steps"},
    {"fp8_current_cast_bytes", 7.1, 0, 40, "bytes of casts per operand element, with one scale found first"},
    {"mxfp8_cast_bytes", 4.8, 0, 40, "bytes of casts per operand element, with block scales"},
    {"fp4_cast_bytes", 8.4, 0, 40, "bytes of casts per operand element, 4-bit"},
    {"move_bytes", 2, 0, 100, "bytes per element for sorting tokens to routed experts and back"},
    {"between_share", 1, 0, 4, "bytes per element between the multiplies of routed experts, relative to move_bytes"},
    {"accumulate_bytes", 6, 0, 60, "bytes per parameter and micro-batch for gradient accumulation"},
    {"optimizer_bytes", 44, 8, 200, "bytes per parameter and step, gradients clipped"},
    {"optimizer_16_bytes", 20, 6, 200, "bytes per parameter and step, all in 16 bits, gradients clipped"},
    {"weight_cast_bytes", 0, 0, 40,
     "bytes per fp32 parameter and micro-batch for casts of weights and their gradients"},
    {"gradient_bytes", 4, 1, 4, "bytes communicated per gradient"},
    {"traffic_factor", 1, 0.5, 4, "time of communication relative to the network prediction"},
    {"exchange_factor", 1, 0.5, 4, "time of expert-parallel communication relative to a plain all-to-all"},
    {"tensor_exposed", 1, 0, 1, "share of tensor-parallel communication that is not hidden"},
    {"tensor_backward_share", 1, 0, 1, "the same share in the backward pass, relative to the forward pass"},
    {"context_exposed", 0.2, 0, 1, "minimum share of context-parallel communication that is not hidden"},
    {"context_hidden", 0.8, 0, 1, "share of attention that hides context-parallel communication"},
    {"expert_exposed", 1, 0, 1, "share of expert-parallel communication that is not hidden"},
    {"data_exposed", 1, 0, 1, "share of gradient and parameter communication that is not hidden"},
    {"send_exposed", 0.4, 0, 1, "share of communication between pipeline stages that is not hidden"},
    {"sharded_exposed", 0.5, 0, 1, "share of the shorter of compute and parameter gathering that is not hidden"},
    {"sharded_factor", 1, 0.2, 20, "time of sharded parameter gathers relative to other communication"},
    {"host_layer_us", 2500, 1, 1e5, "time to launch one layer, forward and backward with recomputation"},
    {"host_tensor", 0.3, 0, 4, "increase with eight tensor-parallel ranks"},
    {"host_checkpoint_us", 0, 0, 1e5, "host time of a layer with a checkpoint, besides launching it again"},
    {"host_micro_batch_us", 2000, 1, 1e6, "host time per micro-batch"},
    {"step_us", 20000, 1, 1e7, "time once per step"},
};
static_assert(std::size(facts_list) == training_constant_count);

}  // namespace

std::span<const TrainingConstantFacts> training_constant_facts() {
  return facts_list;
}

std::optional<TrainingConstant> training_constant_from_name(std::string_view name) {
  for (size_t i = 0; i < std::size(facts_list); ++i) {
    if (facts_list[i].name == name) return static_cast<TrainingConstant>(i);
  }
  return std::nullopt;
}

TrainingConstants usual_training_constants() {
  TrainingConstants constants{};
  for (size_t i = 0; i < constants.size(); ++i) constants[i] = facts_list[i].usual;
  return constants;
}

}  // namespace foretoken
