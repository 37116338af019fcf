#include "app/cli/flags/diffusion_flags.h"

#include <string>

#include "base/error.h"

namespace foretoken {

void DiffusionFlags::declare(Options& options) {
  options.heading("Diffusion language models");
  options.integer("--diffusion-block", diffusion.block_tokens, {.least = 0, .most = 65'536},
                  "Tokens denoised together; every denoising step processes the whole block. 0 = ordinary decoding, "
                  "one token at a time");
  options.integer("--diffusion-steps", diffusion.steps, {.least = 1, .most = 65'536},
                  "Denoising steps per block; must divide the tokens of the block");
}

BlockDiffusion DiffusionFlags::read() const {
  if (diffusion.block_tokens % diffusion.steps != 0) {
    throw InputError({.source = "--diffusion-steps",
                      .value = std::to_string(diffusion.steps),
                      .expected = "a divisor of --diffusion-block " + std::to_string(diffusion.block_tokens)});
  }
  return diffusion;
}

}  // namespace foretoken
