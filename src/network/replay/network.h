// The network as a replay sees it: calls begin, and it says when they end.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "base/simulated_time.h"
#include "base/units.h"
#include "model/shapes.h"
#include "network/flow/flow_simulator.h"

namespace foretoken {

struct NetworkCall {
  CollectiveKind kind = CollectiveKind::all_reduce;
  double bytes = 0;                // as in CollectiveShape
  std::span<const int32_t> ranks;  // of the group, in its order; send_recv: sender and receiver
  int64_t root = 0;                // place in `ranks` of the one that has or gets the data, as in CollectiveRequest
  int8_t kernel = -1;              // an engine's own all-reduce, by its place in engine_kernels; -1 = the library's
};

class ReplayNetwork {
 public:
  virtual ~ReplayNetwork() = default;

  // `number` is the caller's name for the call; `at` must not lie before now().
  virtual void start(uint32_t number, const NetworkCall& call, Picoseconds at) = 0;

  // Moves on to the next moment at which calls end, and returns their numbers in the order they were started; or to
  // `limit` if none ends up to then, and returns nothing. Time stays where no call is left and there is no limit
  // (end_of_time). The span is good until the next call.
  virtual std::span<const uint32_t> advance(Picoseconds limit) = 0;

  virtual Picoseconds now() const = 0;

  // Every change of a link's rate so far, by time; where the network has links and was made to record them.
  virtual std::span<const LinkUse> link_use() const { return {}; }
};

// Every call takes the time it would take alone: calls do not disturb each other.
std::unique_ptr<ReplayNetwork> undisturbed_network(std::function<Seconds(const NetworkCall&)> seconds);

}  // namespace foretoken
