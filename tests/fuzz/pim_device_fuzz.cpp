// Any bytes are either a machine whose transfers and kernels take time, or an InputError.
#include "accelerator/pim/device.h"
#include "base/error.h"
#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace foretoken;
  try {
    const PimDevice device = parse_pim_device(as_text(data, size), "input");
    promise(device.clock.value > Hertz(0), "a machine has a clock");
    for (const PimTransferLaw& law : device.transfers) {
      promise(law.seconds(7, Bytes(1), 1) > Seconds(0), "bytes take time");
    }
  } catch (const InputError& error) {
    promise(!error.problem().expected.empty(), "a complaint says what was expected");
  }
  return 0;
}
