// A systolic array as SCALE-Sim describes it, and the layers it runs: a GEMM, or a convolution unrolled into one.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "accelerator/problem.h"

namespace foretoken {

// What stays in the array while the other operand streams through it.
enum class Dataflow { output_stationary, weight_stationary, input_stationary };

inline constexpr std::array dataflows = {Dataflow::output_stationary, Dataflow::weight_stationary,
                                         Dataflow::input_stationary};

std::string_view dataflow_name(Dataflow dataflow);  // os, ws, is
std::optional<Dataflow> find_dataflow(std::string_view name);

// Words per cycle between one SRAM and DRAM.
struct DramWordsPerCycle {
  int64_t inputs = 10;
  int64_t weights = 10;
  int64_t outputs = 10;
};

struct SystolicArray {
  int64_t rows = 32;
  int64_t columns = 32;
  Dataflow dataflow = Dataflow::output_stationary;
  int64_t input_sram_bytes = 64 * 1024;
  int64_t weight_sram_bytes = 64 * 1024;
  int64_t output_sram_bytes = 64 * 1024;
  int64_t word_bytes = 1;
  std::optional<DramWordsPerCycle> dram;  // without: reads never stall, and the bandwidth they needed is reported
};

// A convolution without padding; a GEMM is one whose filter spans a whole row of the input.
struct SystolicLayer {
  int64_t input_height = 1;
  int64_t input_width = 1;
  int64_t filter_height = 1;
  int64_t filter_width = 1;
  int64_t channels = 1;
  int64_t filters = 1;
  int64_t stride_height = 1;
  int64_t stride_width = 1;

  // ceil((input - filter + stride) / stride): SCALE-Sim rounds up, so the last window may reach past the input.
  int64_t output_height() const;
  int64_t output_width() const;
  GemmSize gemm() const;
};

// InputError for a batch above 1: its products run one after the other, so multiply instead.
void check_single_gemm(const GemmSize& gemm);

SystolicLayer as_layer(const GemmSize& gemm);

// Ceiling of a / b for a >= 0, b > 0.
constexpr int64_t ceil_quotient(int64_t a, int64_t b) {
  return a / b + (a % b != 0 ? 1 : 0);
}

// InputError when a size is below 1, a filter is larger than its input, or the MACs do not fit in 2^53.
void check_layer(const SystolicLayer& layer);
void check_array(const SystolicArray& array);

}  // namespace foretoken
