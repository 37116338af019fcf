#include "training/training_constants.h"

namespace foretoken {
namespace {

// In the order of TrainingConstant.
constexpr TrainingConstantFacts facts_list[] = {
    {"linear_factor", 1, 0.3, 4, "16-bit multiplies over their kernels alone"},
    {"fp8_factor", 1, 0.3, 4, "8-bit multiplies over their kernels alone"},
    {"mxfp8_factor", 1, 0.3, 4, "8-bit multiplies with scales by block, over 8-bit kernels alone"},
    {"fp4_factor", 1, 0.3, 4, "4-bit multiplies over their kernels alone"},
    {"attention_factor", 1, 0.2, 8, "attention over its kernels alone"},
    {"unfused_factor", 1, 0.2, 8, "unfused attention over its kernels alone"},
    {"experts_factor", 1, 0.2, 8, "multiplies of routed experts over one multiply of the same size"},
    {"passes_factor", 1, 0.2, 8, "passes over memory, over the kernels that a fused stack needs"},
    {"loss_factor", 3, 0.2, 12, "passes of the loss, over one kernel each way"},
    {"board_factor", 1, 0.3, 3, "everything on the device"},
    {"fp8_cast_bytes", 3, 0, 40, "bytes of casts for each operand element, one scale"},
    {"mxfp8_cast_bytes", 5, 0, 40, "bytes of casts for each operand element, scales by block"},
    {"fp4_cast_bytes", 8, 0, 40, "bytes of casts for each operand element, 4 bits"},
    {"move_bytes", 2, 0, 100, "bytes for each element sorted to routed experts and back"},
    {"accumulate_bytes", 6, 0, 60, "bytes for each parameter and micro-batch that adds to its gradient"},
    {"optimizer_bytes", 44, 8, 200, "bytes for each parameter and step"},
    {"gradient_bytes", 4, 1, 4, "bytes that travel for each gradient"},
    {"tensor_exposed", 1, 0, 2, "share of tensor-parallel traffic that is not hidden"},
    {"tensor_backward_share", 1, 0, 4, "the same in the backward pass, over that in the forward pass"},
    {"context_exposed", 0.2, 0, 2, "least share of context-parallel traffic that is not hidden"},
    {"context_hidden", 0.8, 0, 1, "share of attention that hides context-parallel traffic"},
    {"expert_exposed", 1, 0, 4, "share of expert-parallel traffic that is not hidden"},
    {"data_exposed", 1, 0, 4, "share of gradient and parameter traffic that is not hidden"},
    {"send_exposed", 0.4, 0, 4, "share of traffic between pipeline stages that is not hidden"},
    {"sharded_exposed", 0.5, 0, 1.5, "share of the shorter of computing and gathering parameters that is not hidden"},
    {"sharded_factor", 1, 0.2, 20, "gathers of sharded parameters over the network layer's"},
    {"host_layer_us", 2500, 1, 1e5, "launching one layer both ways, recomputed"},
    {"host_tensor", 0.3, 0, 4, "how much more with eight tensor ranks"},
    {"host_micro_batch_us", 2000, 1, 1e6, "host time of each micro-batch"},
    {"step_us", 20000, 1, 1e7, "once a step"},
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
