#include "model/weights.h"

#include <cmath>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "model/catalogue.h"

namespace foretoken::weights_test {

const ModelCatalogue& catalogue() {
  static const ModelCatalogue all(FORETOKEN_SOURCE_DIR "/data/models");
  return all;
}

std::map<std::string, Weight> by_name(const std::vector<Weight>& weights) {
  std::map<std::string, Weight> found;
  for (const Weight& weight : weights) {
    EXPECT_TRUE(found.emplace(weight.name, weight).second) << weight.name << " is listed twice";
  }
  return found;
}

// Parameter counts of the checkpoints themselves, to the last one (safetensors totals; for the tied and multimodal
// ones, of the text model). They pin every norm and bias.
TEST(Weights, counts_are_exact_where_the_checkpoints_are_known) {
  const std::map<std::string, double> known = {
      {"meta-llama/Llama-2-7b-hf", 6'738'415'616},
      {"meta-llama/Llama-3.1-8B", 8'030'261'248},
      {"meta-llama/Llama-3.1-70B", 70'553'706'496},
      {"mistralai/Mistral-7B-v0.1", 7'241'732'096},
      {"mistralai/Mixtral-8x7B-v0.1", 46'702'792'704},
      {"openai-community/gpt2", 124'439'808},
      {"openai/gpt-oss-20b", 20'914'757'184},
      {"openai/gpt-oss-120b", 116'829'156'672},
      {"microsoft/phi-2", 2'779'683'840},
      {"google/gemma-2-2b", 2'614'341'888},
      {"google/gemma-3-1b-it", 999'885'952},
      {"Qwen/Qwen2.5-0.5B", 494'032'768},
      {"Qwen/Qwen3-0.6B", 596'049'920},
      {"facebook/opt-350m", 331'196'416},
      {"bigscience/bloom-560m", 559'214'592},
      {"google-bert/bert-base-uncased", 109'514'298},
      {"deepseek-ai/DeepSeek-V3", 671'026'419'200},
      {"tiiuae/falcon-7b", 7'217'189'760},
  };
  for (const auto& [name, parameters] : known) {
    EXPECT_EQ(count_parameters(catalogue().model(name)).total, parameters) << name;
  }
}

// Publishers' totals, within 1%. The few that are further off, each for a reason that is not in our count:
const std::map<std::string, std::string> explained = {
    {"meta-llama/Llama-4-Scout-17B-16E-Instruct", "the published 109B counts the vision tower"},
    {"openai/gpt3-xl", "the paper's row is inconsistent: 24 heads of 128 are not 2048 wide"},
    {"openai/gpt3-medium", "published as a round 350M"},
    {"openai/gpt3-2.7b", "published as a round 2.7B"},
    {"Qwen/Qwen3.5-0.8B", "the published 0.8B counts the vision tower"},
    {"baidu/ERNIE-4.5-21B-A3B-PT", "published as a round 21B"},
    {"deepseek-ai/DeepSeek-OCR", "published as a round 3B"},
    {"google/gemma-4-E2B", "the published 5.1B counts the vision and audio towers"},
    {"google/gemma-4-E4B", "the published 8B counts the vision and audio towers"},
    {"mistralai/Ministral-3-8B-Instruct-2512", "published as a round 8.4B"},
    {"mistralai/Mistral-Medium-3.5-128B", "the published 128B counts the vision encoder"},
    {"moonshotai/Kimi-Linear-48B-A3B-Instruct", "published as a round 48B"},
    {"deepseek-ai/DeepSeek-V4-Pro", "published as a round 1.6T; with its draft layer the count is 1.599T"},
};

TEST(Weights, counts_match_the_published_ones_within_one_percent) {
  int within = 0;
  int without_figure = 0;
  for (const ModelEntry& entry : catalogue().entries()) {
    if (!entry.published_parameters) {
      ++without_figure;
      continue;
    }
    const double counted = count_parameters(catalogue().model(entry.name)).total;
    const double error = std::abs(counted / *entry.published_parameters - 1);
    within += error <= 0.01 ? 1 : 0;
    EXPECT_EQ(error > 0.01, explained.contains(entry.name))
        << entry.name << ": " << counted << " counted, " << *entry.published_parameters << " published";
  }
  EXPECT_EQ(within, 143);
  EXPECT_EQ(without_figure, 3) << "MiMo-7B and the two NeuSight evaluation models have no published total";
}

// Publishers count active parameters by different rules (embeddings in or out), so 15% is all that can be asked.
TEST(Weights, active_counts_are_near_the_published_ones) {
  for (const ModelEntry& entry : catalogue().entries()) {
    if (!entry.published_active) continue;
    const Model model = catalogue().model(entry.name);
    const double active = count_parameters(model).active;
    const double embedding = embedding_weights(model).front().parameters();
    const double nearest = std::min(std::abs(active / *entry.published_active - 1),
                                    std::abs((active - embedding) / *entry.published_active - 1));
    EXPECT_LT(nearest, 0.15) << entry.name << " " << active;
  }
}

TEST(Weights, active_never_exceeds_total_and_equals_it_without_experts) {
  for (const std::string& name : catalogue().names()) {
    const Model model = catalogue().model(name);
    const ParameterCount count = count_parameters(model);
    bool experts = false;
    for (const auto* stack : {&model.layers, &model.encoder_layers}) {
      for (const Layer& layer : *stack) experts = experts || std::holds_alternative<Moe>(layer.feed_forward);
    }
    EXPECT_GT(count.active, 0) << name;
    EXPECT_LE(count.active, count.total) << name;
    EXPECT_EQ(count.active < count.total, experts) << name;
    EXPECT_EQ(count.draft > 0, !model.draft_layers.empty()) << name;
  }
}

TEST(Weights, every_matrix_has_a_size_and_every_name_stands_once_per_place) {
  for (const std::string& name : catalogue().names()) {
    const Model model = catalogue().model(name);
    for (const auto& weights :
         {embedding_weights(model), head_weights(model), layer_weights(model, model.layers.front()),
          layer_weights(model, model.layers.back())}) {
      by_name(weights);
      for (const Weight& weight : weights) {
        EXPECT_GE(weight.inputs, 1) << name << " " << weight.name;
        EXPECT_GE(weight.outputs, 1) << name << " " << weight.name;
        EXPECT_GE(weight.copies, weight.name == "lm_head" ? 0 : 1) << name << " " << weight.name;
      }
    }
  }
}

TEST(Weights, llama_is_cut_by_columns_then_rows) {
  const Model model = catalogue().model("Llama-3.1-8B");
  const auto weights = by_name(layer_weights(model, model.layers[0]));
  EXPECT_EQ(weights.at("qkv_proj").outputs, (32 + 2 * 8) * 128);
  EXPECT_EQ(weights.at("qkv_proj").inputs, 4096);
  EXPECT_EQ(weights.at("qkv_proj").cut, Cut::columns);
  EXPECT_EQ(weights.at("qkv_proj").kv_heads, 8);
  EXPECT_EQ(weights.at("o_proj").cut, Cut::rows);
  EXPECT_EQ(weights.at("gate_up_proj").outputs, 2 * 14336);
  EXPECT_EQ(weights.at("down_proj").cut, Cut::rows);
  EXPECT_EQ(weights.at("norm").copies, 2);
  EXPECT_EQ(weights.size(), 5u);
}

TEST(Weights, a_tied_head_has_no_copy_of_its_own) {
  const Model model = catalogue().model("Llama-3.2-1B");
  const auto head = by_name(head_weights(model));
  EXPECT_EQ(head.at("lm_head").copies, 0);
  EXPECT_EQ(head.at("lm_head").outputs, 128256);
  EXPECT_EQ(head.at("lm_head").cut, Cut::vocabulary);
}

TEST(Weights, quantization_spares_embeddings_norms_router_and_head) {
  const Model model = catalogue().model("DeepSeek-V3");
  const auto layer = by_name(layer_weights(model, model.layers.back()));
  EXPECT_EQ(layer.at("q_b_proj").scheme, Scheme::fp8_block);
  EXPECT_EQ(layer.at("experts_gate_up").scheme, Scheme::fp8_block);
  EXPECT_EQ(layer.at("router").scheme, Scheme::bf16);
  EXPECT_EQ(layer.at("norm").scheme, Scheme::bf16);
  EXPECT_EQ(by_name(head_weights(model)).at("lm_head").scheme, Scheme::bf16);
  EXPECT_EQ(by_name(embedding_weights(model)).at("embed_tokens").scheme, Scheme::bf16);
}

// 595 GB of safetensors: a 16-bit scale for each 32 weights, and no zero points.
TEST(Weights, kimi_k2_5_takes_what_its_checkpoint_takes) {
  const Model model = catalogue().model("Kimi-K2.5");
  EXPECT_EQ(model.expert_scheme, Scheme::int4_wo);
  EXPECT_DOUBLE_EQ(by_name(layer_weights(model, model.layers.back())).at("experts_down").bytes_each(), 0.5625);
  EXPECT_NEAR(weight_bytes(model).value() / 1e9, 594.2, 0.5);
}

TEST(Weights, gpt_oss_keeps_attention_in_bf16_and_experts_in_mxfp4) {
  const Model model = catalogue().model("gpt-oss-120b");
  const auto layer = by_name(layer_weights(model, model.layers[0]));
  EXPECT_EQ(layer.at("qkv_proj").scheme, Scheme::bf16);
  EXPECT_EQ(layer.at("experts_down").scheme, Scheme::mxfp4_wo);
  EXPECT_EQ(layer.at("experts_down").copies, 128);
  EXPECT_EQ(layer.at("experts_down").cut, Cut::experts);
  EXPECT_TRUE(layer.contains("sinks"));
  EXPECT_TRUE(layer.contains("experts_gate_up_bias"));
}

TEST(Weights, latent_attention_shares_its_low_ranks_between_tensor_ranks) {
  const Model model = catalogue().model("DeepSeek-V2-Lite");
  const auto layer = by_name(layer_weights(model, model.layers[0]));
  EXPECT_EQ(layer.at("q_proj").outputs, 16 * (128 + 64)) << "no query rank in the Lite model";
  EXPECT_EQ(layer.at("kv_a_proj").cut, Cut::none);
  EXPECT_EQ(layer.at("kv_b_proj").outputs, 16 * (128 + 128));
  EXPECT_TRUE(layer.contains("gate_up_proj")) << "the first layer is dense";
  EXPECT_TRUE(by_name(layer_weights(model, model.layers[1])).contains("shared_gate_up"));
}

TEST(Weights, opt_350m_projects_from_and_to_a_narrower_embedding) {
  const Model model = catalogue().model("opt-350m");
  EXPECT_EQ(by_name(embedding_weights(model)).at("project_in").inputs, 512);
  EXPECT_EQ(by_name(head_weights(model)).at("project_out").outputs, 512);
  EXPECT_FALSE(by_name(head_weights(model)).contains("final_norm")) << "its norms come after the blocks";
}

TEST(Weights, falcon_7b_has_one_kv_head_one_norm_and_its_own_head) {
  const Model model = catalogue().model("falcon-7b");
  const auto layer = by_name(layer_weights(model, model.layers[0]));
  EXPECT_EQ(layer.at("qkv_proj").outputs, (71 + 2) * 64);
  EXPECT_EQ(layer.at("norm").copies, 1);
  EXPECT_TRUE(model.layers[0].parallel);
  EXPECT_EQ(by_name(head_weights(model)).at("lm_head").copies, 1);
}

}  // namespace foretoken::weights_test
