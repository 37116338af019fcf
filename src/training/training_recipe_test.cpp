#include "training/training_recipe.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "model/step_test_models.h"

namespace foretoken::training_recipe_test {

TEST(TrainingRecipe, names_are_found_and_a_wrong_one_gets_the_nearest) {
  for (const std::string& name : training_recipe_names()) EXPECT_EQ(training_recipe(name).name, name);
  try {
    training_recipe("mxpf8");
    FAIL() << "no InputError";
  } catch (const InputError& error) {
    EXPECT_EQ(error.problem().field, "precision");
    EXPECT_EQ(error.problem().suggestion, "mxfp8");
  }
}

TEST(TrainingRecipe, only_formats_of_less_than_16_bits_cast) {
  for (const TrainingRecipe& recipe : training_recipes()) {
    EXPECT_EQ(recipe.cast_bytes.has_value(), facts(recipe.scheme).quantizes_activations) << recipe.name;
  }
}

// Linear layers and experts get the format; the head and the router stay as they are.
TEST(TrainingRecipe, a_model_multiplies_its_layers_in_the_formats_of_the_recipe) {
  for (const TrainingRecipe& recipe : training_recipes()) {
    const Model model = with_recipe(step_test::mixtral_like(), recipe);
    for (const Operator& call : stage_operators(model, {.phase = StepPhase::train, .input_len = 128}, {}, 0)) {
      if (call.name == "qkv_proj") {
        EXPECT_EQ(std::get<GemmShape>(call.shape).scheme, recipe.scheme) << recipe.name;
      }
      if (call.name == "qkv_proj_wgrad") {
        EXPECT_EQ(std::get<GemmShape>(call.shape).scheme, recipe.scheme);
      }
      if (call.name == "experts") {
        EXPECT_EQ(std::get<MoeShape>(call.shape).scheme, recipe.scheme) << recipe.name;
      }
      if (call.name == "lm_head") {
        EXPECT_FALSE(facts(std::get<GemmShape>(call.shape).scheme).quantizes_activations) << recipe.name;
      }
    }
  }
}

}  // namespace foretoken::training_recipe_test
