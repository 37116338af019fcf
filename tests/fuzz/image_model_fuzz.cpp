// A file that describes a diffusion model: what reads has kernels, or its size is refused.
#include "compose/diffusion/image_model.h"
#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace foretoken;
  read_or_refuse([&] {
    const ImageModel model = parse_image_model(as_text(data, size), "input");
    promise(!denoising_kernels(model, {}, Scheme::bf16).empty(), "a step has kernels");
    promise(!decoding_kernels(model, {}).empty(), "a decoder has kernels");
  });
  return 0;
}
