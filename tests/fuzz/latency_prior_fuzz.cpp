// Any bytes are either a prior that answers for its space and reads back as it was written, or an InputError.
#include <cmath>
#include <string>

#include "fuzz.h"
#include "kernel/fewshot/latency_prior.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace foretoken;
  read_or_refuse([&] {
    const LatencyPrior prior = parse_latency_prior(as_text(data, size), "input");
    const PriorBasis basis(prior);
    for (const double logarithm : basis.project(prior.feature_means).centres) {
      promise(std::isfinite(logarithm), "a prior that was accepted knows the average architecture");
    }
    const std::string written = latency_prior_json(prior);
    promise(latency_prior_json(parse_latency_prior(written, "written")) == written,
            "a prior is the same after a second reading");
  });
  return 0;
}
