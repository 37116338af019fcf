// Any bytes are a calibrated deployment that can be written and read back, or an InputError.
#include <cmath>

#include "fuzz.h"
#include "library/deployment.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace foretoken;
  read_or_refuse([&] {
    const CalibratedDeployment deployment = parse_deployment(as_text(data, size), "deployment.json");
    for (size_t i = 0; i < deployment_constants; ++i) {
      promise(std::isfinite(deployment.others.mean[i]), "constants are numbers");
      promise(deployment.others.covariance[i][i] >= 0, "variances are not negative");
    }
    const std::string written = deployment_json(deployment).dump();
    promise(deployment_json(parse_deployment(written, "deployment.json")).dump() == written,
            "what is written reads back the same");
  });
  return 0;
}
