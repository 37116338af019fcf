// Vision parts of models: sizes that others publish, and the rule from pictures to tokens.
#include "model/vision.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file.h"
#include "model/weights.h"

namespace foretoken::vision_test {

const std::filesystem::path folder = FORETOKEN_SOURCE_DIR "/data/vision";

VisionEncoder encoder(const std::string& name) {
  return find_vision_encoder(folder, name);
}

PictureTokens tokens(const std::string& name, int64_t width, int64_t height) {
  return picture_tokens(encoder(name), width, height, "image_sizes");
}

TEST(Vision, parameters_are_those_published) {
  // Qwen2-VL report (arXiv 2409.12191): 675 million. CLIP ViT-L/14: 304 million, less the last of 24 layers, which
  // LLaVA does not run. SigLIP So400m: 400 million, as Gemma 3 says (arXiv 2503.19786, table 1: 417).
  EXPECT_NEAR(count_parameters(encoder("Qwen2-VL-7B-Instruct").blocks).total / 1e6, 675 - 45, 15) << "without merger";
  EXPECT_NEAR(count_parameters(encoder("llava-1.5-7b-hf").blocks).total / 1e6, 304.0 * 23 / 24, 5);
  EXPECT_NEAR(count_parameters(encoder("gemma-3-4b-it").blocks).total / 1e6, 417, 10);
}

TEST(Vision, windows_are_all_layers_but_those_that_are_named) {
  const VisionEncoder read = encoder("Qwen2.5-VL-7B-Instruct");
  EXPECT_EQ(read.blocks.layers.size(), 4U);
  EXPECT_EQ(read.window_blocks.value().layers.size(), 28U);
  EXPECT_EQ(read.window_patches, 64);
  EXPECT_FALSE(encoder("Qwen2-VL-7B-Instruct").window_blocks);
}

TEST(Vision, a_projector_has_the_weights_of_its_two_layers) {
  const double weights = 5120.0 * 5120 + 5120.0 * 3584;
  EXPECT_NEAR(count_parameters(encoder("Qwen2-VL-7B-Instruct").projector).total / weights, 1, 0.01);
}

TEST(Vision, squares_become_the_tokens_that_papers_print) {
  EXPECT_EQ(tokens("Qwen2-VL-7B-Instruct", 224, 224).tokens, 64)
      << "arXiv 2409.12191, section 2.1, without the 2 around";
  EXPECT_EQ(tokens("Qwen2-VL-7B-Instruct", 224, 224).patches, 256);
  EXPECT_EQ(tokens("llava-1.5-7b-hf", 1000, 50).tokens, 576) << "336 / 14 squared, whatever the picture";
  EXPECT_EQ(tokens("gemma-3-4b-it", 800, 600).tokens, 256);
  EXPECT_EQ(tokens("gemma-3-4b-it", 800, 600).patches, 4096);
}

TEST(Vision, tiles_count_the_whole_picture_too_and_leave_out_padding) {
  const PictureTokens square = tokens("llava-v1.6-mistral-7b-hf", 672, 672);
  EXPECT_EQ(square.patches, 5 * 576);
  EXPECT_EQ(square.tokens, 576 + 48 * 49) << "each row of tiles ends with a token";
  const PictureTokens wide = tokens("llava-v1.6-mistral-7b-hf", 1344, 672);
  EXPECT_LT(wide.tokens, square.tokens + 1) << "rows of padding are left out";
  EXPECT_GT(wide.tokens, 576);
}

TEST(Vision, more_pixels_are_never_fewer_tokens_and_limits_hold) {
  int64_t before = 0;
  for (int64_t side = 28; side < 6000; side += 97) {
    const PictureTokens picture = tokens("Qwen2-VL-7B-Instruct", side, side);
    if (side * side < 12'845'056) {
      EXPECT_GE(picture.tokens, before) << side;
    }
    EXPECT_LE(picture.tokens * 28 * 28, 12'845'056);
    EXPECT_GE(picture.tokens * 28 * 28, 3136);
    EXPECT_EQ(picture.patches, 4 * picture.tokens);
    before = picture.tokens;
  }
}

TEST(Vision, broken_configs_and_sizes_are_refused_with_what_was_expected) {
  EXPECT_THROW(tokens("llava-1.5-7b-hf", 0, 10), InputError);
  EXPECT_THROW(tokens("Qwen2-VL-7B-Instruct", 10'000, 20), InputError) << "500 to 1";
  EXPECT_THROW(encoder("Qwen2-VL"), InputError);
  for (
      const char* text :
      {"[]", "{}", R"({"model_type": "llama"})", R"({"model_type": "llava", "vision_config": {}})",
       R"({"model_type": "qwen2_vl", "vision_config": {"embed_dim": 1280, "num_heads": 7, "depth": 2, "hidden_size": 8}})",
       R"({"model_type": "qwen2_vl", "vision_config": {"embed_dim": -1}})"}) {
    EXPECT_THROW(parse_vision_config(text, "test", "test"), InputError) << text;
  }
}

TEST(Vision, every_file_that_ships_is_read) {
  for (const std::string& stem : file_stems(folder)) {
    const VisionEncoder read = read_vision_config(folder / (stem + ".json"));
    EXPECT_GT(picture_tokens(read, 640, 480, "size").tokens, 0) << stem;
    EXPECT_GT(read.weight_bytes(), 1e8) << stem;
  }
}

}  // namespace foretoken::vision_test
