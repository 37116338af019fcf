#include "model/catalogue.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/json.h"
#include "model/checkpoint_name.h"
#include "model/model_config.h"

namespace foretoken::model_catalogue_test {

using testing::HasSubstr;

const std::filesystem::path folder = FORETOKEN_SOURCE_DIR "/data/models";

std::string complaint(std::string_view name) {
  try {
    ModelCatalogue(folder).model(name);
  } catch (const InputError& error) {
    return error.what();
  }
  return "(no error)";
}

TEST(ModelCatalogue, finds_a_model_by_id_in_any_case_by_its_last_part_and_by_alias) {
  const ModelCatalogue catalogue(folder);
  for (const char* name :
       {"meta-llama/Llama-3.1-8B", "META-LLAMA/llama-3.1-8b", "llama-3.1-8b", "Llama-3.1-8B-Instruct",
        "meta-llama/Meta-Llama-3.1-8B", "meta-llama/Llama-3.1-8B-Instruct", "meta-llama-3.1-8b-instruct"}) {
    EXPECT_EQ(catalogue.model(name).name, "meta-llama/Llama-3.1-8B") << name;
    EXPECT_EQ(catalogue.entry(name).name, "meta-llama/Llama-3.1-8B") << name;
  }
  EXPECT_EQ(catalogue.model("Mixtral-8x7B-Instruct-v0.1").name, "mistralai/Mixtral-8x7B-v0.1");
  EXPECT_EQ(catalogue.model("deepseek-ai/DeepSeek-V3-0324").name, "deepseek-ai/DeepSeek-V3");
}

TEST(ModelCatalogue, a_name_resolves_to_the_shapes_and_to_the_checkpoint_that_it_names) {
  const ModelCatalogue catalogue(folder);
  const ResolvedName instruct = catalogue.resolve("llama-3.1-8b-instruct");
  EXPECT_EQ(instruct.entry, "meta-llama/Llama-3.1-8B");
  EXPECT_EQ(instruct.checkpoint, "meta-llama/Llama-3.1-8B-Instruct");
  EXPECT_FALSE(instruct.has_format);
  const ResolvedName quantized = catalogue.resolve("Qwen3-235B-A22B-FP8");
  EXPECT_EQ(quantized.entry, "Qwen/Qwen3-235B-A22B");
  EXPECT_EQ(quantized.checkpoint, "Qwen/Qwen3-235B-A22B-FP8");
  EXPECT_TRUE(quantized.has_format);
  EXPECT_EQ(catalogue.model("Qwen3-235B-A22B-FP8").expert_scheme, Scheme::fp8_block);
  EXPECT_EQ(catalogue.resolve("Mixtral-8x7B").checkpoint, "mistralai/Mixtral-8x7B-v0.1");
  EXPECT_EQ(catalogue.resolve("RedHatAI/Meta-Llama-3.1-70B-Instruct-FP8").entry, "meta-llama/Llama-3.1-70B");
  EXPECT_FALSE(catalogue.resolve("Qwen3-4B-Instruct-2507").is_listed);
  EXPECT_THAT(complaint("someone/Llama-3.1-8B"), HasSubstr("foretoken models"));
}

TEST(ModelCatalogue, a_name_is_known_in_the_spellings_that_people_use) {
  const ModelCatalogue catalogue(folder);
  for (const char* name : {"llama3.1:8b", "Llama 3.1 8B", "llama_3.1_8b", "llama3.1-8B"}) {
    EXPECT_EQ(catalogue.model(name).name, "meta-llama/Llama-3.1-8B") << name;
  }
  EXPECT_EQ(catalogue.model("gptoss120b").name, "openai/gpt-oss-120b");
  EXPECT_EQ(catalogue.model("phi4").name, "microsoft/phi-4");
  EXPECT_THAT(complaint("qwen38b"), HasSubstr("did you mean")) << "Qwen-38B is another model than Qwen3-8B";
}

TEST(ModelCatalogue, a_name_that_is_too_short_is_told_the_full_ones) {
  EXPECT_THAT(complaint("qwen3-235b"), HasSubstr("the full name of a model; did you mean Qwen3-235B-A22B?"));
  EXPECT_THAT(complaint("llama-405b"), HasSubstr("did you mean Llama-3.1-405B?"));
  const std::string several = complaint("llama-70b");
  EXPECT_THAT(several, HasSubstr("one of meta-llama/Llama-3.1-70B, "));
  EXPECT_THAT(several, HasSubstr("meta-llama/Llama-3.3-70B-Instruct"));
  EXPECT_THAT(several, testing::Not(HasSubstr("did you mean")));
}

TEST(ModelCatalogue, one_model_more_than_are_named_is_one_other) {
  const auto own = std::filesystem::path(testing::TempDir()) / "foretoken_six_models";
  std::filesystem::create_directories(own);
  for (int i = 0; i < 6; ++i) {
    const std::string name = "acme-" + std::to_string(i);
    std::ofstream(own / ("lab--" + name + ".json"))
        << R"({"name": "lab/)" << name << R"(", "source": "made up", "checked": "no", "published_parameters_billion": 1,
            "published_source": "made up", "config": {"model_type": "gpt2", "n_embd": 8, "n_layer": 1, "n_head": 2,
            "n_positions": 4, "vocab_size": 10}})";
  }
  try {
    ModelCatalogue(own).model("acme");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("lab/acme-4 or 1 other: "));
  }
  std::filesystem::remove_all(own);
}

