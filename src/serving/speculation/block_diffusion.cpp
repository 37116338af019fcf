#include "serving/speculation/block_diffusion.h"

#include <vector>

#include "base/error.h"

namespace foretoken {

Speculation denoising(const BlockDiffusion& diffusion) {
  ensure(diffusion.steps >= 1 && diffusion.block_tokens % diffusion.steps == 0, "steps divide the block");
  if (diffusion.block_tokens == 0) return {};
  const int64_t settled = diffusion.block_tokens / diffusion.steps;
  return {.draft_tokens = settled - 1,
          .verified_tokens = diffusion.block_tokens - 1,
          .acceptance =
              Acceptance(std::vector<double>(static_cast<size_t>(settled - 1), 1.0), "steps of a diffusion block")};
}

}  // namespace foretoken
