// Any text is either limits whose keys mean the same limits, or an InputError.
#include "fuzz.h"
#include "plan/serving/latency_slo.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace foretoken;
  read_or_refuse([&] {
    for (const LatencySlo& slo : parse_slos(as_text(data, size), "slo")) {
      promise(slo.limit_ms > 0 && slo.percentile > 0 && slo.percentile <= 100, "a limit is one");
      const std::string key = slo_key(slo);
      promise(slo_key(parse_slos(key, "key").at(0)) == key, "a key reads back");
    }
  });
  return 0;
}
