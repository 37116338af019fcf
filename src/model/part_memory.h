// What each part of a model takes on one rank of a training run: layers, embedding and head, so that others can put
// them on pipeline stages as they like.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "model/model.h"
#include "model/step.h"

namespace foretoken {

// Parts of a layer that a training stack can compute again on their own, by Megatron-LM's names (--recompute-modules).
//   core_attn       scores, softmax and their product with V
//   mla_up_proj     up-projections and rotary positions of latent attention
//   layernorm       the norms that open a block
//   moe_act         the activation of routed experts
//   mlp, moe        a dense block; all of a block with experts
//   shared_experts  of a block with experts
enum class LayerModule : uint8_t { core_attn, mla_up_proj, layernorm, moe_act, mlp, moe, shared_experts };
inline constexpr size_t layer_module_count = 7;
std::string_view layer_module_name(LayerModule module);
std::optional<LayerModule> layer_module_from_name(std::string_view name);
std::vector<std::string> layer_module_names();

// Some of them.
class LayerModules {
 public:
  LayerModules() = default;
  LayerModules(std::initializer_list<LayerModule> modules) {
    for (const LayerModule module : modules) add(module);
  }
  void add(LayerModule module) { bits_ |= bit(module); }
  bool has(LayerModule module) const { return (bits_ & bit(module)) != 0; }
  bool empty() const { return bits_ == 0; }
  auto operator<=>(const LayerModules&) const = default;

 private:
  static uint32_t bit(LayerModule module) { return uint32_t{1} << static_cast<uint32_t>(module); }
  uint32_t bits_ = 0;
};
// "core_attn, moe_act".
std::string layer_modules_text(const LayerModules& modules);

// The share of a forward call that computing the module again repeats.
double repeated_share(const LayerModules& modules, std::string_view name, StepPart part);
// The multiply that a dense layer ends in: its backward pass needs the input, not the output.
bool ends_layer(std::string_view name, StepPart part);

// Bytes of each element that software without fused kernels keeps beyond what they do (or less: -2 where an output is
// computed again from inputs that stay anyway).
struct SavedBeside {
  double norm = 0;         // of what a norm reads, its weight trained
  double frozen_norm = 0;  // the same with a frozen weight
  double gate = 0;         // of what a gate multiplies
  double activation = 0;   // of what an activation gives the multiply behind it
  double stream = 0;       // of what any norm reads
  double adapter = 0;      // the same beside adapters in fp32
  double score = 0;        // of attention scores that stay
  double routed = 0;       // of each copy of a token that routed experts read
};

// What a training stack keeps beside the operators' inputs.
struct SavedTensors {
  SavedBeside beside;
  bool hidden_masks = false;      // of dropout after each block, one byte per element (GPT models until about 2022)
  bool score_masks = false;       // of dropout on attention scores, where those stay
  bool flash_attention = true;    // else the scores stay: softmax, and with dropout on them its mask and output
  double linear_input_bytes = 0;  // of an input of a quantized linear layer; 0 = as other activations
};

struct PartMemory {
  double parameters = 0;                              // of this rank, without those below
  double plain_parameters = 0;                        // of `parameters`: what quantizers of linear layers leave alone
  double expert_parameters = 0;                       // routed experts
  double adapter_parameters = 0;                      // LoRA
  Bytes saved;                                        // kept of one micro-batch for the backward pass, logits left out
  Bytes scores;                                       // of `saved`: what computing the attention core again spares
  std::array<Bytes, layer_module_count> by_module{};  // of `saved`: what computing a module again spares
  Bytes spared(const LayerModules& modules) const;    // by computing all of these again
  Bytes input;    // of a layer: what enters it, which is all that stays when it is computed again
  Bytes op_kept;  // of a layer: what stays when operators are computed again, every other multiply kept (torchtitan)
  Bytes logits;   // of the head
  Bytes working;  // inputs and outputs of the widest operator: their gradients in the backward pass
};

struct ModelParts {
  std::vector<PartMemory> encoder_layers, layers;
  std::vector<PartMemory> draft_layers;  // each predicts one token more, with the head
  PartMemory embedding;                  // with the ends of an encoder
  PartMemory head;
  double tied_table = 0;  // parameters of the head's copy of the token table where it lies on another stage
};

// One micro-batch is `request.batch` sequences. Pipeline stages play no part. The plan must fit the model.
ModelParts model_parts(const Model& model, const StepRequest& request, const ParallelPlan& plan,
                       const SavedTensors& saved = {});

}  // namespace foretoken
