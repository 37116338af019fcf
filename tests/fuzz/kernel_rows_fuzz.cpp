// Any table of kernels is shapes whose work is a number, rows left out for a reason, or an InputError. The first byte
// chooses the family.
#include <cmath>
#include <string>

#include "base/csv.h"
#include "fuzz.h"
#include "kernel/family.h"
#include "model/work.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace foretoken;
  if (size == 0) return 0;
  const KernelFamily& family = kernel_families()[data[0] % kernel_families().size()];
  read_or_refuse([&] {
    CsvReader csv = CsvReader::from_text(std::string(as_text(data + 1, size - 1)), "input");
    KernelRowReader reader(family, csv);
    while (csv.next()) {
      std::string why;
      const auto shape = reader.read_if_expressible(csv, why);
      promise(shape.has_value() || !why.empty(), "a row is left out for a reason");
      if (!shape) continue;
      const Work work = count_work(*shape);
      promise(std::isfinite(work.flops.value()) && work.flops.value() >= 0, "work is a number");
      promise(std::isfinite(work.bytes().value()) && work.bytes().value() >= 0, "traffic is a number");
    }
  });
  return 0;
}
