// Pictures in prompts.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "serving/requests/request.h"

namespace foretoken {

struct ImageSettings {
  std::vector<ImageInput> sizes;  // what a picture may be, each equally likely; at least one
  int64_t per_request = 1;        // of those that have any
  double share = 1;               // of requests that do, 0 to 1
};

// The requests of `inner`, some with pictures: their tokens come on top of the prompt's, behind a prefix it shares.
std::unique_ptr<RequestSource> with_images(std::unique_ptr<RequestSource> inner, const ImageSettings& settings,
                                           uint64_t seed);

}  // namespace foretoken
