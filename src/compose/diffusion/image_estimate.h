// How long a picture takes: denoising steps and the decoder, kernel by kernel.
#pragma once

#include <string>
#include <vector>

#include "base/estimate.h"
#include "compose/diffusion/image_model.h"
#include "kernel/kernel.h"

namespace foretoken {

struct ImagePart {
  std::string name;  // attention, feed-forward, convolutions, ..., decoder
  int64_t kernels = 0;
  Estimate seconds;  // of one step, or of the decoder
};

struct ImageEstimate {
  Estimate seconds;         // of all images, from latent noise to pixels
  Estimate step_seconds;    // all passes of a step
  Estimate decode_seconds;  //
  double step_flops = 0;
  std::vector<ImagePart> parts;  // of a step, longest first; the decoder last
};

// Kernels back to back, as in a CUDA graph; text encoders are left out.
ImageEstimate estimate_image(const ImageModel& model, const ImageSize& size, int64_t steps, Scheme scheme,
                             const KernelPredictor& predictor);

}  // namespace foretoken
