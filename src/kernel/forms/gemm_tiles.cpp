#include "kernel/forms/gemm_tiles.h"

#include <bit>
#include <cstdint>

#include "kernel/forms/matmul_tile.h"

namespace foretoken {
namespace {

// First line whose limits hold wins.
struct Rule {
  int64_t most_rows;     // m
  int64_t most_columns;  // n, on Ada rounded up to a power of two
  MatmulTile tile;
};
constexpr int64_t any = INT64_MAX;

// vLLM 0.24, csrc/quantization/w8a8/cutlass: scaled_mm_sm*_fp8_dispatch.cuh.
constexpr Rule fp8_ada[] = {
    {16, 8192, {16, 64}},   {16, 16384, {16, 128}}, {16, any, {32, 64}},      {32, 8192, {32, 64}},
    {32, 16384, {32, 128}}, {32, any, {32, 64}},    {64, 8192, {64, 64}},     {64, 16384, {64, 128}},
    {64, any, {64, 64}},    {128, 8192, {64, 128}}, {128, 16384, {128, 128}}, {128, any, {128, 64}},
    {256, 4096, {64, 128}}, {256, any, {128, 128}}, {any, 4096, {128, 128}},  {any, 8192, {256, 128}},
    {any, any, {128, 128}},
};
constexpr Rule fp8_hopper[] = {
    {16, any, {16, 64}}, {64, 1280, {16, 64}}, {64, any, {64, 64}}, {128, any, {64, 128}}, {any, any, {128, 128}}};
// A pair of processors multiplies one tile there (KernelScheduleAuto with an even cluster, CUTLASS' sm100_common.inl):
// each has half of its rows, which are our columns where the operands are swapped (m <= 64).
constexpr Rule fp8_blackwell[] = {
    {16, any, {32, 64}}, {64, any, {64, 64}}, {256, any, {64, 128}}, {any, any, {128, 128}}};
constexpr Rule fp8_graphics_blackwell[] = {
    {16, any, {16, 64}}, {32, any, {32, 64}}, {256, any, {64, 64}}, {any, any, {128, 128}}};
constexpr MatmulTile nvfp4_graphics_blackwell = {128, 128};  // for any m: nvfp4_scaled_mm_sm120_kernels.cu

template <size_t count>
int first_match(const Rule (&rules)[count], int64_t m, int64_t n) {
  for (const Rule& rule : rules) {
    if (m <= rule.most_rows && n <= rule.most_columns) return matmul_tile_index(rule.tile);
  }
  return -1;
}

int cutlass_tile(const GemmShape& shape, CutlassTiles tiles) {
  const int64_t m = shape.m, n = shape.n;
  if (shape.scheme == Scheme::nvfp4) {
    return tiles == CutlassTiles::graphics_blackwell ? matmul_tile_index(nvfp4_graphics_blackwell) : -1;
  }
  if (shape.scheme != Scheme::fp8) return -1;
  switch (tiles) {
    case CutlassTiles::none:
      return -1;
    case CutlassTiles::ada:
      return first_match(fp8_ada, m, static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(n))));
    case CutlassTiles::hopper:
      return first_match(fp8_hopper, m, n);
    case CutlassTiles::blackwell:
      return first_match(fp8_blackwell, m, n);
    case CutlassTiles::graphics_blackwell:
      return first_match(fp8_graphics_blackwell, m, n);
  }
  return -1;
}

// Rows and columns of the library's name are our columns and rows. Volta and Turing choose.
int batched_fp32_tile(BatchedFp32Tile tile) {
  switch (tile) {
    case BatchedFp32Tile::chosen_by_shape:
      return -1;
    case BatchedFp32Tile::maxwell_128x64:
      return matmul_tile_index({64, 128});
    case BatchedFp32Tile::ampere_128x128:
      return matmul_tile_index({128, 128});
  }
  return -1;
}

struct VariantName {
  std::string_view name;
  GemmKernel kernel;
};
constexpr VariantName variant_names[] = {
    {"torch_linear", GemmKernel::cublas},
    {"cutlass_fp8", GemmKernel::cutlass},
    {"cutlass_nvfp4", GemmKernel::cutlass},
    {"cutedsl_nvfp4", GemmKernel::cutlass},
    {"trtllm", GemmKernel::trtllm},
    {"deepgemm", GemmKernel::trtllm},
    {"smoothquant", GemmKernel::trtllm},
    {"woq", GemmKernel::weight_only},
    {"scaled_mm_tensor", GemmKernel::cublaslt_scaled},
    {"scaled_mm_row", GemmKernel::cutlass_scaled},
};

}  // namespace

std::vector<std::string_view> gemm_variant_names() {
  std::vector<std::string_view> names;
  for (const VariantName& known : variant_names) names.push_back(known.name);
  return names;
}

GemmKernel gemm_kernel(std::string_view variant, Scheme scheme) {
  if (variant.ends_with(cold_suffix)) variant.remove_suffix(cold_suffix.size());
  for (const VariantName& known : variant_names) {
    if (known.name == variant) return known.kernel;
  }
  switch (scheme) {
    case Scheme::fp32:
    case Scheme::tf32:
    case Scheme::bf16:
    case Scheme::fp16:
      return GemmKernel::cublas;
    case Scheme::int8_wo:
    case Scheme::int4_wo:
    case Scheme::mxfp4_wo:
      return GemmKernel::weight_only;
    default:
      return GemmKernel::cutlass;
  }
}

GemmDispatch gemm_dispatch(GemmKernel kernel, const GemmShape& shape, const GpuGeneration& generation) {
  GemmDispatch dispatch;
  dispatch.largest_tile = generation.multiplies_in_pairs;
  dispatch.any_rows = shape.scheme == Scheme::nvfp4;
  dispatch.splits =
      kernel != GemmKernel::cutlass && kernel != GemmKernel::cutlass_scaled && shape.scheme != Scheme::nvfp4;
  dispatch.quantizes = kernel != GemmKernel::cublaslt_scaled && kernel != GemmKernel::cutlass_scaled;
  if (kernel == GemmKernel::cutlass) dispatch.tile = cutlass_tile(shape, generation.cutlass_tiles);
  // cuBLAS 12.1 runs nearly all strided batches of fp32 with one tile.
  if (shape.scheme == Scheme::fp32 && shape.batch > 1) {
    dispatch.splits = false;
    if (const int tile = batched_fp32_tile(generation.batched_fp32_tile); tile >= 0) dispatch.tile = tile;
  }
  return dispatch;
}

}  // namespace foretoken
