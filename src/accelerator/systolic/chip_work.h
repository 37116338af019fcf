// A program on a chip with systolic arrays, a vector unit and fast memory, as TPU v3: what it asks for, and the cycles.
#pragma once

#include <cstdint>
#include <vector>

#include "accelerator/systolic/chip.h"

namespace foretoken {

// rows x depth times depth x columns, `repeats` times: heads of attention, places of a convolution's kernel.
struct ArrayProduct {
  int64_t rows = 1;
  int64_t depth = 1;
  int64_t columns = 1;
  double repeats = 1;
};

struct ChipWork {
  std::vector<ArrayProduct> products;
  double matrix_words = 0;  // between memory and chip, of the arrays' width; results kept on the chip do not count
  double vector_words = 0;  // the same, of the vector unit's width
  double transcendental_elements = 0;  // softmax, GELU
  double layernorm_elements = 0;
  double simple_operations = 0;  // additions, multiplications, comparisons of the vector unit
};

struct ChipCycles {
  double matrix = 0;
  double memory = 0;
  double vector = 0;
  double launch = 0;
  double total() const { return matrix + memory + vector + launch; }
};

// Weights stay in an array while rows stream by, one a cycle; loading the next weights, one row of cells a cycle, hides
// behind at least as many rows. Arrays share the columns of a product, so that one of up to `array_columns` uses a
// single array. The parts add up: measured programs of one operator show no overlap between them.
ChipCycles chip_cycles(const SystolicChip& chip, const ChipWork& work);

// Operators by themselves: operands come from memory, results go there.
ChipWork gemm_work(int64_t rows, int64_t depth, int64_t columns);
ChipWork softmax_work(int64_t rows, int64_t columns);
ChipWork layernorm_work(int64_t rows, int64_t columns);
ChipWork attention_work(int64_t heads, int64_t sequence, int64_t dimension);  // of one sequence, all keys

struct PaddedConvolution {
  int64_t batch = 1;
  int64_t height = 1;
  int64_t width = 1;
  int64_t input_channels = 1;
  int64_t output_channels = 1;
  int64_t kernel = 1;
  int64_t stride = 1;
  int64_t padding = 0;

  int64_t output_height() const { return (height + 2 * padding - kernel) / stride + 1; }
  int64_t output_width() const { return (width + 2 * padding - kernel) / stride + 1; }
};

// One product per place of the kernel, so that a place with few channels leaves cells without work.
ArrayProduct convolution_product(const PaddedConvolution& size);
ChipWork convolution_work(const PaddedConvolution& size);

}  // namespace foretoken
