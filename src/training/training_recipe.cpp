#include "training/training_recipe.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "compose/device_formats.h"
#include "model/step.h"

namespace foretoken {
namespace {

// Add your line here. FP8 multiplies with one scale for a tensor, either from a history (delayed) or computed first
// (current), and with scales for blocks (DeepSeek: 128; MX: 32, by the multiply units of Blackwell); NVFP4 has blocks
// of 16.
constexpr TrainingRecipe recipe_list[] = {
    {"bf16", "everything in bf16"},
    {"fp16", "everything in fp16", Scheme::fp16, DType::fp16},
    {"fp8", "FP8 linear layers, one scale per tensor", Scheme::fp8, DType::bf16, fp8_factor, fp8_cast_bytes, false, 1,
     1},
    {"fp8-delayed", "FP8 linear layers, scales from earlier steps", Scheme::fp8, DType::bf16, fp8_factor,
     fp8_cast_bytes, false, 1, 1},
    {"fp8-current", "FP8 linear layers, scales from the current tensor", Scheme::fp8, DType::bf16, fp8_factor,
     fp8_current_cast_bytes, false, 1, 1},
    {"fp8-block", "FP8 linear layers, one scale per block of 128", Scheme::fp8, DType::bf16, mxfp8_factor,
     mxfp8_cast_bytes, false, 1.03, 1.55},
    {"mxfp8", "FP8 linear layers, one scale per 32 values", Scheme::fp8, DType::bf16, mxfp8_factor, mxfp8_cast_bytes,
     true, 1.03, 1.55},
    {"nvfp4", "FP4 linear layers, one scale per 16 values", Scheme::nvfp4, DType::bf16, fp4_factor, fp4_cast_bytes,
     true, 0.56, 0.84},
};

}  // namespace

std::span<const TrainingRecipe> training_recipes() {
  return recipe_list;
}

std::vector<std::string> training_recipe_names() {
  std::vector<std::string> names;
  for (const TrainingRecipe& recipe : recipe_list) names.emplace_back(recipe.name);
  return names;
}

const TrainingRecipe& training_recipe(std::string_view name) {
  for (const TrainingRecipe& recipe : recipe_list) {
    if (recipe.name == name) return recipe;
  }
  const std::vector<std::string> names = training_recipe_names();
  throw InputError({.field = "precision",
                    .value = printable(name),
                    .expected = fmt::format("one of {}", fmt::join(names, ", ")),
                    .suggestion = nearest_name(name, names).value_or("")});
}

void check_recipe(const TrainingRecipe& recipe, const Device& device) {
  const auto multiplies = [&](DType type) { return device.type_or_fallback(type) == type; };
  const auto runs = [&](const TrainingRecipe& one) {
    return multiplies(facts(one.scheme).math) && multiplies_in(device, one.scheme) &&
           (!one.scales_blocks || multiplies(DType::fp4));
  };
  if (runs(recipe)) return;
  std::vector<std::string> known;
  for (const TrainingRecipe& one : recipe_list) {
    if (runs(one)) known.emplace_back(one.name);
  }
  throw InputError(
      {.field = "precision",
       .value = std::string(recipe.name),
       .expected = fmt::format("one of {}, the formats that {} supports", fmt::join(known, ", "), device.title)});
}

Model with_recipe(Model model, const TrainingRecipe& recipe) {
  model = with_scheme(std::move(model), recipe.scheme, recipe.scheme);
  model.attention_scheme = std::nullopt;
  model.dtype = recipe.dtype;
  return model;
}

}  // namespace foretoken
