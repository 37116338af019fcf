// Number formats of a training step: in what linear layers multiply, and what casts that takes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/number_format.h"
#include "hardware/device.h"
#include "model/model.h"
#include "training/training_constants.h"

namespace foretoken {

struct TrainingRecipe {
  std::string_view name;  // what users type
  std::string_view summary;
  Scheme scheme =
      Scheme::bf16;           // of linear layers and routed experts; attention, head, router and norms stay in 16 bits
  DType dtype = DType::bf16;  // of activations
  TrainingConstant factor = linear_factor;  // of the multiplies
  std::optional<TrainingConstant> cast_bytes = std::nullopt;
  bool scales_blocks = false;  // the multiply units apply a scale to each block: Blackwell's, which also take fp4
  // Of each activation or gradient that tensor ranks gather before a multiply (Transformer Engine quantizes first).
  // Backward, the mean of both: gradients with block scales are gathered by rows and by columns.
  double gathered_bytes = 2, gathered_back_bytes = 2;
};

std::span<const TrainingRecipe> training_recipes();
// InputError with the nearest name.
const TrainingRecipe& training_recipe(std::string_view name);
std::vector<std::string> training_recipe_names();

// InputError where the device does not multiply in the recipe's format.
void check_recipe(const TrainingRecipe& recipe, const Device& device);

// The model with the recipe's formats.
Model with_recipe(Model model, const TrainingRecipe& recipe);

}  // namespace foretoken
