#include "accelerator/systolic/chip_work.h"

#include <algorithm>

#include "accelerator/systolic/array.h"
#include "base/error.h"

namespace foretoken {
namespace {

double chip_number(int64_t value) {
  return static_cast<double>(value);
}

double product_cycles(const SystolicChip& chip, const ArrayProduct& product) {
  const int64_t depth_tiles = ceil_quotient(product.depth, chip.array_rows.value);
  const int64_t column_tiles = ceil_quotient(product.columns, chip.array_columns.value);
  const int64_t tiles_per_array = ceil_quotient(column_tiles, chip.arrays.value);
  const int64_t tile_cycles = std::max(product.rows, chip.array_rows.value);
  return product.repeats * chip_number(depth_tiles) * chip_number(tiles_per_array) * chip_number(tile_cycles);
}

}  // namespace

ChipCycles chip_cycles(const SystolicChip& chip, const ChipWork& work) {
  ensure(chip.vector.has_value(), "a chip that runs whole programs has a vector unit");
  const VectorUnit& vector = *chip.vector;
  ChipCycles cycles;
  for (const ArrayProduct& product : work.products) cycles.matrix += product_cycles(chip, product);
  const double bytes = work.matrix_words * chip.matrix_word_bytes.value + work.vector_words * vector.word_bytes.value;
  cycles.memory = bytes / chip.bytes_per_cycle();
  const double operations = work.transcendental_elements * vector.softmax_operations.value +
                            work.layernorm_elements * vector.layernorm_operations.value + work.simple_operations;
  cycles.vector = operations / vector.operations_per_cycle.value;
  cycles.launch = vector.launch_cycles.value;
  return cycles;
}

ChipWork gemm_work(int64_t rows, int64_t depth, int64_t columns) {
  return {.products = {{.rows = rows, .depth = depth, .columns = columns}},
          .matrix_words = chip_number(rows) * chip_number(depth) + chip_number(depth) * chip_number(columns) +
                          chip_number(rows) * chip_number(columns)};
}

ChipWork softmax_work(int64_t rows, int64_t columns) {
  const double elements = chip_number(rows) * chip_number(columns);
  return {.vector_words = 2 * elements, .transcendental_elements = elements};
}

ChipWork layernorm_work(int64_t rows, int64_t columns) {
  const double elements = chip_number(rows) * chip_number(columns);
  return {.vector_words = 2 * elements, .layernorm_elements = elements};
}

ChipWork attention_work(int64_t heads, int64_t sequence, int64_t dimension) {
  return {.products = {{.rows = sequence, .depth = dimension, .columns = sequence, .repeats = chip_number(heads)},
                       {.rows = sequence, .depth = sequence, .columns = dimension, .repeats = chip_number(heads)}},
          .matrix_words = 4 * chip_number(heads) * chip_number(sequence) * chip_number(dimension),
          .transcendental_elements = chip_number(heads) * chip_number(sequence) * chip_number(sequence)};
}

ArrayProduct convolution_product(const PaddedConvolution& size) {
  return {.rows = size.batch * size.output_height() * size.output_width(),
          .depth = size.input_channels,
          .columns = size.output_channels,
          .repeats = chip_number(size.kernel) * chip_number(size.kernel)};
}

ChipWork convolution_work(const PaddedConvolution& size) {
  const ArrayProduct product = convolution_product(size);
  const double inputs = chip_number(size.batch * size.height * size.width) * chip_number(size.input_channels);
  const double weights = product.repeats * chip_number(size.input_channels) * chip_number(size.output_channels);
  return {.products = {product},
          .matrix_words = inputs + weights + chip_number(product.rows) * chip_number(size.output_channels)};
}

}  // namespace foretoken
