#include "training/memory/training_formats.h"

#include <algorithm>
#include <iterator>

namespace foretoken {
namespace {

struct NamedOptimizerState {
  std::string_view name;
  OptimizerState state;
};

constexpr NamedOptimizerState optimizer_states[] = {
    {"adam", {}},
    {"adam-bf16", {.moment_bytes = 2}},
    {"adam-bf16-weights", {.master_bytes = 0, .moment_bytes = 2}},
    {"adam-8bit", {.moment_bytes = 1}},
    {"adam-8bit-bf16-weights", {.master_bytes = 0, .moment_bytes = 1}},
    {"muon", {.moments = 1, .orthogonal_steps = 5}},
    {"muon-bf16-weights", {.master_bytes = 0, .moments = 1, .moment_bytes = 2, .orthogonal_steps = 5}},
    {"sgd-momentum", {.moments = 1}},
    {"sgd-momentum-bf16-weights", {.master_bytes = 0, .moments = 1, .moment_bytes = 2}},
    {"sgd", {.moments = 0}},
    {"sgd-bf16-weights", {.master_bytes = 0, .moments = 0, .moment_bytes = 2}},
};

struct NamedBytes {
  std::string_view name;
  double bytes;
};
constexpr NamedBytes base_weights[] = {{"bf16", 2}, {"fp8", 1}, {"int8", 1}, {"nf4", 0.5 + 0.127 / 8}};

}  // namespace

std::vector<std::string> optimizer_state_names() {
  std::vector<std::string> names;
  for (const NamedOptimizerState& one : optimizer_states) names.emplace_back(one.name);
  return names;
}

std::optional<OptimizerState> optimizer_state_from_name(std::string_view name) {
  const auto* found = std::find_if(std::begin(optimizer_states), std::end(optimizer_states),
                                   [&](const NamedOptimizerState& one) { return one.name == name; });
  if (found == std::end(optimizer_states)) return std::nullopt;
  return found->state;
}

std::optional<std::string> optimizer_state_name(const OptimizerState& state) {
  const auto* found = std::find_if(std::begin(optimizer_states), std::end(optimizer_states),
                                   [&](const NamedOptimizerState& one) { return one.state == state; });
  if (found == std::end(optimizer_states)) return std::nullopt;
  return std::string(found->name);
}

OptimizerState of_weights_in_16_bits(OptimizerState state) {
  state.master_bytes = 0;
  state.moment_bytes = std::min(2.0, state.moment_bytes);
  return state;
}

std::vector<std::string> base_weight_names() {
  std::vector<std::string> names;
  for (const NamedBytes& one : base_weights) names.emplace_back(one.name);
  return names;
}

std::optional<double> base_weight_bytes(std::string_view name) {
  const auto* found = std::find_if(std::begin(base_weights), std::end(base_weights),
                                   [&](const NamedBytes& one) { return one.name == name; });
  if (found == std::end(base_weights)) return std::nullopt;
  return found->bytes;
}

// Linear layers that multiply in 8 bits or less keep their inputs in that format (Transformer Engine).
TrainingFormats usual_formats(const TrainingRecipe& recipe, const LoraAdapter& lora, AttentionKernel attention,
                              const Dropout& dropout) {
  const bool fused = attention == AttentionKernel::flash;
  const SchemeFacts& scheme = facts(recipe.scheme);
  return {.lora = lora,
          .frozen_weight_bytes = scheme.weight_bytes,
          .saved = {.hidden_masks = dropout.hidden,
                    .score_masks = dropout.attention && !fused,
                    .flash_attention = fused,
                    .linear_input_bytes = scheme.quantizes_activations ? scheme.activation_bytes : 0}};
}

}  // namespace foretoken
