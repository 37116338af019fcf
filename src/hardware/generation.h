// GPU generations whose kernels are known: which instruction sets belong to one, and what engines and libraries run
// there. The only place that reads instruction sets; everybody else asks for a property by its name.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/estimate.h"
#include "base/units.h"
#include "hardware/device.h"

namespace foretoken {

// Which attention kernels vLLM and TensorRT-LLM run.
enum class AttentionKernels {
  flash_2,    // FlashAttention 2; FlashInfer for an fp8 cache
  flash_3,    // FlashAttention 3, and TensorRT-LLM's with warps of their own for copies
  generated,  // TensorRT-LLM's generated kernels; FlashAttention 4 for encoders
};

// Which kernels run routed experts whose weights are not weight-only.
enum class ExpertKernels { triton, cutlass, generated };

// Which of vLLM's dispatch tables picks the tile of its CUTLASS kernels (scaled_mm_sm*_fp8_dispatch.cuh).
enum class CutlassTiles { none, ada, hopper, blackwell, graphics_blackwell };

// Which tile cuBLAS 12.1 takes for strided batches in fp32, read off its kernels' names.
enum class BatchedFp32Tile { chosen_by_shape, maxwell_128x64, ampere_128x128 };

// Compute capabilities x 10 of NVIDIA's GPUs, by the first generation with them: what its software asks for.
inline constexpr int volta_capability = 70, turing_capability = 75, ampere_capability = 80, hopper_capability = 90,
                     blackwell_capability = 100, thor_capability = 110;

struct GpuGeneration {
  std::string_view title;            // Hopper
  std::string_view key;              // in calibrations: generations with the same one run the same kernels
  std::string_view instruction_set;  // sm_90
  bool amd = false;                  // a CDNA GPU
  int cuda_capability = 0;           // compute capability x 10; 0 = not NVIDIA's, or not known
  int multiplies_per_clock = 0;      // 16-bit FLOPs of a processor's tensor cores on boards at the full rate

  // What a device file may say itself (data/hardware/README.md); these hold where it is silent.
  MemoryType usual_memory = MemoryType::gddr6;
  bool asynchronous_multiplies = false;  // warp-group multiplies fed by the bulk copy engine
  int exponentials_per_clock = 16;       // exp() results of a processor: four 4-wide units
  int64_t vllm_graph_limit = 512;        // largest batch that vLLM captures as a CUDA graph

  AttentionKernels attention = AttentionKernels::flash_2;
  ExpertKernels experts = ExpertKernels::triton;
  CutlassTiles cutlass_tiles = CutlassTiles::none;
  BatchedFp32Tile batched_fp32_tile = BatchedFp32Tile::chosen_by_shape;
  bool multiplies_in_pairs = false;        // two processors share one 256x256 tile
  bool weight_only_kernels = false;        // Marlin: narrow weights multiplied in 16 bits
  bool widens_latent_projections = false;  // TensorRT-LLM widens fp8 weights of MLA projections at load
  bool convolves_in_cuda = false;          // SGLang's causal convolution, in every recurrence that was measured there
  bool fuses_kda = false;                  // Kimi's delta attention in one kernel, also without asynchronous multiplies
  bool reduces_in_switch = false;          // NVSwitch systems reduce and multicast in the switch (NVLS)
  double relative_multiply_energy = 1;     // against Pascal (16 nm) to Ampere (7 nm), which came out alike
  Bytes matrix_workspace = Bytes(32 * mebi);  // PyTorch's for cuBLAS (aten/cuda/CublasHandlePool.cpp)
  // Device memory in GiB beside PyTorch's in published profile runs of vLLM 0.18 to 0.22 on one GPU (H100 0.24 to 0.27
  // over 19 models, 0.46 for one family; A100 0.25 and 0.3; V100 0.14; an unnamed 48 GB card 0.92). A GPU of another
  // kind gets the mean of these four. (github.com/llm-d-incubation/llm-d-planner, accuracy report; start-up logs.)
  Estimate runtime_gib{.value = 0.40, .low = 0.12, .high = 0.95, .kind = Confidence::extrapolated};
};

// Stands for hardware without a known generation: TPUs, CPUs, GPUs whose file names no instruction set.
inline constexpr GpuGeneration no_generation{};

std::span<const GpuGeneration> gpu_generations();
const GpuGeneration* find_generation(std::string_view instruction_set);  // null = not known
std::vector<std::string> known_instruction_sets();

// That of an NVIDIA GPU by its compute capability: 9.0 -> sm_90.
std::string cuda_instruction_set(std::string_view compute_capability);

// Whose kernels run on the device: its own generation, or that of the device it is declared to be like.
const GpuGeneration& kernel_generation(const Device& device);

// Devices with the same name run the same kernels: they are fitted and withheld together. For hardware without a known
// generation, its instruction set or architecture.
std::string generation_of(const Device& device);

// What the device's file says, else what is usual for its generation.
bool has_stacked_memory(const Device& device);
bool has_asynchronous_multiplies(const Device& device);
int exponentials_per_clock(const Device& device);
int64_t vllm_graph_limit(const Device& device);

}  // namespace foretoken
