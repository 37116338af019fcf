// How long a picture takes: denoising steps and the decoder, kernel by kernel.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "base/estimate.h"
#include "compose/diffusion/image_model.h"
#include "kernel/kernel.h"
#include "kernel/power.h"

namespace foretoken {

struct ImagePart {
  std::string name;  // attention, feed-forward, convolutions, ..., decoder
  int64_t kernels = 0;
  Estimate seconds;  // of one step, or of the decoder
};

// Kernels that run back to back, as in a CUDA graph.
struct ImagePhase {
  Estimate burst_seconds;               // on a cool board
  std::optional<SustainedPower> power;  // held busy; nothing where the board's power is not known
  Estimate seconds;                     // held busy
  double flops = 0;
  double measured_share = 0, cross_share = 0;  // of the time, by kernels of this device and of others
  std::vector<ImagePart> parts;                // on a cool board, longest first
};

struct ImagePhaseMemory {
  double weights = 0, activations = 0;
};

// Bytes on the device. The text encoders may leave it before the first step; the rest must be there.
struct ImageMemory {
  ImagePhaseMemory step, decoder;
  double text_encoders = 0, context = 0;
  double weights() const { return step.weights + decoder.weights; }
  double activations() const { return std::max(step.activations, decoder.activations); }
  double without_text() const { return weights() + activations() + context; }
  double total() const { return without_text() + text_encoders; }
};

struct ImageEstimate {
  Estimate seconds;          // of all images, from latent noise to pixels
  ImagePhase step, decoder;  // all passes of a step; pixels of all images
  std::optional<Estimate> joules;
  ImageMemory memory;
};

struct ImageSetup {
  ImageModel model;
  ImageSize size;
  int64_t steps = 30;
  Scheme scheme = Scheme::bf16;  // as the device runs it: run_image_on()
};

// Weights that stay narrow and are multiplied in bf16 where the device does not multiply in their format.
// InputError, with the device's formats, where nobody runs them so.
Scheme run_image_on(Scheme scheme, const Device& device);

// Steps that take seconds together run at the clock that the board's power limit leaves. The time of text encoders is
// left out.
ImageEstimate estimate_image(const ImageSetup& setup, const KernelPredictor& predictor,
                             const std::optional<PowerModel>& power);

ImageMemory image_memory(const ImageSetup& setup, const Device& device);

}  // namespace foretoken
