// A picture of a diffusion model, for people and for programs.
#pragma once

#include <string>

#include "base/json.h"
#include "compose/diffusion/image_estimate.h"
#include "hardware/device.h"

namespace foretoken {

struct ImageQuestion {
  ImageModel model;
  ImageSize size;
  int64_t steps = 30;
  Scheme scheme = Scheme::bf16;
  Device device;
};

std::string image_text(const ImageQuestion& question, const ImageEstimate& estimate);
Json image_json(const ImageQuestion& question, const ImageEstimate& estimate);

}  // namespace foretoken
