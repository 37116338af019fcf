// A layer on a systolic array with its SRAMs and DRAM, word by word: what SCALE-Sim v3 reports, in milliseconds.
#pragma once

#include <cstdint>

#include "accelerator/systolic/array.h"
#include "accelerator/systolic/compute.h"

namespace foretoken {

// Accesses in words. Cycles: the first and the last with an access; DRAM reads before cycle 0 fill the SRAM.
struct OperandTraffic {
  int64_t sram_words = 0;
  int64_t sram_first_cycle = 0;
  int64_t sram_last_cycle = 0;
  double sram_words_per_cycle = 0;
  int64_t dram_words = 0;
  int64_t dram_first_cycle = 0;
  int64_t dram_last_cycle = 0;
  double dram_words_per_cycle = 0;
};

struct SystolicResult {
  SystolicCompute compute;
  int64_t total_cycles = 0;  // compute and stalls
  int64_t stall_cycles = 0;
  int64_t physical_stall_cycles = 0;       // the same where every wait counts once (LateWords::physical)
  int64_t total_cycles_with_prefetch = 0;  // from the first word out of DRAM to the last one back
  double overall_utilisation = 0;          // of the cells over total_cycles
  OperandTraffic inputs;
  OperandTraffic weights;
  OperandTraffic outputs;
};

// More words of an operand, or cycles, are refused (systolic_compute gives cycles and SRAM accesses of any size).
inline constexpr int64_t largest_systolic_trace = int64_t{1} << 28;

// Whether simulate_systolic() would take a layer of this size.
bool systolic_trace_fits(const SystolicArray& array, const SystolicLayer& layer);

// InputError for sizes that are refused, an SRAM of less than 100 words, or a trace of too many words.
SystolicResult simulate_systolic(const SystolicArray& array, const SystolicLayer& layer);

}  // namespace foretoken
