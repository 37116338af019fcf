// The rows of one measurement file, whatever its layout.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/csv.h"
#include "kernel/forms/form.h"
#include "kernel/measurement_files.h"
#include "model/catalogue.h"

namespace foretoken {

struct TableRow {
  KernelShape shape;
  std::string_view variant;  // of the kernel; empty = not known. Valid until the next row.
  int64_t copied = 0;        // elements of fp32 that the timed call copies first, in a kernel of their own
  double microseconds = 0;
  Caches caches = Caches::benchmark;  // cold: other layers ran between two calls
  bool tuned = false;  // the fastest of many trials: one that beats the multiply units was broken, and won
};

class MeasurementRows {
 public:
  virtual ~MeasurementRows() = default;
  virtual const CsvReader& csv() const = 0;
  virtual bool next() = 0;  // false at the end; InputError for a broken row
  // The current row, or nothing and the reason in `why` where it cannot be expressed. InputError for broken numbers.
  virtual std::optional<TableRow> read(std::string& why) = 0;
};

// `models` (may be null) gives the sizes of models that a file names.
std::unique_ptr<MeasurementRows> open_rows(const MeasurementFile& file, const ModelCatalogue* models);

}  // namespace foretoken
