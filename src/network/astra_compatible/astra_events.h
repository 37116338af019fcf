// Several chunks at once on congested links: no formula, so every message is an event.
#pragma once

#include <cstdint>
#include <span>

#include "model/shapes.h"
#include "network/astra_compatible/astra_dimension.h"
#include "network/astra_compatible/astra_phase.h"

namespace foretoken {

// Ring collectives of `chunks` on one dimension, up to `active` of them at a time. All NPUs do the same at the same
// time, so that one NPU's links stand for all. A link takes messages in the order in which they come; it is free again
// after the bytes, and the message is there a latency later.
int64_t astra_ring_nanoseconds(CollectiveKind kind, const AstraDimension& dimension, std::span<const int64_t> chunks,
                               int64_t active, const AstraEndpoint& endpoint);

}  // namespace foretoken