TEST(ModelCatalogue, an_unknown_name_is_told_the_nearest_one) {
  EXPECT_THAT(complaint("meta-llama/Llama-3.1-80B"), HasSubstr("did you mean meta-llama/Llama-3.1-"));
  EXPECT_THAT(complaint("Llama-3.1-8BB"), HasSubstr("did you mean Llama-3.1-8B?"));
  EXPECT_THAT(complaint("qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqq"), HasSubstr("foretoken models"));
  EXPECT_THAT(complaint(""), HasSubstr("foretoken models"));
}

TEST(ModelCatalogue, a_size_that_is_not_there_is_told_the_reader_and_the_nearest_sizes) {
  const std::string text = complaint("Qwen/Qwen2.5-57B-Instruct");
  EXPECT_THAT(text, HasSubstr("The qwen2 family is supported, but this model's sizes are unknown"));
  EXPECT_THAT(text, HasSubstr("Similar: Qwen/Qwen2.5-72B, Qwen/Qwen2.5-32B"));
}

TEST(ModelCatalogue, a_name_without_relatives_is_told_the_reader_of_its_model_type) {
  EXPECT_THAT(complaint("baidu/ERNIE-4.5-0.3B-PT"), HasSubstr("The ernie4_5 family is supported"));
  EXPECT_THAT(complaint("inclusionAI/Ring-2.6-1T"), HasSubstr("The bailing_hybrid family is supported"));
  EXPECT_THAT(complaint("inclusionAI/Ring-2.6-1T"), HasSubstr("Similar: inclusionAI/Ling-2.6-flash"));
}

TEST(ModelCatalogue, the_first_word_of_a_name_does_not_tell_its_family) {
  for (const char* name : {"gpt-5", "zai-org/GLM-9", "nvidia/GLM-9-NVFP4"}) {
    EXPECT_THAT(complaint(name), testing::Not(HasSubstr("supported"))) << name;
    EXPECT_THAT(complaint(name), HasSubstr("Known names with the same first word: ")) << name;
  }
  EXPECT_THAT(complaint("llama4"), HasSubstr("The llama4 family is supported"));
  EXPECT_THAT(complaint("llama4"), HasSubstr("Similar: meta-llama/Llama-4-"));
  EXPECT_THAT(complaint("llama4"), testing::Not(HasSubstr("Llama-2")));
  EXPECT_THAT(complaint("qqqqqq"), testing::Not(HasSubstr("same first word")));
}

TEST(ModelCatalogue, a_dense_model_is_not_taken_for_a_relative_of_one_with_experts) {
  for (const char* name : {"Qwen2-7B-Instruct", "Qwen/Qwen2-VL-7B-Instruct", "microsoft/Phi-3.5-mini-instruct"})
    EXPECT_THAT(complaint(name), testing::Not(HasSubstr("moe family"))) << name;
  EXPECT_THAT(complaint("Qwen2-7B-Instruct"), HasSubstr("Known names with the same first word: Qwen/Qwen2.5-7B"));
  EXPECT_THAT(complaint("microsoft/Phi-3.5-mini-instruct"), HasSubstr("microsoft/Phi-3-mini-4k-instruct"));
  EXPECT_THAT(complaint("Qwen2-30B-A3B"), HasSubstr("The qwen2_moe family is supported"));
}

TEST(ModelCatalogue, unknown_words_behind_a_known_name_are_said_in_a_note) {
  const ModelCatalogue catalogue(folder);
  const Model model = catalogue.model("Qwen/Qwen3-32B-Turbo-RL-FP8");
  EXPECT_EQ(model.name, "Qwen/Qwen3-32B");
  EXPECT_EQ(model.scheme, Scheme::fp8_block);
  EXPECT_EQ(model.served_name(), "Qwen/Qwen3-32B-Turbo-RL-FP8");
  std::string notes;
  for (const std::string& note : model.notes) notes += note + "\n";
  ASSERT_FALSE(model.notes.empty());
  EXPECT_TRUE(is_name_warning(model.notes.front()));
  EXPECT_THAT(notes, HasSubstr("Qwen/Qwen3-32B-Turbo-RL-FP8 is not in the library, and Turbo-RL is not a number"));
  EXPECT_THAT(notes, HasSubstr("This answer is for Qwen/Qwen3-32B."));
  const std::vector<std::string> tuned = catalogue.model("Qwen/Qwen3-32B-RL").notes;
  EXPECT_TRUE(std::none_of(tuned.begin(), tuned.end(), is_name_warning));
  EXPECT_THAT(tuned, testing::Contains(HasSubstr("RL in the model's name is not known")));
  EXPECT_EQ(catalogue.model("Llama-3.1-8B-SFT-202606").name, "meta-llama/Llama-3.1-8B");
  EXPECT_EQ(catalogue.model("Llama-3.1-8B-Instruct-AWQ").name, "meta-llama/Llama-3.1-8B");
  EXPECT_THAT(complaint("Llama-3.1-8B-Banana"), HasSubstr("did you mean Llama-3.1-8B"));
  EXPECT_THAT(complaint("Llama-3.1-8B-Banana-FP8"), HasSubstr("The llama family is supported"));
  // A word that names another model is not passed over.
  EXPECT_THAT(complaint("Qwen/Qwen3-32B-Mini"), HasSubstr("The qwen3 family is supported"));
  EXPECT_THAT(complaint("someone/Qwen3-32B-RL"), HasSubstr("foretoken models"));
}

