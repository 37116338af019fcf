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
    {"adam-8bit", {.moment_bytes = 1}},
    {"muon", {.moments = 1}},
    {"sgd-momentum", {.moments = 1}},
    {"sgd", {.moments = 0}},
};

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

TrainingFormats usual_formats(const TrainingRecipe& recipe, const LoraAdapter& lora, AttentionKernel attention) {
  const bool fused = attention == AttentionKernel::flash;
  return {.lora = lora,
          .frozen_weight_bytes = facts(recipe.scheme).weight_bytes,
          .saved = {.dropout = !fused, .flash_attention = fused}};
}

}  // namespace foretoken
