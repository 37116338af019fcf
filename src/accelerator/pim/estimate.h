// One program on the DPUs of a machine: time of its kernel and of the transfers around it.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "accelerator/pim/device.h"
#include "base/estimate.h"

namespace foretoken {

enum class PimPhase { to_dpus, from_dpus, between_dpus };

struct PimTransfer {
  PimPhase phase = PimPhase::to_dpus;
  PimTransferKind kind = PimTransferKind::to_dpus;
  Bytes bytes;       // on all DPUs together
  double calls = 1;  // of the host's library
};

struct PimKernel {
  int64_t dpus = 1;
  int64_t tasklets = 16;        // threads of each DPU
  double elements_per_dpu = 0;  // of the DPU with the most
  double instructions_per_element = 0;
  Bytes read_per_element;  // from the DPU's memory
  Bytes written_per_element;
  Bytes block = Bytes(1024);    // that one DMA transfer moves; also what a thread takes at a time
  Bytes resident_per_dpu;       // must fit the DPU's memory
  Seconds setup;                // launches, and work that does not grow
  double relative_error = 0.5;  // half-width of the kernel's 90% interval
  Confidence confidence = Confidence::extrapolated;
  bool is_outside = false;         // of the runs that relative_error was found in
  bool dpus_are_measured = false;  // on as many, what its transfers take was fitted to runs like it
  std::vector<PimTransfer> transfers;
};

// Estimates in seconds.
struct PimEstimate {
  Estimate kernel, to_dpus, from_dpus, between_dpus;
  double pipeline_cycles = 0;  // the kernel's, were its memory infinitely fast
  double dma_cycles = 0;       // the kernel's, were its instructions free

  bool memory_bound() const { return dma_cycles > pipeline_cycles; }
  Estimate total() const;
};

// Whether the machine has the DPUs, threads and memory that the kernel asks for.
bool pim_kernel_fits(const PimDevice& device, const PimKernel& kernel);

// A DPU starts one instruction a cycle, and one thread only every cycles_per_tasklet of them: fewer threads leave
// cycles idle, and so does a last block that only some threads have. DMA transfers of all threads share one engine and
// overlap with instructions: the kernel takes the longer of both (Gomez-Luna et al., IEEE Access 10, 2022, section 3).
// InputError for a kernel that does not fit, or whose numbers make no sense.
PimEstimate estimate_pim(const PimDevice& device, const PimKernel& kernel);

}  // namespace foretoken
