#include "hardware/generation.h"

#include <algorithm>

namespace foretoken {
namespace {

// From Hopper on 32 MiB, before it 2 x 4 MiB + 8 x 16 KiB.
constexpr Bytes small_matrix_workspace(8 * mebi + 128 * kibi);
// Ada and Blackwell are made in TSMC 4N: not measured, taken as somewhat better than half.
constexpr double energy_of_4n = 0.45;
// An H200 draws 677 W, 120 of them idle, at 51 TFLOP/s and its full clock.
constexpr double energy_of_hopper = 0.8;

constexpr GpuGeneration pascal{.title = "Pascal",
                               .key = "sm_60",
                               .instruction_set = "sm_60",
                               .cuda_capability = 60,
                               .usual_memory = MemoryType::hbm2,
                               .batched_fp32_tile = BatchedFp32Tile::maxwell_128x64,
                               .matrix_workspace = small_matrix_workspace};

constexpr GpuGeneration graphics_pascal{.title = "Pascal (graphics)",
                                        .key = "sm_61",
                                        .instruction_set = "sm_61",
                                        .cuda_capability = 61,
                                        .usual_memory = MemoryType::gddr5,
                                        .batched_fp32_tile = BatchedFp32Tile::maxwell_128x64,
                                        .matrix_workspace = small_matrix_workspace};

constexpr GpuGeneration volta{.title = "Volta",
                              .key = "sm_70",
                              .instruction_set = "sm_70",
                              .cuda_capability = volta_capability,
                              .multiplies_per_clock = 1024,
                              .usual_memory = MemoryType::hbm2,
                              .matrix_workspace = small_matrix_workspace};

constexpr GpuGeneration turing{.title = "Turing",
                               .key = "sm_75",
                               .instruction_set = "sm_75",
                               .cuda_capability = turing_capability,
                               .multiplies_per_clock = 1024,
                               .matrix_workspace = small_matrix_workspace};

constexpr GpuGeneration ampere{
    .title = "Ampere",
    .key = "sm_80",
    .instruction_set = "sm_80",
    .cuda_capability = ampere_capability,
    .multiplies_per_clock = 2048,
    .usual_memory = MemoryType::hbm2e,
    .batched_fp32_tile = BatchedFp32Tile::ampere_128x128,
    .weight_only_kernels = true,
    .convolves_in_cuda = true,
    .matrix_workspace = small_matrix_workspace,
    .runtime_gib = {.value = 0.28, .low = 0.13, .high = 0.46, .kind = Confidence::interpolated}};

constexpr GpuGeneration graphics_ampere{.title = "Ampere (graphics)",
                                        .key = "sm_86",
                                        .instruction_set = "sm_86",
                                        .cuda_capability = 86,
                                        .multiplies_per_clock = 1024,
                                        .batched_fp32_tile = BatchedFp32Tile::ampere_128x128,
                                        .weight_only_kernels = true,
                                        .matrix_workspace = small_matrix_workspace};

constexpr GpuGeneration ada{.title = "Ada",
                            .key = "sm_89",
                            .instruction_set = "sm_89",
                            .cuda_capability = 89,
                            .multiplies_per_clock = 1024,
                            .cutlass_tiles = CutlassTiles::ada,
                            .batched_fp32_tile = BatchedFp32Tile::ampere_128x128,
                            .weight_only_kernels = true,
                            .relative_multiply_energy = energy_of_4n,
                            .matrix_workspace = small_matrix_workspace};

constexpr GpuGeneration hopper{.title = "Hopper",
                               .key = "sm_90",
                               .instruction_set = "sm_90",
                               .cuda_capability = hopper_capability,
                               .multiplies_per_clock = 4096,
                               .usual_memory = MemoryType::hbm3,
                               .asynchronous_multiplies = true,
                               .attention = AttentionKernels::flash_3,
                               .cutlass_tiles = CutlassTiles::hopper,
                               .batched_fp32_tile = BatchedFp32Tile::ampere_128x128,
                               .weight_only_kernels = true,
                               .reduces_in_switch = true,
                               .relative_multiply_energy = energy_of_hopper,
                               .runtime_gib = {.value = 0.25, .low = 0.13, .high = 0.46, .kind = Confidence::measured}};

constexpr GpuGeneration blackwell{.title = "Blackwell",
                                  .key = "sm_100",
                                  .instruction_set = "sm_100",
                                  .cuda_capability = blackwell_capability,
                                  .multiplies_per_clock = 8192,
                                  .usual_memory = MemoryType::hbm3e,
                                  .asynchronous_multiplies = true,
                                  .vllm_graph_limit = 1024,
                                  .attention = AttentionKernels::generated,
                                  .experts = ExpertKernels::generated,
                                  .cutlass_tiles = CutlassTiles::blackwell,
                                  .batched_fp32_tile = BatchedFp32Tile::ampere_128x128,
                                  .multiplies_in_pairs = true,
                                  .weight_only_kernels = true,
                                  .widens_latent_projections = true,
                                  .reduces_in_switch = true,
                                  .relative_multiply_energy = energy_of_4n};

// The same kernels, and twice the exponentials.
constexpr GpuGeneration blackwell_ultra = [] {
  GpuGeneration ultra = blackwell;
  ultra.title = "Blackwell Ultra";
  ultra.instruction_set = "sm_103";
  ultra.cuda_capability = 103;
  ultra.exponentials_per_clock = 32;
  return ultra;
}();

constexpr GpuGeneration graphics_blackwell{.title = "Blackwell (graphics)",
                                           .key = "sm_120",
                                           .instruction_set = "sm_120",
                                           .cuda_capability = 120,
                                           .multiplies_per_clock = 1024,
                                           .usual_memory = MemoryType::gddr7,
                                           .experts = ExpertKernels::cutlass,
                                           .cutlass_tiles = CutlassTiles::graphics_blackwell,
                                           .batched_fp32_tile = BatchedFp32Tile::ampere_128x128,
                                           .weight_only_kernels = true,
                                           .fuses_kda = true,
                                           .relative_multiply_energy = energy_of_4n};

// GB10 (DGX Spark): the same instructions beside LPDDR.
constexpr GpuGeneration spark = [] {
  GpuGeneration own = graphics_blackwell;
  own.title = "Blackwell (GB10)";
  own.instruction_set = "sm_121";
  own.cuda_capability = 121;
  own.usual_memory = MemoryType::lpddr5x;
  return own;
}();

constexpr GpuGeneration cdna(std::string_view title, std::string_view instruction_set, MemoryType memory) {
  return {
      .title = title, .key = instruction_set, .instruction_set = instruction_set, .amd = true, .usual_memory = memory};
}

// Add your generation here: its facts above, its line below.
constexpr GpuGeneration generations[] = {
    pascal,
    graphics_pascal,
    volta,
    turing,
    ampere,
    graphics_ampere,
    ada,
    hopper,
    blackwell,
    blackwell_ultra,
    graphics_blackwell,
    spark,
    cdna("CDNA", "gfx908", MemoryType::hbm2),
    cdna("CDNA2", "gfx90a", MemoryType::hbm2e),
    cdna("CDNA3", "gfx942", MemoryType::hbm3),
    cdna("CDNA4", "gfx950", MemoryType::hbm3e),
};

}  // namespace

std::span<const GpuGeneration> gpu_generations() {
  return generations;
}

const GpuGeneration* find_generation(std::string_view instruction_set) {
  const auto found = std::find_if(std::begin(generations), std::end(generations),
                                  [&](const GpuGeneration& one) { return one.instruction_set == instruction_set; });
  return found == std::end(generations) ? nullptr : found;
}

std::vector<std::string> known_instruction_sets() {
  std::vector<std::string> names;
  for (const GpuGeneration& one : generations) names.emplace_back(one.instruction_set);
  return names;
}

std::string cuda_instruction_set(std::string_view compute_capability) {
  std::string name = "sm_";
  for (const char c : compute_capability) {
    if (c != '.') name += c;
  }
  return name;
}

const GpuGeneration& kernel_generation(const Device& device) {
  if (device.kind != DeviceKind::gpu) return no_generation;
  const GpuGeneration* found = find_generation(device.like ? device.like->instruction_set : device.instruction_set);
  return found != nullptr ? *found : no_generation;
}

std::string generation_of(const Device& device) {
  const GpuGeneration& generation = kernel_generation(device);
  if (!generation.key.empty()) return std::string(generation.key);
  return device.instruction_set.empty() ? device.architecture : device.instruction_set;
}

bool has_stacked_memory(const Device& device) {
  return is_stacked(device.memory_type ? device.memory_type->value : kernel_generation(device).usual_memory);
}

bool has_asynchronous_multiplies(const Device& device) {
  if (device.asynchronous_multiplies) return device.asynchronous_multiplies->value;
  return kernel_generation(device).asynchronous_multiplies;
}

int exponentials_per_clock(const Device& device) {
  return device.exponentials_per_clock ? device.exponentials_per_clock->value
                                       : kernel_generation(device).exponentials_per_clock;
}

int64_t vllm_graph_limit(const Device& device) {
  return device.vllm_graph_limit ? device.vllm_graph_limit->value : kernel_generation(device).vllm_graph_limit;
}

}  // namespace foretoken
