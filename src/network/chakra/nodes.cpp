#include "network/chakra/nodes.h"

#include <cmath>

namespace foretoken {

void set_duration(ChakraNode& node, double seconds) {
  const double microseconds = seconds * 1e6;
  node.duration_micros = static_cast<uint64_t>(std::llround(microseconds));
  node.attributes.push_back(chakra_number(std::string(fine_duration_attribute), microseconds));
}

void set_message(ChakraNode& node, const ChakraMessage& message) {
  node.attributes.push_back(chakra_boolean("is_cpu_op", false));
  node.attributes.push_back(chakra_unsigned("comm_size", static_cast<uint64_t>(std::llround(message.bytes))));
  node.attributes.push_back(chakra_unsigned("comm_src", static_cast<uint64_t>(message.from)));
  node.attributes.push_back(chakra_unsigned("comm_dst", static_cast<uint64_t>(message.to)));
  node.attributes.push_back(chakra_unsigned("comm_tag", static_cast<uint64_t>(message.tag)));
}

}  // namespace foretoken
