#include "training/layer_split.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "model/step_test_models.h"
#include "training/pipeline_layout.h"

namespace foretoken::layer_split_test {

TEST(LayerSplit, reads_megatrons_layout_of_deepseek_v3) {
  const std::vector<ChunkLayers> layout = parse_pipeline_layout("Et*3|(tt|)*29m|L");
  ASSERT_EQ(layout.size(), 32U);
  EXPECT_EQ(layout.front(), (ChunkLayers{.first = 0, .count = 3, .embedding = true}));
  EXPECT_EQ(layout[1], (ChunkLayers{.first = 3, .count = 2}));
  EXPECT_EQ(layout[29], (ChunkLayers{.first = 59, .count = 2}));
  EXPECT_EQ(layout[30], (ChunkLayers{.first = 61, .drafts = 1}));
  EXPECT_EQ(layout[31], (ChunkLayers{.first = 61, .head = true}));
}

TEST(LayerSplit, writes_a_layout_that_reads_as_the_same) {
  for (const char* text : {"Et*3|(tt|)*29m|L", "EttL", "Et|tL", "E|(t|)*3L", "Ett|tt|tt|tt|ttmmL"}) {
    const std::vector<ChunkLayers> layout = parse_pipeline_layout(text);
    EXPECT_EQ(parse_pipeline_layout(pipeline_layout_text(layout)), layout) << text;
  }
  EXPECT_EQ(pipeline_layout_text(parse_pipeline_layout("E t t t,|tt|tt|tt|tt|mL")), "Et*3|(tt|)*4mL");
}

TEST(LayerSplit, says_where_a_layout_is_wrong) {
  const auto message = [](const char* text) {
    try {
      parse_pipeline_layout(text);
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  EXPECT_NE(message("Etx|L").find("character 3"), std::string::npos) << message("Etx|L");
  EXPECT_NE(message("E(tt|*3L").find("')'"), std::string::npos) << message("E(tt|*3L");
  EXPECT_NE(message("Et*|L").find("repetitions"), std::string::npos) << message("Et*|L");
  EXPECT_NE(message("Et||L").find("empty chunk"), std::string::npos) << message("Et||L");
  EXPECT_NE(message("tt|L").find("E first"), std::string::npos) << message("tt|L");
  EXPECT_NE(message("Et*999999L").find("shorter"), std::string::npos) << message("Et*999999L");
  EXPECT_NE(message("EmtL").find("t behind m"), std::string::npos) << message("EmtL");
  EXPECT_NE(message("Et|L|").find("after L"), std::string::npos) << message("Et|L|");
}

TEST(LayerSplit, spares_the_stage_of_the_loss_and_draft_layers) {
  Model model = step_test::llama_like();
  model.layers.assign(61, model.layers.front());
  model.draft_layers = {model.layers.front()};
  TrainingPlan plan{.parallel = {.pipeline = 16}, .global_batch = 64};
  balance_stages(plan, model, 4096);
  ASSERT_EQ(plan.layout.size(), 16U);
  EXPECT_TRUE(is_valid_plan(model, 4096, plan, 0));
  int64_t drafts = 0;
  for (const ChunkLayers& chunk : plan.layout) drafts += chunk.drafts;
  EXPECT_EQ(drafts, 1);
  EXPECT_LT(plan.layout.back().count, 4);
  EXPECT_GE(plan.layout[8].count, 4);
}

TEST(LayerSplit, leaves_even_layers_alone) {
  Model model = step_test::llama_like();
  model.layers.assign(32, model.layers.front());
  TrainingPlan plan{.parallel = {.pipeline = 4}, .global_batch = 64};
  balance_stages(plan, model, 4096);
  EXPECT_TRUE(plan.layout.empty());
}

TEST(LayerSplit, must_hold_the_layers_of_the_model) {
  Model model = step_test::llama_like();
  model.layers.assign(8, model.layers.front());
  TrainingPlan plan{.parallel = {.pipeline = 4}, .global_batch = 64};
  plan.layout = parse_pipeline_layout("Ett|tt|tt|ttL");
  EXPECT_TRUE(is_valid_plan(model, 4096, plan, 0));
  plan.layout = parse_pipeline_layout("Et|tt|tt|ttL");
  EXPECT_FALSE(is_valid_plan(model, 4096, plan, 0));
  plan.layout = parse_pipeline_layout("Ett|tt|tt|ttmL");
  EXPECT_FALSE(is_valid_plan(model, 4096, plan, 0));
  plan.layout = parse_pipeline_layout("Ett|tt|ttttL");
  EXPECT_FALSE(is_valid_plan(model, 4096, plan, 0));
}

}  // namespace foretoken::layer_split_test
