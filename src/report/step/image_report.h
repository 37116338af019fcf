// A picture of a diffusion model, for people and for programs.
#pragma once

#include <string>

#include "base/json.h"
#include "compose/diffusion/image_estimate.h"
#include "hardware/device.h"

namespace foretoken {

struct ImageQuestion {
  ImageSetup setup;
  Scheme asked = Scheme::bf16;  // before run_image_on()
  Device device;
};

// "Out of memory: ..." where not even the denoiser and the decoder fit on the device; empty where they do.
std::string image_failure(const ImageQuestion& question, const ImageEstimate& estimate);

std::string image_text(const ImageQuestion& question, const ImageEstimate& estimate);
Json image_json(const ImageQuestion& question, const ImageEstimate& estimate);

}  // namespace foretoken
