// Requests for an embedding or a score: a prompt, and nothing generated.
#pragma once

#include <memory>

#include "serving/requests/request.h"

namespace foretoken {

// The prompts of `inner`; each ends with its last prompt step, in which nothing is sampled.
std::unique_ptr<RequestSource> pooled_load(std::unique_ptr<RequestSource> inner);

}  // namespace foretoken
