// Chakra's collectives and sizes in our terms, and back.
#pragma once

#include <cstdint>
#include <optional>

#include "model/shapes.h"
#include "network/chakra/chakra.h"

namespace foretoken {

// Nothing for a number that no collective has.
std::optional<CollectiveKind> collective_kind(ChakraCollective collective);
// InternalError for send_recv, which Chakra has nodes of its own for.
ChakraCollective chakra_collective(CollectiveKind kind);

// `comm_size` is what one rank puts in; CollectiveShape counts the whole buffer. They differ by the number of ranks for
// an all-gather or gather.
double collective_bytes(CollectiveKind kind, double comm_size, int64_t ranks);
double chakra_comm_size(CollectiveKind kind, double bytes, int64_t ranks);

}  // namespace foretoken
