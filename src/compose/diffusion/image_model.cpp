#include "compose/diffusion/image_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "hardware/catalogue.h"

namespace foretoken {
namespace {

constexpr JsonLimits image_limits{.max_bytes = size_t{1} << 20, .max_depth = 8, .max_values = 10'000};
constexpr Range<int64_t> sizes{.least = 1, .most = 100'000};
constexpr Range<int64_t> block_counts{.least = 1, .most = 16};

int64_t size_or(const JsonView& object, std::string_view key, int64_t usual, Range<int64_t> allowed = sizes) {
  const std::optional<JsonView> entry = object.find(key);
  return entry ? entry->integer(allowed) : usual;
}

std::vector<int64_t> read_sizes(const JsonView& list, Range<int64_t> allowed) {
  std::vector<int64_t> result;
  for (const JsonView& item : list.items()) result.push_back(item.integer(allowed));
  if (result.empty() || result.size() > 8) list.fail("1 to 8 levels");
  return result;
}

ImageTransformer read_transformer(const JsonView& file) {
  file.allow_only({"hidden", "heads", "joint_layers", "single_layers", "mlp_ratio", "patch", "latent_channels"});
  ImageTransformer result{.hidden = file.at("hidden").integer(sizes),
                          .heads = file.at("heads").integer(sizes),
                          .joint_layers = file.at("joint_layers").integer({.least = 0, .most = 1000}),
                          .single_layers = file.at("single_layers").integer({.least = 0, .most = 1000}),
                          .mlp_ratio = size_or(file, "mlp_ratio", 4),
                          .patch = size_or(file, "patch", 2),
                          .latent_channels = size_or(file, "latent_channels", 16)};
  if (result.hidden % result.heads != 0) file.at("heads").fail(fmt::format("a divisor of hidden, {}", result.hidden));
  return result;
}

ImageUNet read_unet(const JsonView& file) {
  file.allow_only({"channels", "transformer_layers", "residual_blocks", "head_dim", "text_width", "latent_channels"});
  ImageUNet result{.channels = read_sizes(file.at("channels"), sizes),
                   .transformer_layers = read_sizes(file.at("transformer_layers"), {.least = 0, .most = 100}),
                   .residual_blocks = size_or(file, "residual_blocks", 2, block_counts),
                   .head_dim = size_or(file, "head_dim", 64),
                   .text_width = size_or(file, "text_width", 2048),
                   .latent_channels = size_or(file, "latent_channels", 4)};
  if (result.channels.size() != result.transformer_layers.size()) {
    file.at("transformer_layers").fail("one entry for each level of channels");
  }
  for (const int64_t channels : result.channels) {
    if (channels % result.head_dim != 0) file.at("channels").fail(fmt::format("multiples of {}", result.head_dim));
  }
  return result;
}

ImageModel image_model_in(const JsonView& file) {
  file.allow_only({"name", "title", "aliases", "source", "latent_side", "text_tokens", "guidance_passes", "usual_steps",
                   "text_encoder_parameters", "transformer", "unet", "decoder"});
  ImageModel model{.name = file.at("name").string(),
                   .title = file.at("title").string(),
                   .source = file.at("source").string(),
                   .latent_side = size_or(file, "latent_side", 8),
                   .text_tokens = file.at("text_tokens").integer(sizes),
                   .guidance_passes = file.at("guidance_passes").integer({.least = 1, .most = 3}),
                   .usual_steps = file.at("usual_steps").integer({.least = 1, .most = 1000})};
  if (const auto aliases = file.find("aliases")) {
    for (const JsonView& alias : aliases->items()) model.aliases.push_back(alias.string());
  }
  if (const auto text = file.find("text_encoder_parameters")) model.text_encoder_parameters = text->number({0, 1e13});
  const auto transformer = file.find("transformer"), unet = file.find("unet");
  if (transformer.has_value() == unet.has_value()) file.fail("either transformer or unet");
  if (transformer) model.transformer = read_transformer(*transformer);
  if (unet) model.unet = read_unet(*unet);
  const JsonView decoder = file.at("decoder");
  decoder.allow_only({"channels", "residual_blocks", "latent_channels"});
  model.decoder = {.channels = read_sizes(decoder.at("channels"), sizes),
                   .residual_blocks = size_or(decoder, "residual_blocks", 3, block_counts),
                   .latent_channels = size_or(decoder, "latent_channels", 4)};
  const auto levels = static_cast<int64_t>(model.decoder.channels.size());
  if (int64_t{1} << (levels - 1) != model.latent_side) {
    decoder.at("channels")
        .fail(fmt::format("log2(latent_side) + 1 levels, with latent_side {}: all but one double the side",
                          model.latent_side));
  }
  return model;
}

// Collects the kernels of one pass over a batch.
class KernelList {
 public:
  KernelList(int64_t batch, Scheme scheme) : batch_(batch), scheme_(scheme) {}

  std::vector<ImageKernel> take() { return std::move(kernels_); }

  void linear(const std::string& name, int64_t rows, int64_t outputs, int64_t inputs, int64_t count = 1) {
    add(name, GemmShape{.m = batch_ * rows, .n = outputs, .k = inputs, .scheme = scheme_}, count);
  }
  void attention(const std::string& name, int64_t heads, int64_t head_dim, int64_t queries, int64_t keys,
                 int64_t count = 1) {
    add(name,
        AttentionShape{.phase = AttentionPhase::encoder,
                       .batch = batch_,
                       .heads = heads,
                       .kv_heads = heads,
                       .head_dim = head_dim,
                       .q_len = queries,
                       .kv_len = keys,
                       .causal = false},
        count);
  }
  // A norm with the scale and shift around it.
  void norm(int64_t rows, int64_t width, int64_t count = 1) {
    add("norms", NormShape{.rows = batch_ * rows, .width = width, .layer_norm = true}, count);
  }
  // Its mean is over a whole picture, which no multiprocessor holds: the data are read once more.
  void group_norm(int64_t points, int64_t channels) {
    norm(points, channels);
    add("norms", ElementwiseShape{.elements = batch_ * points * channels, .inputs = 1, .outputs = 0}, 1);
  }
  void activation(int64_t rows, int64_t width, bool gated, int64_t count = 1) {
    add("activations", ActivationShape{.rows = batch_ * rows, .width = width, .gated = gated}, count);
  }
  void sum(int64_t elements, int64_t inputs, int64_t count = 1) {
    add("sums", ElementwiseShape{.elements = batch_ * elements, .inputs = inputs, .outputs = 1}, count);
  }
  // A product of each point's neighborhood with the weights, as cuDNN's implicit kernels multiply: within 3% in the
  // median for large pictures (data/measured_images/h200_sxm_convolutions.csv).
  void convolution(const std::string& name, int64_t inputs, int64_t outputs, int64_t height, int64_t width,
                   int64_t side, int64_t stride = 1) {
    linear(name, height / stride * (width / stride), outputs, inputs * side * side);
    kernels_.back().neighborhood = side * side;
  }
  // Each point becomes four, in a pass of its own: one read and four written are five halves of a pass that copies.
  void enlarge(int64_t channels, int64_t height, int64_t width) {
    const int64_t written = batch_ * height * width * channels;
    add("sums", ElementwiseShape{.elements = written * 5 / 8, .inputs = 1, .outputs = 1}, 1);
  }
  // Two convolutions, each behind a norm and an activation in one pass over the data, and a way around them.
  void residual_block(int64_t inputs, int64_t outputs, int64_t height, int64_t width) {
    const int64_t points = height * width;
    group_norm(points, inputs);
    convolution("convolutions", inputs, outputs, height, width, 3);
    group_norm(points, outputs);
    convolution("convolutions", outputs, outputs, height, width, 3);
    if (inputs != outputs) convolution("convolutions", inputs, outputs, height, width, 1);
    sum(points * outputs, 2);
  }

 private:
  void add(const std::string& name, KernelShape shape, int64_t count) {
    if (count > 0) kernels_.push_back({.name = name, .shape = std::move(shape), .count = count});
  }

  int64_t batch_;
  Scheme scheme_;
  std::vector<ImageKernel> kernels_;
};

// Of the weights of one stream of a joint layer: its tokens pass them.
void add_stream(KernelList& list, const ImageTransformer& net, int64_t tokens) {
  const int64_t hidden = net.hidden, layers = net.joint_layers;
  list.linear("modulation", 1, 6 * hidden, hidden, layers);
  list.norm(tokens, hidden, 2 * layers);
  list.linear("attention projections", tokens, 3 * hidden, hidden, layers);
  list.sum(tokens * 2 * hidden, 1, layers);  // norms and rotation of queries and keys
  list.linear("attention projections", tokens, hidden, hidden, layers);
  list.linear("feed-forward", tokens, net.mlp_ratio * hidden, hidden, layers);
  list.activation(tokens, net.mlp_ratio * hidden, false, layers);
  list.linear("feed-forward", tokens, hidden, net.mlp_ratio * hidden, layers);
  list.sum(tokens * hidden, 2, 2 * layers);
}

std::vector<ImageKernel> transformer_kernels(const ImageModel& model, int64_t height, int64_t width, int64_t batch,
                                             Scheme scheme) {
  const ImageTransformer& net = *model.transformer;
  const int64_t picture = height / net.patch * (width / net.patch), tokens = picture + model.text_tokens;
  const int64_t hidden = net.hidden, head_dim = hidden / net.heads;
  const int64_t patch_values = net.patch * net.patch * net.latent_channels;
  KernelList list(batch, scheme);
  list.linear("patches", picture, hidden, patch_values);
  add_stream(list, net, picture);
  add_stream(list, net, model.text_tokens);
  list.attention("attention", net.heads, head_dim, tokens, tokens, net.joint_layers + net.single_layers);
  const int64_t singles = net.single_layers;
  list.linear("modulation", 1, 3 * hidden, hidden, singles);
  list.norm(tokens, hidden, singles);
  list.linear("single layers", tokens, (3 + net.mlp_ratio) * hidden, hidden, singles);
  list.sum(tokens * 2 * hidden, 1, singles);
  list.activation(tokens, net.mlp_ratio * hidden, false, singles);
  list.linear("single layers", tokens, hidden, (1 + net.mlp_ratio) * hidden, singles);
  list.sum(tokens * hidden, 2, singles);
  list.norm(picture, hidden);
  list.linear("patches", picture, patch_values, hidden);
  return list.take();
}

// Layers that read the picture and the text, between two projections.
void add_transformer(KernelList& list, const ImageUNet& net, int64_t channels, int64_t points, int64_t text_tokens,
                     int64_t layers) {
  if (layers == 0) return;
  const int64_t heads = channels / net.head_dim;
  list.linear("attention projections", points, channels, channels, 2);  // in and out
  list.group_norm(points, channels);
  list.norm(points, channels, 3 * layers);
  list.linear("attention projections", points, 3 * channels, channels, layers);
  list.attention("attention", heads, net.head_dim, points, points, layers);
  list.linear("attention projections", points, channels, channels, 3 * layers);  // out, queries of the text, out
  list.linear("attention projections", text_tokens, 2 * channels, net.text_width, layers);
  list.attention("attention to the text", heads, net.head_dim, points, text_tokens, layers);
  list.linear("feed-forward", points, 8 * channels, channels, layers);
  list.activation(points, 4 * channels, true, layers);
  list.linear("feed-forward", points, channels, 4 * channels, layers);
  list.sum(points * channels, 2, 3 * layers);
}

std::vector<ImageKernel> unet_kernels(const ImageModel& model, int64_t height, int64_t width, int64_t batch,
                                      Scheme scheme) {
  const ImageUNet& net = *model.unet;
  KernelList list(batch, scheme);
  const auto block = [&](size_t level, int64_t inputs, int64_t h, int64_t w) {
    list.residual_block(inputs, net.channels[level], h, w);
    add_transformer(list, net, net.channels[level], h * w, model.text_tokens, net.transformer_layers[level]);
  };
  list.convolution("convolutions", net.latent_channels, net.channels[0], height, width, 3);
  std::vector<int64_t> kept = {net.channels[0]};  // channels that the way up reads again, last first
  int64_t channels = net.channels[0], h = height, w = width;
  const size_t last = net.channels.size() - 1;
  for (size_t level = 0; level <= last; ++level) {
    for (int64_t i = 0; i < net.residual_blocks; ++i) {
      block(level, channels, h, w);
      channels = net.channels[level];
      kept.push_back(channels);
    }
    if (level == last) break;
    list.convolution("convolutions", channels, channels, h, w, 3, 2);
    h /= 2, w /= 2;
    kept.push_back(channels);
  }
  block(last, channels, h, w);
  list.residual_block(channels, channels, h, w);
  for (size_t level = last + 1; level-- > 0;) {
    for (int64_t i = 0; i <= net.residual_blocks; ++i) {
      block(level, channels + kept.back(), h, w);
      channels = net.channels[level];
      kept.pop_back();
    }
    if (level == 0) break;
    h *= 2, w *= 2;
    list.enlarge(channels, h, w);
    list.convolution("convolutions", channels, channels, h, w, 3);
  }
  list.group_norm(h * w, channels);
  list.convolution("convolutions", channels, net.latent_channels, h, w, 3);
  return list.take();
}

void check_side(const char* field, int64_t pixels, int64_t multiple) {
  if (pixels >= multiple && pixels % multiple == 0) return;
  throw InputError({.field = field,
                    .value = fmt::format("{}", pixels),
                    .expected = fmt::format("a multiple of {} pixels", multiple)});
}

}  // namespace

ImageModel parse_image_model(std::string_view text, const std::string& source) {
  const Json document = parse_json(text, source, image_limits);
  return image_model_in(JsonView(document, source));
}

ImageModel read_image_model(const std::filesystem::path& path) {
  const Json document = read_json_file(path, image_limits);
  return image_model_in(JsonView(document, path.string()));
}

ImageModel find_image_model(const std::string& name_or_path, const Library& library) {
  const std::filesystem::path folder = library.directory() / "image_models";
  const std::vector<std::string> names = file_stems(folder);
  const auto is_meant = [&](const std::string& name) { return comparable_name(name) == comparable_name(name_or_path); };
  for (const std::string& name : names) {
    ImageModel model = read_image_model(folder / (name + ".json"));
    if (is_meant(name) || std::any_of(model.aliases.begin(), model.aliases.end(), is_meant)) return model;
  }
  // With a slash it may also be a checkpoint that nobody knows.
  if (name_or_path.ends_with(".json") || std::filesystem::exists(name_or_path)) return read_image_model(name_or_path);
  throw InputError({.field = "model",
                    .value = name_or_path,
                    .expected = fmt::format("{} or a JSON file", fmt::join(names, ", ")),
                    .suggestion = nearest_name(name_or_path, names).value_or("")});
}

std::vector<ImageKernel> denoising_kernels(const ImageModel& model, const ImageSize& size, Scheme scheme) {
  const int64_t coarsest = model.unet ? int64_t{1} << (model.unet->channels.size() - 1) : model.transformer->patch;
  check_side("height", size.height, model.latent_side * coarsest);
  check_side("width", size.width, model.latent_side * coarsest);
  const int64_t height = size.height / model.latent_side, width = size.width / model.latent_side;
  const int64_t batch = size.images * model.guidance_passes;
  return model.unet ? unet_kernels(model, height, width, batch, scheme)
                    : transformer_kernels(model, height, width, batch, scheme);
}

std::vector<ImageKernel> decoding_kernels(const ImageModel& model, const ImageSize& size) {
  const ImageDecoder& net = model.decoder;
  KernelList list(size.images, Scheme::bf16);
  int64_t h = size.height / model.latent_side, w = size.width / model.latent_side, channels = net.channels.back();
  list.convolution("decoder", net.latent_channels, channels, h, w, 3);
  list.residual_block(channels, channels, h, w);
  list.linear("decoder", h * w, 4 * channels, channels);
  list.attention("decoder", 1, channels, h * w, h * w);
  list.residual_block(channels, channels, h, w);
  for (size_t level = net.channels.size(); level-- > 0;) {
    for (int64_t i = 0; i < net.residual_blocks; ++i) {
      list.residual_block(channels, net.channels[level], h, w);
      channels = net.channels[level];
    }
    if (level == 0) break;
    h *= 2, w *= 2;
    list.enlarge(channels, h, w);
    list.convolution("decoder", channels, channels, h, w, 3);
  }
  list.group_norm(h * w, channels);
  list.convolution("decoder", channels, 3, h, w, 3);
  std::vector<ImageKernel> kernels = list.take();
  for (ImageKernel& kernel : kernels) kernel.name = "decoder";
  return kernels;
}

namespace {

double weights_of(const std::vector<ImageKernel>& kernels) {
  double sum = 0;
  for (const ImageKernel& kernel : kernels) {
    const auto count = static_cast<double>(kernel.count);
    if (const auto* gemm = std::get_if<GemmShape>(&kernel.shape)) {
      sum += count * static_cast<double>(gemm->n) * static_cast<double>(gemm->k);
    }
  }
  return sum;
}

ImageSize smallest_picture(const ImageModel& model) {
  const int64_t side =
      model.latent_side * (model.unet ? int64_t{1} << (model.unet->channels.size() - 1) : model.transformer->patch);
  return {.height = side, .width = side};
}

}  // namespace

// Each matrix is counted where a step uses it; guidance uses the same ones twice.
double denoiser_parameters(const ImageModel& model) {
  return weights_of(denoising_kernels(model, smallest_picture(model), Scheme::bf16));
}

double decoder_parameters(const ImageModel& model) {
  return weights_of(decoding_kernels(model, smallest_picture(model)));
}

}  // namespace foretoken
