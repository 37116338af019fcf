// A chip that keeps rows stationary: an array of processing elements (PEs) with scratch pads, fed from one buffer by
// three input networks. Spec facts with sources lie in data/accelerators/chips/.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/units.h"

namespace foretoken {

struct RowStationaryChip {
  std::string name;
  std::string title;
  int64_t array_rows = 0;
  int64_t array_columns = 0;
  Bytes word;
  int64_t ifmap_spad_words = 0;
  int64_t filter_spad_words = 0;
  int64_t psum_spad_words = 0;
  // The global buffer: each bank holds input features or partial sums.
  int64_t buffer_banks = 0;
  int64_t buffer_bank_bytes = 0;
  int64_t filter_prefetch_bytes = 0;  // filters of the next pass, beside the banks
  // What the networks between buffer and array carry; the output network is as wide as the one for partial sums.
  double filter_words_per_cycle = 0;
  double ifmap_words_per_cycle = 0;
  double psum_words_per_cycle = 0;
  Hertz core_clock;
  BytesPerSecond link;  // to DRAM, both directions together
  Joules buffer_word_energy;
  Joules effective_mac_energy;  // of a MAC whose input is not zero, with its scratch pads and neighbour links
  Watts idle_power;             // clock network, control and leakage

  int64_t processing_elements() const { return array_rows * array_columns; }
};

// InputError naming the entry that is missing, out of bounds or without a source.
RowStationaryChip parse_row_stationary_chip(std::string_view text, const std::string& source);
RowStationaryChip read_row_stationary_chip(const std::filesystem::path& file);

// The chip of Y.-H. Chen et al., JSSC 52(1), 2017. `data`: the project's data folder.
RowStationaryChip eyeriss_v1(const std::filesystem::path& data);

}  // namespace foretoken
