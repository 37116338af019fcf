// The flags of diffusion language models.
#pragma once

#include <cstdint>

#include "app/cli/grammar/options.h"
#include "serving/speculation/block_diffusion.h"

namespace foretoken {

struct DiffusionFlags {
  BlockDiffusion diffusion;

  void declare(Options& options);
  bool given() const { return diffusion.block_tokens > 0; }
  // InputError where steps do not divide the block.
  BlockDiffusion read() const;
};

}  // namespace foretoken
