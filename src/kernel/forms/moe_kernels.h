// What is known of the kernels behind an expert MLP, and how a router's load falls into their tiles.
#pragma once

#include <string_view>
#include <vector>

#include "kernel/forms/form.h"
#include "model/shapes.h"

namespace foretoken {

struct MoeKernel {
  std::string_view name;                 // what measurements and engines call it
  std::string_view family;               // variants with the same one share constants
  double launches = 10;                  // kernels of one call, in units of launch_cycles
  int least_rows = 16, most_rows = 256;  // of a tile
  int least_columns = 64, most_columns = 256;
  bool lone_tiles = false;        // a processor holds one tile at a time, so that nothing hides the waits of its steps
  bool touches_all_rows = false;  // element-wise stages visit every (token, expert) pair, also those of other ranks
  bool fuses_stages = false;      // gathers tokens while it loads them and activates while it stores
  bool needs_alignment = false;   // fetches piecemeal unless a rank's width of an expert is a multiple of 16 values
  bool receives =
      false;  // runs on the rank's own tokens, already sorted by expert: between its multiplies it activates
  // The measurement sends what a token should send to other ranks to the local experts instead: the experts in use are
  // those of one rank, the pairs up to top_k times as many.
  bool repeats_local_experts = false;
};

// The kernel of that name; an empty or unknown name gives what vLLM 0.24 would run.
const MoeKernel& moe_kernel(std::string_view name, const MoeShape& shape, const DeviceTraits& device);

// The kernel of engines for tokens that a dispatch brought (MoeShape::received): DeepGEMM where they have it, which
// does not walk the tokens of other ranks; else empty, as for any other call.
std::string_view kernel_of_received(const MoeShape& shape, const DeviceTraits& device);

// The names it knows.
std::vector<std::string_view> moe_kernel_names();

// Tokens of the active experts of a rank: a few equally likely sizes that stand for all of them.
struct ExpertGroups {
  static constexpr int most = 6;
  double active = 0;  // experts with at least one token
  double pairs = 0;   // tokens of all experts together
  int count = 1;
  double experts = 0;              // of each group
  double size[most] = {};          // tokens of one expert
  double busy = 0, busy_size = 0;  // experts beside the groups that get every token, and how many that is

  // Sum over experts of ceil(tokens / rows).
  double tiles(double rows) const;
};

ExpertGroups expert_groups(const MoeShape& shape, const MoeKernel& kernel);

}  // namespace foretoken
