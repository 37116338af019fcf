// One accelerator or CPU as its spec sheet describes it. Each number says where it came from; a number nobody published
// stays unknown, and whoever needs it must cope.
#pragma once

#include <array>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/number_format.h"
#include "base/units.h"

namespace foretoken {

// A number with its source.
template <class Value>
struct Fact {
  Value value{};
  std::string source;    // who says so
  bool assumed = false;  // not confirmed by a source: inherited from a sibling or inferred
  std::string note;      // why it looks odd beside the other numbers; silences the consistency check
};

template <class Value>
using MaybeFact = std::optional<Fact<Value>>;

enum class DeviceKind { gpu, tpu, npu, cpu };
inline constexpr std::string_view device_kind_names[] = {"gpu", "tpu", "npu", "cpu"};
std::string_view device_kind_name(DeviceKind kind);

enum class MemoryType {
  hbm2,
  hbm2e,
  hbm3,
  hbm3e,
  hbm4,
  gddr5,
  gddr5x,
  gddr6,
  gddr6x,
  gddr7,
  ddr4,
  ddr5,
  lpddr4x,
  lpddr5,
  lpddr5x
};
inline constexpr std::string_view memory_type_names[] = {"hbm2",  "hbm2e",  "hbm3",    "hbm3e",  "hbm4",
                                                         "gddr5", "gddr5x", "gddr6",   "gddr6x", "gddr7",
                                                         "ddr4",  "ddr5",   "lpddr4x", "lpddr5", "lpddr5x"};
std::string_view memory_type_name(MemoryType type);
bool is_stacked(MemoryType type);  // HBM

// How a GPU is cut into parts that run apart (NVIDIA's MIG): shares of its processors, and of its memory with the
// bandwidth.
struct MigProfile {
  std::string name;                // 3g
  int processors = 1, memory = 1;  // slices
};
struct MigSlices {
  int processors = 0, memory = 0;  // that the device is cut into
  std::vector<MigProfile> profiles;
  std::string source;
};

// The device whose kernels one of an unknown generation is taken to run.
struct LikeDevice {
  std::string name, title, instruction_set;
};

// Units beside the banks of a device's memory that run the attention of decodes where keys and values lie.
struct ComputingMemory {
  std::string design;   // as JSON: a design (accelerator/formats), or the name of one that ships
  bool beside = false;  // also while the device reads its memory for other sequences of the batch
  std::string source;
};

struct Device {
  std::string name;                  // what users type: h100_sxm
  std::string title;                 // NVIDIA H100 SXM5 80 GB
  std::vector<std::string> aliases;  // other spellings
  std::string vendor;
  std::string architecture;        // Hopper
  std::string instruction_set;     // sm_90, gfx942; empty if not known
  std::optional<LikeDevice> like;  // declared where the instruction set is not one that kernels are known for
  DeviceKind kind = DeviceKind::gpu;
  std::string note;
  // For hardware that is designed rather than bought: its design as JSON (accelerator/formats). Kernel times then come
  // from mappings onto it.
  std::string accelerator;
  std::optional<ComputingMemory> computing_memory;  // nothing = the device runs attention itself

  MaybeFact<int> processors;  // SMs, CUs, tensor cores of a TPU, CPU cores
  MaybeFact<int> fp32_lanes_per_processor;
  MaybeFact<Hertz> boost_clock;
  // Times the boost clock: what the board holds while its power allows, where that is not its sheet's; not given = 1.
  MaybeFact<double> held_clock_factor;
  // Tensor cores work beside the program, on data that a copy engine brings: Hopper's wgmma, Blackwell's tcgen05.
  MaybeFact<bool> asynchronous_multiplies;
  MaybeFact<int> exponentials_per_clock;  // exp() results of a processor
  MaybeFact<Bytes> last_level_cache;      // L2 on GPUs
  MaybeFact<Bytes> memory_side_cache;     // between that and DRAM: AMD's Infinity Cache
  MaybeFact<MemoryType> memory_type;
  MaybeFact<Bytes> memory;
  MaybeFact<Bytes> allocatable_memory;  // what the driver offers programs (cudaMemGetInfo's total), below the above
  // Set aside for error-correcting codes that lie in the same DRAM as the data (GDDR boards of data centres).
  MaybeFact<Bytes> inline_ecc_memory;
  MaybeFact<BytesPerSecond> memory_bandwidth;
  MaybeFact<Watts> power_limit;
  MaybeFact<BytesPerSecond> link_bandwidth;  // device to device (NVLink, xGMI, ICI), one direction, all links
  MaybeFact<BytesPerSecond> host_bandwidth;  // PCIe or C2C, one direction
  // How many times as long as on an x86 server the host takes for an engine's part of a step; not given = 1.
  MaybeFact<double> host_time_factor;
  MaybeFact<int> devices_per_module;  // that software sees in one package; not given = 1
  std::optional<MigSlices> mig;       // nothing = it cannot be cut
  // Where vLLM takes other limits on this device than on others with as much memory.
  MaybeFact<int> vllm_step_tokens, vllm_step_sequences, vllm_graph_limit;
  std::array<MaybeFact<FlopsPerSecond>, dtype_count> dense_peak;  // by DType; multiply-add counts two, no sparsity
  // By Scheme: the best rate of one large matrix multiply, where power or software hold it below the above.
  std::array<MaybeFact<FlopsPerSecond>, scheme_count> reached_peak;

  // Peak of a dtype; where the sheet gives none, of the type the software would compute in instead:
  //   fp4 -> fp8 -> bf16 -> fp16 -> fp32    dequantized to the narrowest float the multipliers take
  //   int4 -> int8 -> bf16 -> fp16 -> fp32
  //   bf16 -> fp16 -> fp32                  Volta and Turing have no bf16; engines switch to fp16 there
  //   fp16 -> bf16 -> fp32                  TPUs and Gaudi quote bf16
  //   tf32 -> fp32                          before Ampere
  //   fp32 on a TPU -> a sixth of bf16      six bf16 passes at highest precision (JAX documentation, jax.lax.Precision)
  //   any of these on a device that multiplies integers only -> int8 -> int4    converted on the way in
  // Nothing if none of these is known either.
  std::optional<FlopsPerSecond> peak_or_fallback(DType type) const;
  std::optional<DType> type_or_fallback(DType type) const;  // the type whose peak that is
  bool multiplies_integers_only() const;
};

}  // namespace foretoken
