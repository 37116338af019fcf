#include "model/vision.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "model/config_parts.h"
#include "model/config_reader.h"
#include "model/weights.h"

namespace foretoken {
namespace {

constexpr JsonLimits vision_limits{.max_bytes = size_t{1} << 20, .max_depth = 16, .max_values = 10'000};
constexpr int64_t largest_side = 100'000;                 // pixels
constexpr int64_t largest_width = 100'000;                // of a layer
constexpr int64_t most_pixels_of_rule = 100'000'000'000;  // of either limit

// A stack of transformer blocks without words: nothing is embedded and there is no head.
Model vision_blocks(int64_t hidden, int64_t heads, int64_t layers, const Mlp& mlp) {
  Model model;
  model.hidden = hidden;
  model.vocabulary = 1;
  model.max_positions = largest_side;
  model.tied_embeddings = true;
  model.has_head = model.final_norm = false;
  const Attention attention{.heads = heads,
                            .kv_heads = heads,
                            .head_dim = hidden / heads,
                            .causal = false,
                            .qkv_bias = true,
                            .output_bias = true};
  model.layers.assign(static_cast<size_t>(layers), {.mixer = attention, .feed_forward = mlp, .layer_norm = true});
  return model;
}

// Two linear layers, inputs -> inner -> outputs.
Model projector(int64_t inputs, int64_t inner, int64_t outputs) {
  Model model = vision_blocks(inputs, 1, 0, {});
  const int64_t width = inner * (inputs + outputs) / (2 * inputs);
  model.layers.push_back({.feed_forward = Mlp{.width = width, .gated = false, .bias = true}, .norms = 1});
  return model;
}

int64_t divided_heads(const ConfigReader& config, std::string_view key, int64_t hidden) {
  const int64_t heads = config.size(key);
  if (hidden % heads != 0) config.text().at(key).fail(fmt::format("a divisor of the hidden size {}", hidden));
  return heads;
}

void read_pixel_limits(const ConfigReader& whole, VisionEncoder& encoder) {
  // Those of Qwen2-VL's preprocessor_config.json: 4 and 16,384 tokens of 28 x 28 pixels.
  encoder.least_pixels = whole.size_or("min_pixels", 3136, most_pixels_of_rule);
  encoder.most_pixels = whole.size_or("max_pixels", 12'845'056, most_pixels_of_rule);
  if (encoder.most_pixels < encoder.least_pixels) whole.text().at("max_pixels").fail("no less than min_pixels");
}

VisionEncoder read_qwen2_vl(const ConfigReader& whole, const ConfigReader& vision) {
  const int64_t hidden = vision.size("embed_dim", largest_width);
  const Mlp mlp{.width = hidden * vision.size_or("mlp_ratio", 4, 64), .gated = false, .bias = true};
  VisionEncoder encoder{.blocks = vision_blocks(hidden, divided_heads(vision, "num_heads", hidden),
                                                vision.size("depth", ConfigReader::most_layers), mlp),
                        .rule = PictureRule::resized,
                        .patch_side = vision.size_or("patch_size", 14, largest_side),
                        .merge_side = vision.size_or("spatial_merge_size", 2, 16)};
  const int64_t merged = hidden * encoder.merge_side * encoder.merge_side;
  encoder.projector = projector(merged, merged, vision.size("hidden_size", largest_width));
  read_pixel_limits(whole, encoder);
  return encoder;
}

// Windows of 8 x 8 patches in all layers but four (Qwen2.5-VL report, arXiv 2502.13923, section 2.1.1).
VisionEncoder read_qwen2_5_vl(const ConfigReader& whole, const ConfigReader& vision) {
  const int64_t hidden = vision.size("hidden_size", largest_width);
  const Mlp mlp{.width = vision.size("intermediate_size", largest_width), .gated = true, .bias = true};
  VisionEncoder encoder{.blocks = vision_blocks(hidden, divided_heads(vision, "num_heads", hidden),
                                                vision.size("depth", ConfigReader::most_layers), mlp),
                        .rule = PictureRule::resized,
                        .patch_side = vision.size_or("patch_size", 14, largest_side),
                        .merge_side = vision.size_or("spatial_merge_size", 2, 16)};
  const int64_t window_side = vision.size_or("window_size", 112, largest_side) / encoder.patch_side;
  const std::vector<int64_t> whole_layers = vision.layer_numbers("fullatt_block_indexes");
  std::vector<Layer> whole_blocks, windows;
  for (size_t i = 0; i < encoder.blocks.layers.size(); ++i) {
    Layer layer = encoder.blocks.layers[i];
    layer.layer_norm = false;
    const auto number = static_cast<int64_t>(i);
    const bool is_whole = std::find(whole_layers.begin(), whole_layers.end(), number) != whole_layers.end();
    (is_whole ? whole_blocks : windows).push_back(std::move(layer));
  }
  if (whole_blocks.empty()) vision.text().at("fullatt_block_indexes").fail("at least one layer");
  if (window_side < 1) vision.text().at("window_size").fail("at least one patch");
  encoder.window_patches = window_side * window_side;
  if (!windows.empty()) {
    encoder.window_blocks = encoder.blocks;
    encoder.window_blocks->layers = std::move(windows);
  }
  encoder.blocks.layers = std::move(whole_blocks);
  const int64_t merged = hidden * encoder.merge_side * encoder.merge_side;
  encoder.projector = projector(merged, merged, vision.size("out_hidden_size", largest_width));
  read_pixel_limits(whole, encoder);
  return encoder;
}

// CLIP and SigLIP towers name their sizes alike.
VisionEncoder read_square_tower(const ConfigReader& whole, const ConfigReader& vision, int64_t layers_left_out) {
  const int64_t hidden = vision.size("hidden_size", largest_width);
  const int64_t layers = vision.size("num_hidden_layers", ConfigReader::most_layers) - layers_left_out;
  if (layers < 1) vision.text().at("num_hidden_layers").fail("more layers than are left out");
  const Mlp mlp{.width = vision.size("intermediate_size", largest_width), .gated = false, .bias = true};
  VisionEncoder encoder{
      .blocks = vision_blocks(hidden, divided_heads(vision, "num_attention_heads", hidden), layers, mlp),
      .patch_side = vision.size("patch_size", largest_side),
      .picture_side = vision.size("image_size", largest_side)};
  const int64_t side = encoder.picture_side / encoder.patch_side;
  if (side < 1) vision.text().at("image_size").fail("at least one patch_size");
  encoder.tokens_of_square = side * side;
  const auto text = whole.inside("text_config");
  const int64_t text_width =
      text ? text->size_or("hidden_size", 4096, largest_width) : whole.size_or("hidden_size", 4096, largest_width);
  encoder.projector = projector(hidden, text_width, text_width);
  return encoder;
}

// Features of the last layer but one: the layers behind it are not run.
VisionEncoder read_llava(const ConfigReader& whole, const ConfigReader& vision) {
  const auto layer = whole.text().find("vision_feature_layer");
  const int64_t from_end = layer ? layer->integer({.least = -1000, .most = -1}) : -2;
  return read_square_tower(whole, vision, -1 - from_end);
}

VisionEncoder read_llava_next(const ConfigReader& whole, const ConfigReader& vision) {
  VisionEncoder encoder = read_llava(whole, vision);
  encoder.rule = PictureRule::tiled;
  for (const JsonView& grid : whole.text().at("image_grid_pinpoints").items()) {
    const std::vector<JsonView> sides = grid.items();
    if (sides.size() != 2) grid.fail("height and width in pixels");
    const Range<int64_t> allowed{.least = encoder.picture_side, .most = largest_side};
    encoder.grids.emplace_back(sides[0].integer(allowed), sides[1].integer(allowed));
  }
  if (encoder.grids.empty()) whole.text().at("image_grid_pinpoints").fail("at least one grid");
  return encoder;
}

// Pooled after the tower, then one projection (Gemma 3 report, section 2).
VisionEncoder read_gemma3_vision(const ConfigReader& whole, const ConfigReader& vision) {
  VisionEncoder encoder = read_square_tower(whole, vision, 0);
  encoder.tokens_of_square = whole.size_or("mm_tokens_per_image", 256);
  const int64_t hidden = encoder.blocks.hidden;
  const auto text = whole.inside("text_config");
  encoder.projector = projector(hidden, hidden, text ? text->size_or("hidden_size", 2560, largest_width) : 2560);
  return encoder;
}

// Add your family here.
struct VisionFamily {
  std::string_view model_type;
  VisionEncoder (*read)(const ConfigReader& whole, const ConfigReader& vision);
};
constexpr VisionFamily vision_families[] = {
    {"qwen2_vl", read_qwen2_vl},     {"qwen2_5_vl", read_qwen2_5_vl}, {"llava", read_llava},
    {"llava_next", read_llava_next}, {"gemma3", read_gemma3_vision},
};

VisionEncoder read_document(const JsonView& document, const std::string& name) {
  if (!document.is(Json::Kind::object)) document.fail("an object with the keys of a config.json");
  const bool wrapped = document.has("config") && document.has("name");
  const JsonView whole = wrapped ? document.at("config") : document;
  const std::string type = whole.at("model_type").string();
  std::vector<std::string> known;
  for (const VisionFamily& family : vision_families) {
    if (type == family.model_type) {
      const JsonView vision = whole.at("vision_config");
      VisionEncoder encoder = family.read(ConfigReader(whole, whole), ConfigReader(vision, whole));
      encoder.name = wrapped ? document.at("name").string() : name;
      encoder.blocks.name = encoder.projector.name = encoder.name;
      encoder.blocks.family = encoder.projector.family = type;
      return encoder;
    }
    known.emplace_back(family.model_type);
  }
  whole.at("model_type")
      .fail(fmt::format("a family with pictures that is known: {}", fmt::join(known, ", ")),
            nearest_name(type, known).value_or(""));
}

int64_t rounded_to(double pixels, int64_t side, double (*round)(double)) {
  return static_cast<int64_t>(round(pixels / static_cast<double>(side))) * side;
}

// smart_resize of Qwen2-VL's image processor (transformers, image_processing_qwen2_vl.py).
PictureTokens resized(const VisionEncoder& encoder, double width, double height) {
  const int64_t side = encoder.patch_side * encoder.merge_side;
  const auto nearest = [](double value) { return std::nearbyint(value); };
  int64_t w = std::max(side, rounded_to(width, side, nearest)), h = std::max(side, rounded_to(height, side, nearest));
  if (w * h > encoder.most_pixels) {
    const double shrink = std::sqrt(width * height / static_cast<double>(encoder.most_pixels));
    const auto down = [](double value) { return std::floor(value); };
    w = std::max(side, rounded_to(width / shrink, side, down));
    h = std::max(side, rounded_to(height / shrink, side, down));
  } else if (w * h < encoder.least_pixels) {
    const double grow = std::sqrt(static_cast<double>(encoder.least_pixels) / (width * height));
    const auto up = [](double value) { return std::ceil(value); };
    w = rounded_to(width * grow, side, up);
    h = rounded_to(height * grow, side, up);
  }
  const int64_t tokens = (w / side) * (h / side);
  return {.patches = tokens * encoder.merge_side * encoder.merge_side, .tokens = tokens};
}

// The grid on which most of the picture's pixels survive; of several the smallest (transformers,
// select_best_resolution).
std::pair<int64_t, int64_t> best_grid(const VisionEncoder& encoder, int64_t width, int64_t height) {
  std::pair<int64_t, int64_t> best = encoder.grids.front();
  int64_t most = -1, least_waste = 0;
  for (const auto& [grid_height, grid_width] : encoder.grids) {
    const double scale = std::min(static_cast<double>(grid_width) / static_cast<double>(width),
                                  static_cast<double>(grid_height) / static_cast<double>(height));
    const auto scaled_width = static_cast<int64_t>(static_cast<double>(width) * scale);
    const auto scaled_height = static_cast<int64_t>(static_cast<double>(height) * scale);
    const int64_t used = std::min(scaled_width * scaled_height, width * height);
    const int64_t waste = grid_width * grid_height - used;
    if (used > most || (used == most && waste < least_waste)) {
      best = {grid_height, grid_width};
      most = used;
      least_waste = waste;
    }
  }
  return best;
}

// The whole picture as one square, then its tiles: rows or columns that only pad them are left out, and each row of
// tokens ends with one for the line (vLLM, models/llava_next.py, get_num_image_tokens).
PictureTokens tiled(const VisionEncoder& encoder, int64_t width, int64_t height) {
  const auto [grid_height, grid_width] = best_grid(encoder, width, height);
  const int64_t down = grid_height / encoder.picture_side, across = grid_width / encoder.picture_side;
  const int64_t side = encoder.picture_side / encoder.patch_side;
  int64_t rows = side * down, columns = side * across;
  const auto exact = [](int64_t a, int64_t b, int64_t c) {
    return static_cast<int64_t>(static_cast<double>(a) * (static_cast<double>(b) / static_cast<double>(c)));
  };
  if (width * rows > columns * height) {
    rows -= (rows - exact(height, columns, width)) / 2 * 2;
  } else {
    columns -= (columns - exact(width, rows, height)) / 2 * 2;
  }
  return {.patches = (1 + down * across) * side * side, .tokens = encoder.tokens_of_square + rows * (columns + 1)};
}

}  // namespace

int64_t VisionEncoder::attended_patches() const {
  if (rule == PictureRule::resized) return 0;
  const int64_t side = picture_side / patch_side;
  return side * side;
}

double VisionEncoder::weight_bytes() const {
  constexpr double bytes_of_weight = 2;  // bf16
  const double in_windows = window_blocks ? count_parameters(*window_blocks).total : 0;
  return bytes_of_weight * (count_parameters(blocks).total + in_windows + count_parameters(projector).total);
}

PictureTokens picture_tokens(const VisionEncoder& encoder, int64_t width, int64_t height, const std::string& field) {
  constexpr int64_t most_ratio = 200;  // smart_resize refuses more
  const bool sane = width >= 1 && height >= 1 && width <= largest_side && height <= largest_side;
  if (!sane || std::max(width, height) > most_ratio * std::min(width, height)) {
    throw InputError({.field = field,
                      .value = fmt::format("{}x{}", width, height),
                      .expected = fmt::format("pixels from 1 to {}, neither side above {} times the other",
                                              largest_side, most_ratio)});
  }
  if (encoder.rule == PictureRule::resized) {
    return resized(encoder, static_cast<double>(width), static_cast<double>(height));
  }
  if (encoder.rule == PictureRule::tiled) return tiled(encoder, width, height);
  return {.patches = encoder.attended_patches(), .tokens = encoder.tokens_of_square};
}

VisionEncoder read_vision_config(const std::filesystem::path& file_or_directory) {
  std::error_code ignored;
  const bool is_directory = std::filesystem::is_directory(file_or_directory, ignored);
  const std::filesystem::path file = is_directory ? file_or_directory / "config.json" : file_or_directory;
  const Json document = read_json_file(file, vision_limits);
  return read_document(JsonView(document, file.string()), file_or_directory.string());
}

VisionEncoder parse_vision_config(std::string_view text, const std::string& source, const std::string& name) {
  const Json document = parse_json(text, source, vision_limits);
  return read_document(JsonView(document, source), name);
}

VisionEncoder find_vision_encoder(const std::filesystem::path& folder, const std::string& name) {
  std::vector<std::string> known;
  for (const std::string& stem : file_stems(folder)) {
    const std::string short_name = stem.substr(stem.find("--") + 2);
    std::string id = stem;
    id.replace(id.find("--"), 2, "/");
    if (lower_case(name) == lower_case(short_name) || lower_case(name) == lower_case(id)) {
      return read_vision_config(folder / (stem + ".json"));
    }
    known.push_back(short_name);
  }
  std::error_code ignored;
  if (std::filesystem::exists(name, ignored)) return read_vision_config(name);
  throw InputError({.field = "vision_encoder",
                    .value = printable(name),
                    .expected = fmt::format("a config.json with a vision_config, or one of {}", fmt::join(known, ", ")),
                    .suggestion = nearest_name(name, known).value_or("")});
}

}  // namespace foretoken
