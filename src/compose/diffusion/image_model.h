// Models that draw pictures by denoising: the kernels of one denoising step, and of the decoder that makes pixels.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "library/library.h"
#include "model/shapes.h"

namespace foretoken {

// Two streams of tokens, picture and text, with weights of their own that attend to each other (joint layers), then
// layers in which both share the weights (single layers). SD3: P. Esser et al., "Scaling Rectified Flow Transformers
// for High-Resolution Image Synthesis", ICML 2024; the single layers are those of FLUX.1.
struct ImageTransformer {
  int64_t hidden = 1, heads = 1, joint_layers = 1, single_layers = 0;
  int64_t mlp_ratio = 4;  // width of the feed-forward block over the hidden size
  int64_t patch = 2;      // side of a token in the latent picture
  int64_t latent_channels = 16;
};

// Convolutions at falling resolution and back, with transformer layers in between that read the text. SDXL: D. Podell
// et al., "SDXL: Improving Latent Diffusion Models for High-Resolution Image Synthesis", ICLR 2024.
struct ImageUNet {
  std::vector<int64_t> channels;            // by level, finest first
  std::vector<int64_t> transformer_layers;  // behind each residual block of the level; 0 = none
  int64_t residual_blocks = 2;              // of a level on the way down; one more on the way up
  int64_t head_dim = 64, text_width = 2048, latent_channels = 4;
};

// Latent picture -> pixels, by convolutions at rising resolution.
struct ImageDecoder {
  std::vector<int64_t> channels;  // by level, finest first
  int64_t residual_blocks = 3, latent_channels = 4;
};

struct ImageModel {
  std::string name, title, source;
  std::vector<std::string> aliases;             // its checkpoint, and how people write it
  std::optional<ImageTransformer> transformer;  // either this
  std::optional<ImageUNet> unet;                // or this
  ImageDecoder decoder;
  int64_t latent_side = 8;      // pixels along the side of a latent point
  int64_t text_tokens = 77;     // that a step reads
  int64_t guidance_passes = 1;  // passes of a step: 2 with and without the prompt, 1 where guidance is distilled
  int64_t usual_steps = 30;
  double text_encoder_parameters = 0;
};

// InputError, with the path inside the file, for anything else.
ImageModel read_image_model(const std::filesystem::path& path);
ImageModel parse_image_model(std::string_view text, const std::string& source);

// A shipped one by its name, or a JSON file. InputError for unknown names.
ImageModel find_image_model(const std::string& name_or_path, const Library& library);

struct ImageSize {
  int64_t height = 1024, width = 1024, images = 1;
};

struct ImageKernel {
  std::string name;
  KernelShape shape;
  int64_t count = 1;
  int64_t neighborhood = 1;  // points that a convolution reads for each it writes: its inputs are stored once
};

// InputError where a side is no multiple of what a token or the coarsest level covers. `scheme` is that of linear
// layers and convolutions. Elementwise work is fused, as compilers do.
std::vector<ImageKernel> denoising_kernels(const ImageModel& model, const ImageSize& size, Scheme scheme);
std::vector<ImageKernel> decoding_kernels(const ImageModel& model, const ImageSize& size);

// Weights of the multiplies and convolutions of a step, and of the decoder.
double denoiser_parameters(const ImageModel& model);
double decoder_parameters(const ImageModel& model);

}  // namespace foretoken
