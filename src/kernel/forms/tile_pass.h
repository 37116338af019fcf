// The time of a tiled attention pass over many queries (prefill, encoder, MLA prefill): tiles spread over processors,
// each walking key blocks through matrix multiplies and exponentials, against the memory traffic of the whole call.
#pragma once

#include <span>
#include <vector>

#include "kernel/forms/attention_variants.h"
#include "kernel/forms/form_math.h"

namespace foretoken {

namespace tile_pass {
enum Constant {
  floor_cycles,
  launch_cycles,
  tile_overhead,
  matmul_excess,
  fp8_excess,
  wide_excess,
  widening_excess,
  generic_excess,
  exponential_excess,
  overlap_power,
  imbalance,
  rounding,
  dram_slowdown,
  cache_rate,
  cache_share,
  join_power,
  write_row_cycles,
  write_rate,
  fp8_write_rate,
  cast_rate,
  constant_count,
};
}  // namespace tile_pass

std::span<const FormConstant> tile_pass_constants();

// Everything about one call that the formula needs.
struct TilePass {
  TileWalk walk;
  double problems = 1;       // (sequence, head) pairs, heads of a group counted once where they are packed
  double tile_rows = 64;     // query rows of one tile
  double tile_pairs = 4096;  // query-key pairs of one block: tile rows times key block
  double pair_flops = 512;   // of one query-key pair
  double head_dim = 128;
  Overlap overlap = Overlap::synchronous;
  DType math = DType::bf16;  // of the matrix multiplies
  bool widens_fp8 = false;   // fp8 cache, bf16 multiply
  double traffic = 0;        // bytes of Q, O, K, V
  double cold_bytes = 0;     // of those, what is certainly not in L2
  double write_rows = 0;     // new tokens written to the cache, a block each
  double write_bytes = 0;    // their K and V, read and written
  bool fp8_cache = false;
  double cast_bytes = 0;  // query quantized before the call
  double launches = 0;    // beside the one in the floor; negative for a bare call
  // Where the kernel is planned so that few tiles split their keys over the processors, and another kernel merges what
  // comes out: keys that a tile may see, at most, as the plan counts them (0 = it never splits), and rows to merge.
  double planned_keys = 0, merged_rows = 0;
  double kv_heads = 1;
};

struct TilePassTimes {
  double matmul = 0, exponential = 0;      // seconds per query-key pair on one processor
  double mean_tile = 0, longest_tile = 0;  // seconds
  double tile_count = 0, waves = 0;
  double key_parts = 1;  // that the keys of a tile are split into
  double balanced = 0;   // all tiles, evenly spread
  double tiles = 0;      // with rounding to waves and the longest tile at the end
  double dram_share = 0, memory = 0;
  double write = 0, merge = 0, floor = 0;
  double total = 0;
};

TilePassTimes tile_pass_times(const TilePass& pass, const DeviceTraits& device, std::span<const double> constants);

std::vector<Explained> explain_tile_pass(const TilePass& pass, const TilePassTimes& times, const DeviceTraits& device,
                                         std::span<const double> constants);

// Dimensionless features of a pass, for residual trees.
inline constexpr size_t tile_pass_feature_count = 16;
void tile_pass_features(const TilePass& pass, const TilePassTimes& times, double group, double q_len, double kv_len,
                        double window, std::span<float> out);

}  // namespace foretoken
