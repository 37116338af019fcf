#include "serving/lora/adapter_requests.h"

#include <utility>

#include "base/random.h"
#include "serving/load/drawn_fields.h"

namespace foretoken {

std::unique_ptr<RequestSource> with_adapters(std::unique_ptr<RequestSource> inner, const AdapterMix& mix,
                                             uint64_t seed) {
  return with_drawn_by_session(std::move(inner), seed, "adapters",
                               [popular = Zipf(static_cast<size_t>(mix.adapters), mix.zipf_exponent),
                                share = mix.share](Request& request, RandomStream& random) {
                                 const bool asks = random.uniform() < share;
                                 request.adapter = asks ? static_cast<int32_t>(popular.draw(random)) - 1 : -1;
                               });
}

}  // namespace foretoken
