// The vision part of a multi-modal model: its network, and how many tokens a picture becomes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/model.h"

namespace foretoken {

// What a picture of some size is to its encoder and to the language model behind it.
struct PictureTokens {
  int64_t patches = 0;
  int64_t tokens = 0;
};

// How pictures are brought to the encoder's size.
enum class PictureRule {
  resized,  // to a multiple of a token's side, within limits of pixels (Qwen2-VL: naive dynamic resolution)
  fixed,    // to one square (LLaVA-1.5, Gemma 3)
  tiled     // to one square, and cut into tiles of the same size on the best of some grids (LLaVA-NeXT)
};

struct VisionEncoder {
  std::string name;
  Model blocks;                             // one pass over patches
  std::optional<Model> window_blocks = {};  // beside them those in which only `window_patches` attend to each other
  int64_t window_patches = 0;
  Model projector;  // one pass over tokens: as many weights as the real one has, in two equal matrices
  PictureRule rule = PictureRule::fixed;
  int64_t patch_side = 14;                              // pixels
  int64_t merge_side = 1;                               // resized: patches along the side of a token
  int64_t picture_side = 336;                           // fixed, tiled: pixels
  int64_t tokens_of_square = 0;                         // fixed, tiled: of one square
  int64_t least_pixels = 0, most_pixels = 0;            // resized
  std::vector<std::pair<int64_t, int64_t>> grids = {};  // tiled: heights and widths in pixels

  // Patches that attend to each other: those of one square; 0 = all of a picture.
  int64_t attended_patches() const;
  double weight_bytes() const;
};

// InputError, naming `field`, for sides below 1, beyond 100,000 pixels, or of a ratio above 200 where the family
// refuses that.
PictureTokens picture_tokens(const VisionEncoder& encoder, int64_t width, int64_t height, const std::string& field);

// From a config.json with a vision_config, its directory, or a file of data/vision. InputError for families that are
// not known.
VisionEncoder read_vision_config(const std::filesystem::path& file_or_directory);
VisionEncoder parse_vision_config(std::string_view text, const std::string& source, const std::string& name);

// The encoders in a folder, by name or the part after the slash, in any case; a path is read as a file. InputError
// names the nearest.
VisionEncoder find_vision_encoder(const std::filesystem::path& folder, const std::string& name);

}  // namespace foretoken