TEST(ModelCatalogue, a_name_that_fits_two_models_asks_which) {
  EXPECT_THAT(complaint("gpt3-xl"), HasSubstr("neusight/gpt3-xl, openai/gpt3-xl"));
}

TEST(ModelCatalogue, a_path_to_a_config_or_a_folder_or_our_own_file_works) {
  const ModelCatalogue catalogue(folder);
  EXPECT_EQ(catalogue.model((folder / "openai-community--gpt2.json").string()).name, "openai-community/gpt2");
  const auto own = std::filesystem::path(testing::TempDir()) / "foretoken_catalogue_test";
  std::filesystem::create_directories(own);
  std::ofstream(own / "config.json")
      << R"({"model_type": "gpt2", "n_embd": 8, "n_layer": 1, "n_head": 2, "n_positions": 4,
                                           "vocab_size": 10})";
  EXPECT_EQ(catalogue.model(own.string()).hidden, 8);
  EXPECT_EQ(catalogue.model((own / "config.json").string()).hidden, 8);
  std::filesystem::remove_all(own);
  EXPECT_THAT(complaint((own / "config.json").string()), HasSubstr("config.json"));
}

TEST(ModelCatalogue, a_missing_folder_is_an_error_that_names_it) {
  EXPECT_THROW(ModelCatalogue("/no/such/folder"), InputError);
}

TEST(ModelCatalogue, every_file_is_named_after_its_model_and_no_name_is_used_twice) {
  const ModelCatalogue catalogue(folder);
  ASSERT_EQ(catalogue.names().size(), 159u);
  std::set<std::string> taken;
  for (const ModelEntry& entry : catalogue.entries()) {
    EXPECT_TRUE(taken.insert(entry.name).second) << entry.name;
    for (const std::string& alias : entry.aliases) EXPECT_TRUE(taken.insert(alias).second) << alias;
    EXPECT_EQ(catalogue.entry(entry.name).file, entry.file);
    EXPECT_FALSE(entry.source.empty());
    EXPECT_THAT(entry.checked, testing::AnyOf("copied", "cross-checked", "evaluation", "unchecked")) << entry.name;
    EXPECT_EQ(entry.published_parameters.has_value(), !entry.published_source.empty()) << entry.name;
  }
}

// The trimmed publishers' files and ours must give the same shapes: nothing was lost in rewriting them.
TEST(ModelCatalogueNeedsData, our_files_read_like_the_publishers) {
  const char* data = std::getenv("FORETOKEN_DATA");
  if (data == nullptr) GTEST_SKIP() << "FORETOKEN_DATA is not set";
  const std::filesystem::path published = std::filesystem::path(data) / "models";
  const ModelCatalogue catalogue(folder);
  const Json index = read_json_file(published / "index.json");
  int compared = 0;
  for (const Json& row : index.items()) {
    const std::string name = row.find("model")->string();
    Model theirs = read_model_config(published / row.find("file")->string());
    const Model ours = catalogue.model(name);
    if (name == "zai-org/GLM-4.5") continue;  // ours adds use_qk_norm, which the trimmed file lost
    EXPECT_EQ(ours.layers, theirs.layers) << name;
    EXPECT_EQ(ours.encoder_layers, theirs.encoder_layers) << name;
    EXPECT_EQ(ours.draft_layers, theirs.draft_layers) << name;
    EXPECT_EQ(ours.hidden, theirs.hidden) << name;
    EXPECT_EQ(ours.vocabulary, theirs.vocabulary) << name;
    EXPECT_EQ(ours.max_positions, theirs.max_positions) << name;
    EXPECT_EQ(ours.tied_embeddings, theirs.tied_embeddings) << name;
    EXPECT_EQ(ours.dtype, theirs.dtype) << name;
    if (name != "moonshotai/Kimi-K3") {  // whose trimmed file names the quantizer without its groups
      EXPECT_EQ(ours.scheme, theirs.scheme) << name;
      EXPECT_EQ(ours.expert_scheme, theirs.expert_scheme) << name;
    }
    ++compared;
  }
  EXPECT_EQ(compared, 114);
}

}  // namespace foretoken::model_catalogue_test
