// Which tile a linear layer's library picks, where its dispatch is public; else what to choose among.
#pragma once

#include <string_view>
#include <vector>

#include "kernel/forms/form.h"
#include "model/shapes.h"

namespace foretoken {

enum class GemmKernel {
  cublas,   // torch.nn.functional.linear
  cutlass,  // vLLM's CUTLASS kernels: a fixed tile by shape, no split of k
  trtllm,   // TensorRT-LLM: tuned per shape, so the best tile
  weight_only,
  cublaslt_scaled,  // torch._scaled_mm, a scale per tensor; x arrives in fp8: its quantization is another kernel
  cutlass_scaled,   // torch._scaled_mm, a scale per row and column: one tile per shape, no split of k; x arrives in fp8
};

// The kernel a variant name means ("torch_linear", "cutlass_fp8", "cutedsl_nvfp4", "trtllm", "woq", "smoothquant",
// "deepgemm", "scaled_mm_tensor", "scaled_mm_row"), timed with cold caches or not; an empty or unknown name: what vLLM
// runs for the scheme.
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
  bool largest_tile = false;  // 256x256 exists: pairs of processors
  bool quantizes = true;      // where the scheme's activations are quantized, this call does it
};

GemmDispatch gemm_dispatch(GemmKernel kernel, const GemmShape& shape, const GpuGeneration& generation);

}  // namespace foretoken
