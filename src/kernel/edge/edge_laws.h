// How long a kernel takes on one core, as a sum of the things the core does one after the other: multiply tiles, copy
// windows into columns, pack, store, pass over the output once more. Each has an amount that follows from the sizes and
// never falls as they grow, and a price in nanoseconds that a sweep gives. So a larger kernel is never faster, whatever
// the prices are, and sizes beyond the sweep are priced like those within.
#pragma once

#include <span>
#include <string_view>

#include "kernel/edge/edge_kernel.h"

namespace foretoken {

// Facts of a core and of the runtime's multiply kernel that amounts depend on.
struct EdgeCore {
  double cache_bytes = 1 << 20;        // of the cache that one core has to itself (L2)
  double last_level_bytes = 32 << 20;  // of the cache before memory
  // Touched before a constant is read again: in a sweep its own bytes alone (0), in a model the constants of all.
  double touched_between = 0;
  int64_t tile_rows = 4;  // outputs that the inner loop holds in registers
  int64_t tile_columns = 16;
  int64_t depth_block = 256;  // products summed before partial results are stored; positions that share a filter
  bool operator==(const EdgeCore&) const = default;
};

// Elements touched, split into those served by the core's own cache and those beyond it: n c / (n + c) and
// n^2 / (n + c). Both grow with n, their sum is n, and the step at the capacity c is smooth.
struct CacheSplit {
  double near = 0, far = 0;
};
CacheSplit cache_split(double elements, double touched_bytes, const EdgeCore& core);
// Of those beyond the core's own cache, the share that comes from memory: with t bytes and a last level of l,
// t^2 / (t^2 + l^2), for a cache that is streamed through keeps next to nothing once it is too small.
double memory_share(double touched_bytes, const EdgeCore& core);

struct EdgePrice {
  std::string_view name;
  double start_ns;           // where a fit begins
  std::string_view reading;  // what one unit is
};

struct EdgeLaw {
  std::string_view name;
  std::span<const EdgePrice> prices;
  // One amount per price.
  void (*amounts)(const EdgeKernel& kernel, const EdgeCore& core, std::span<double> out);
};

// The most prices that a law has.
inline constexpr size_t most_edge_prices = 16;

const EdgeLaw& edge_law(EdgeKernelKind kind);

// Sum of amount times price.
double priced_seconds(std::span<const double> amounts, std::span<const double> prices_ns);

}  // namespace foretoken
