// Diffusion language models that write block by block (LLaDA, arXiv 2502.09992, with the block-wise cache of Fast-dLLM,
// arXiv 2505.22618).
#pragma once

#include <cstdint>

#include "serving/speculation/speculation.h"

namespace foretoken {

struct BlockDiffusion {
  int64_t block_tokens = 0;  // denoised together; 0 = no diffusion
  int64_t steps = 1;         // of one block; divides it
};

// A step computes every token of the block over the cache of what stands before it, and block / steps of them are
// settled. To a scheduler that is a decode whose drafts are the rest of the block, of which so many always stand.
// Simplified: tokens settled earlier in the block are read from the cache rather than computed again, and the first
// token comes out of the prompt's step.
Speculation denoising(const BlockDiffusion& diffusion);

}  // namespace foretoken
