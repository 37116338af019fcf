// Tables of ASTRA-sim runs: one row per run, with the nanoseconds ASTRA-sim answered.
#pragma once

#include <string>

#include "base/csv.h"
#include "network/astra_compatible/astra_run.h"

namespace foretoken {

// Whether a table's columns are those of ASTRA-sim runs.
bool is_astra_table(const CsvReader& csv);

// What a user types for a run; the words are those of ASTRA-sim's own files, one per dimension with '_' between
// (dims: 'x').
struct AstraRunText {
  std::string topology;   // Ring_Switch
  std::string dims;       // 8x4
  std::string bandwidth;  // 400_50
  std::string latency;    // 936.25_1000
  std::string algorithm;  // ring_halvingDoubling
};

// InputError that names `source`, the part and the value.
std::vector<AstraDimension> parse_astra_dimensions(const AstraRunText& text, const std::string& source);

// Reads the run of the current row; never looks at the measured columns.
class AstraRowReader {
 public:
  explicit AstraRowReader(const CsvReader& csv);
  AstraRun read(const CsvReader& csv) const;
  int64_t measured_nanoseconds(const CsvReader& csv) const { return csv.integer(cycles_, {.least = 1}); }

 private:
  size_t topology_, dims_, bandwidth_, latency_, collective_, algorithm_, bytes_, chunking_, backend_, queues_,
      endpoint_, memory_, cycles_;
};

}  // namespace foretoken
