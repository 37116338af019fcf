// A chip built around systolic arrays: what a data file of data/accelerators/systolic says about it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "base/units.h"
#include "hardware/device.h"

namespace foretoken {

// The unit beside the arrays, for what is not a matrix product.
struct VectorUnit {
  Fact<double> operations_per_cycle;
  Fact<double> word_bytes;
  Fact<double> launch_cycles;         // of a whole program: its start and its end
  Fact<double> softmax_operations;    // per element; any other transcendental function counts the same
  Fact<double> layernorm_operations;  // per element
};

struct SystolicChip {
  std::string name;
  std::string title;
  Fact<int64_t> array_rows;
  Fact<int64_t> array_columns;
  Fact<int64_t> arrays;
  Fact<Hertz> clock;
  Fact<BytesPerSecond> memory_bandwidth;
  Fact<Bytes> on_chip_memory;
  Fact<double> matrix_word_bytes;
  MaybeFact<double> non_matrix_share;  // of all cycles, where the chip's counters give it
  std::optional<VectorUnit> vector;

  double bytes_per_cycle() const { return memory_bandwidth.value.value() / clock.value.value(); }
  FlopsPerSecond peak() const;  // a multiply-add counts two
};

SystolicChip read_systolic_chip(const std::filesystem::path& path);
SystolicChip parse_systolic_chip(std::string_view text, const std::string& source);

}  // namespace foretoken
