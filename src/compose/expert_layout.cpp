#include "compose/expert_layout.h"

#include "hardware/generation.h"
#include "model/expert_popularity.h"

namespace foretoken {
namespace {

// The kernels want outputs in multiples of 256 and inputs in multiples of 128.
constexpr ExpertLayout marlin_layout{.hidden = 256, .width = 128};
// FlashInfer's kernels of TensorRT-LLM, and AMD's.
constexpr ExpertLayout block_layout{.hidden = 256, .width = 256};
// HopperMXScaleLayout of triton_kernels: 32 rows for each of 8 warps.
constexpr ExpertLayout triton_layout{.width = 64, .scale_rows = 256, .drops_read_scales = true, .wide_biases = true};

constexpr double real(int64_t count) {
  return static_cast<double>(count);
}
constexpr int64_t round_up(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// What one expert of `width` takes more than in the checkpoint.
double added_bytes(const Model& model, const Moe& moe, int64_t width, const ExpertLayout& layout) {
  constexpr double scale_bytes = 1.0 / 32;  // of a weight
  const int64_t hidden = moe.latent_width > 0 ? moe.latent_width : model.hidden;
  const int64_t inputs = round_up(hidden, layout.hidden), inner = round_up(width, layout.width);
  const int64_t first = moe.gated ? 2 : 1;  // projections side by side
  const double weights = real((first + 1) * (inputs * inner - hidden * width));
  double bytes = weights * facts(model.expert_scheme).weight_bytes;
  if (layout.scale_rows > 0) {
    const double copy =
        real(round_up(first * inner, layout.scale_rows) * inputs) + real(round_up(inputs, layout.scale_rows) * inner);
    const double read = layout.drops_read_scales ? real((first + 1) * inputs * inner) : 0;
    bytes += (copy - read) * scale_bytes;
  }
  if (moe.bias) {
    const double plain = bytes_per_element(model.dtype);
    const double each = layout.wide_biases ? bytes_per_element(DType::fp32) : plain;
    bytes += real(first * inner + inputs) * each - real(first * width + hidden) * plain;
  }
  return bytes;
}

}  // namespace

ExpertLayout vllm_experts_before_012(const Model& /*model*/, const Device& device) {
  const GpuGeneration& generation = kernel_generation(device);
  if (generation.amd) return block_layout;
  if (generation.cuda_capability == 0) return {};
  const bool generated =
      generation.cuda_capability >= blackwell_capability && generation.cuda_capability < thor_capability;
  return generated ? block_layout : marlin_layout;
}

ExpertLayout vllm_experts_before_025(const Model& model, const Device& device) {
  ExpertLayout layout = vllm_experts(model, device);
  layout.drops_read_scales = false;
  return layout;
}

ExpertLayout vllm_experts(const Model& model, const Device& device) {
  // Checkpoints of others go to Marlin.
  const bool triton = kernel_generation(device).cuda_capability == hopper_capability && model.family == "gpt_oss";
  return triton ? triton_layout : vllm_experts_before_012(model, device);
}

Bytes expert_layout_bytes(const Model& model, const ParallelPlan& plan, int64_t stage, const ExpertLayout& layout) {
  if (!widens_mxfp4(model.expert_scheme)) return {};
  const int64_t shares = expert_tensor_ranks(plan);
  const double copies = mean_copies(model.expert_popularity.get());
  double bytes = 0;
  for (const Layer& layer : layers_of_stage(model, plan, stage)) {
    const Moe* moe = std::get_if<Moe>(&layer.feed_forward);
    if (moe == nullptr || moe->reuses_experts) continue;
    const double experts = real(moe->experts) * copies / real(plan.expert);
    bytes += experts * added_bytes(model, *moe, moe->width / shares, layout);
  }
  return Bytes(bytes);
}

}  // namespace foretoken
