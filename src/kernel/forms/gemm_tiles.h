// Which tile a linear layer's library picks, where its dispatch is public; else what to choose among.
#pragma once

#include <string_view>
#include <vector>

#include "model/shapes.h"

namespace foretoken {

enum class GemmKernel {
  cublas,   // torch.nn.functional.linear
  cutlass,  // vLLM's CUTLASS kernels: a fixed tile by shape, no split of k
  trtllm,   // TensorRT-LLM: tuned per shape, so the best tile
  weight_only,
};

// The kernel a variant name means ("torch_linear", "cutlass_fp8", "cutedsl_nvfp4", "trtllm", "woq", "smoothquant",
// "deepgemm"); an empty or unknown name: what vLLM runs for the scheme.
GemmKernel gemm_kernel(std::string_view variant, Scheme scheme);

// The names it knows.
std::vector<std::string_view> gemm_variant_names();

// Parts that k may be split into.
inline constexpr int gemm_splits[] = {1, 2, 3, 4, 6, 8, 16, 32};
inline constexpr int gemm_split_count = 8;

struct GemmDispatch {
  int tile = -1;              // of matmul_tiles; -1 = the fastest
  bool splits = false;        // k may be split
  bool any_rows = false;      // tiles far taller than m are in use too
  bool largest_tile = false;  // 256x256 exists (pairs of processors, sm_100)
};

GemmDispatch gemm_dispatch(GemmKernel kernel, const GemmShape& shape, int architecture);

}  // namespace foretoken
