// What our own exports write into nodes.
#pragma once

#include <cstdint>

#include "network/chakra/chakra.h"

namespace foretoken {

// In whole microseconds as Chakra has it, and exactly beside them.
void set_duration(ChakraNode& node, double seconds);

struct ChakraMessage {
  double bytes = 0;
  int64_t from = 0, to = 0;  // ranks
  int64_t tag = 0;           // tells messages between the same two apart
};
// Of a send or receive node; sender and receiver say the same.
void set_message(ChakraNode& node, const ChakraMessage& message);

}  // namespace foretoken
