// Requests for many adapters of one model.
#pragma once

#include <cstdint>
#include <memory>

#include "serving/requests/request.h"

namespace foretoken {

struct AdapterMix {
  int64_t adapters = 1;
  double zipf_exponent = 0;  // 0 = all equally popular
  double share = 1;          // of requests that ask for an adapter at all
};

// Gives the requests of `inner` an adapter each, drawn. All turns of a conversation have the same.
std::unique_ptr<RequestSource> with_adapters(std::unique_ptr<RequestSource> inner, const AdapterMix& mix,
                                             uint64_t seed);

}  // namespace foretoken
