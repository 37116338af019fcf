// Counts of expert traffic that its laws share.
#pragma once

#include <algorithm>

#include "base/portable_math.h"
#include "network/calibration/communication_call.h"

namespace foretoken {

// Of `places` equal ones, how many a token's top_k experts lie on: n (1 - (1 - 1/n)^k) for independent choices.
inline double places_reached(double places, double top_k) {
  return places * (1 - portable_pow(1 - 1 / places, top_k));
}

// Bytes that each device's network must carry: a token goes once to each other host it reaches.
inline double card_bytes(const CommunicationCall& call, double bytes_per_value) {
  const auto nodes = static_cast<double>(call.nodes);
  if (call.nodes <= 1) return 0;
  const double hosts = places_reached(nodes, static_cast<double>(call.expert.top_k)) * (nodes - 1) / nodes;
  return static_cast<double>(call.expert.tokens) * hosts * static_cast<double>(call.expert.hidden) * bytes_per_value;
}

// 400 Gbit/s for each device, where the sheet does not say.
inline double card_rate_or_usual(const SystemTraits& system) {
  return system.card_rate > 0 ? system.card_rate : 50e9;
}

}  // namespace foretoken
