#include "validate/steps/layer_conventions.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"

namespace foretoken::layer_conventions_test {

const std::filesystem::path shipped = FORETOKEN_SOURCE_DIR "/data/layers/llmcompass.json";

TEST(LayerConventions, the_shipped_file_says_what_the_publication_measured) {
  const LayerConventions conventions = read_layer_conventions(shipped);
  EXPECT_EQ(conventions.model, "openai/gpt3-175b");
  EXPECT_EQ(conventions.tensor, 4);
  EXPECT_EQ(conventions.operators.at("Q_K_V"), "qkv_proj");
}

TEST(LayerConventions, a_device_name_loses_its_count_and_the_suffixes_that_the_file_names) {
  LayerConventions conventions = read_layer_conventions(shipped);
  EXPECT_EQ(layer_device_name("4xA100_NVLink3", conventions), "A100");
  EXPECT_EQ(layer_device_name("A100", conventions), "A100");
  EXPECT_EQ(layer_device_name("xla_device", conventions), "xla_device");
  conventions.device_suffixes.clear();
  EXPECT_EQ(layer_device_name("4xA100_NVLink3", conventions), "A100_NVLink3");
}

TEST(LayerConventions, unknown_keys_formats_and_counts_below_one_are_refused) {
  const std::filesystem::path file = std::filesystem::path(testing::TempDir()) / "layer_conventions_test.json";
  const auto with = [&](const char* key, Json value) {
    Json document = read_json_file(shipped);
    document.set(key, std::move(value));
    write_file(file, document.dump());
  };
  with("batches", 8);
  EXPECT_THROW(read_layer_conventions(file), InputError);
  with("dtype", "telepathy");
  EXPECT_THROW(read_layer_conventions(file), InputError);
  with("missing_columns",
       Json::object({{"model", "m"}, {"batch", 0}, {"input_len", 1}, {"context_len", 1}, {"tp", 1}}));
  EXPECT_THROW(read_layer_conventions(file), InputError);
  std::filesystem::remove(file);
}

}  // namespace foretoken::layer_conventions_test
