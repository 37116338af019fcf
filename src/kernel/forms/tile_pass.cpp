#include "kernel/forms/tile_pass.h"

namespace foretoken {
namespace {

constexpr FormConstant table[tile_pass::constant_count] = {
    {"floor_cycles", 13000, 2000, 60000, "clocks of an empty call, cache write included"},
    {"launch_cycles", 4400, 1000, 12000, "clocks of one more kernel in the graph"},
    {"tile_overhead", 2.2e-6, 0.1e-6, 12e-6, "seconds to start and finish a tile; latency, not clocks"},
    {"matmul_excess", 1.5, 1, 6, "matrix multiplies: time over time at the dense peak"},
    {"fp8_excess", 1.5, 0.8, 4, "more of that in fp8"},
    {"wide_excess", 1.7, 0.7, 5, "more of that where head_dim > 256"},
    {"widening_excess", 1.2, 0.7, 3, "more of that where an fp8 cache of head_dim > 128 is widened to bf16"},
    {"generic_excess", 4.3, 1, 12, "generic kernels: time over time at 1024 FLOP per clock and processor"},
    {"exponential_excess", 1, 0.3, 3, "exponentials: time over time at the special-function rate"},
    {"overlap_power", 2.5, 1.01, 8, "asynchronous kernels: how far multiplies and exponentials hide one another"},
    {"imbalance", 1.1, 0.05, 4, "share of the longest tile's surplus that shows at the end"},
    {"rounding", 0.75, 0.1, 1.2, "share of the partly filled last wave that is lost"},
    {"dram_slowdown", 1.17, 1, 1.6, "DRAM: time over time at the spec bandwidth"},
    {"cache_rate", 7, 1, 40, "bytes per clock and processor from L2"},
    {"cache_share", 1.35, 0.3, 4, "bytes, over the size of L2, of which half miss"},
    {"join_power", 1.85, 1, 6, "how far memory hides behind tiles"},
    {"write_row_cycles", 40, 1, 1000, "clocks a processor spends on a token of the cache write beside its bytes"},
    {"write_rate", 8, 1, 40, "bytes per clock and processor of the cache write, 16-bit cache"},
    {"fp8_write_rate", 3.5, 0.5, 40, "the same, fp8 cache"},
    {"cast_rate", 22, 2, 100, "bytes per clock and processor of the query cast to fp8"},
};

// FlashInfer's plan (PrefillBinarySearchKVChunkSize): the shortest parts of at least 128 keys with which the blocks of
// all kv heads are no more than two to a processor.
double planned_parts(const TilePass& pass, double processors) {
  constexpr double blocks_per_processor = 2, fewest_keys = 128;
  const double most_blocks = std::floor(blocks_per_processor * processors / pass.kv_heads);
  const double most_parts = std::floor(most_blocks / (pass.problems * pass.walk.tiles / pass.kv_heads));
  if (pass.planned_keys <= 0 || most_parts < 2) return 1;
  return std::ceil(pass.planned_keys / std::max(fewest_keys, std::ceil(pass.planned_keys / most_parts)));
}

// Clocks a processor spends on merging the parts of one row, a block at a time (VariableLengthMergeStates): L40S and
// RTX PRO 6000 give the same.
constexpr double merge_row_cycles = 1100;

}  // namespace

std::span<const FormConstant> tile_pass_constants() {
  return table;
}

TilePassTimes tile_pass_times(const TilePass& pass, const DeviceTraits& device, std::span<const double> c) {
  using namespace tile_pass;
  TilePassTimes t;
  const double clock = device.clock, processors = device.processors;
  if (pass.overlap == Overlap::generic) {
    t.matmul = pass.pair_flops / (1024 * clock) * c[generic_excess];
  } else {
    const double peak = device.peak[static_cast<size_t>(pass.math)];
    t.matmul = pass.pair_flops / (peak / processors) * c[matmul_excess];
    if (is_fp8(pass.math)) t.matmul *= c[fp8_excess];
    if (pass.widens_fp8 && pass.head_dim > 128) t.matmul *= c[widening_excess];
  }
  if (pass.head_dim > 256) t.matmul *= c[wide_excess];
  t.exponential = c[exponential_excess] / (device.exponentials_per_clock * clock);
  const double pair = pass.overlap == Overlap::asynchronous ? soft_maximum(t.matmul, t.exponential, c[overlap_power])
                                                            : t.matmul + t.exponential;
  t.key_parts = planned_parts(pass, processors);
  const double longest_walk =
      t.key_parts > 1 ? std::min(pass.walk.most_blocks,
                                 std::ceil(pass.planned_keys / t.key_parts / (pass.tile_pairs / pass.tile_rows)))
                      : pass.walk.most_blocks;
  t.mean_tile = pair * pass.tile_pairs * pass.walk.mean_blocks / t.key_parts + c[tile_overhead];
  t.longest_tile = pair * pass.tile_pairs * longest_walk + c[tile_overhead];
  t.tile_count = pass.problems * pass.walk.tiles * t.key_parts;
  t.waves = t.tile_count / processors;
  t.balanced = t.mean_tile * t.waves * (1 + c[rounding] * (std::ceil(t.waves) / t.waves - 1));
  // Tiles that all run at once end with the longest one. Beyond that, what it is longer than the others shows at the
  // end, but never more of it than there is work: tiles that become alike while the longest stays are not faster.
  const double surplus = std::min(c[imbalance], t.waves) * (t.longest_tile - t.mean_tile);
  t.tiles = std::max(t.longest_tile, t.balanced + surplus);

  const double dram_rate = device.bandwidth / c[dram_slowdown];
  t.dram_share = dram_share(pass.traffic, c[cache_share] * device.cache, 4);
  t.memory = pass.cold_bytes / dram_rate + mixed_memory_seconds(pass.traffic - pass.cold_bytes, t.dram_share, dram_rate,
                                                                c[cache_rate] * processors * clock);
  const double write_clocks =
      pass.write_rows * c[write_row_cycles] + pass.write_bytes / (pass.fp8_cache ? c[fp8_write_rate] : c[write_rate]);
  t.write = std::max(pass.write_bytes * t.dram_share / dram_rate, write_clocks / (processors * clock)) +
            pass.cast_bytes / (c[cast_rate] * processors * clock);
  if (t.key_parts > 1) t.merge = (c[launch_cycles] + pass.merged_rows * merge_row_cycles / processors) / clock;
  t.floor = floor_clocks(c[floor_cycles], c[launch_cycles], pass.launches + (pass.cast_bytes > 0 ? 0.5 : 0)) / clock;
  t.total = t.floor + soft_maximum(t.tiles, t.memory, c[join_power]) + t.write + t.merge;
  return t;
}

std::vector<Explained> explain_tile_pass(const TilePass& pass, const TilePassTimes& t, const DeviceTraits& device,
                                         std::span<const double> c) {
  using enum Explained::Kind;
  std::vector<Explained> lines = {
      {fact, "tile_rows", pass.tile_rows, "", "query rows that one processor works on at a time"},
      {fact, "tile_keys", pass.tile_pairs / pass.tile_rows, "", "keys of one step of its walk"},
      {fact, "tiles", t.tile_count, "", "of the whole call"},
      {fact, "waves", t.waves, "", "tiles over processors"},
      {fact, "longest_over_mean_tile", t.longest_tile / t.mean_tile, "", "how uneven the mask leaves the tiles"},
      {fact, "dram_traffic_share", t.dram_share, "share", "of the traffic that DRAM serves; L2 serves the rest"},
      {fact, "l2_rate", device.processors * device.clock * c[tile_pass::cache_rate], "B/s", "at which L2 serves it"},
      {part, "launch", t.floor, "s", "launches of an empty call"},
      {part, "attention", t.total - t.floor - t.write - t.merge, "s",
       "the pass over the tiles; its limits hide one another"},
  };
  if (t.write > 0) lines.push_back({part, "cache_write", t.write, "s", "new keys and values written, queries cast"});
  if (t.merge > 0) {
    lines.push_back({fact, "key_parts", t.key_parts, "", "parts that the keys of a tile are split into"});
    lines.push_back({part, "merge", t.merge, "s", "results of those parts merged"});
  }
  lines.push_back({limit, "tiles_multiply", t.tiles, "s", "multiplies and exponentials of all tiles, in waves"});
  lines.push_back({limit, "memory", t.memory, "s", "queries, keys, values and results through DRAM and L2"});
  return lines;
}

void tile_pass_features(const TilePass& pass, const TilePassTimes& t, double group, double q_len, double kv_len,
                        double window, std::span<float> out) {
  const auto log = [](double x) { return static_cast<float>(quick_log2(std::max(x, 1e-9))); };
  size_t i = 0;
  out[i++] = log(t.waves);
  out[i++] = static_cast<float>(std::ceil(t.waves) / t.waves);
  out[i++] = log(t.longest_tile / t.balanced);
  out[i++] = log(t.memory / t.tiles);
  out[i++] = static_cast<float>(t.floor / t.total);
  out[i++] = static_cast<float>(t.write / t.total);
  out[i++] = log(t.longest_tile / t.mean_tile);
  out[i++] = log(t.exponential / t.matmul);
  out[i++] = static_cast<float>(t.dram_share);
  out[i++] = log(pass.head_dim);
  out[i++] = log(group);
  out[i++] = log(q_len);
  out[i++] = window > 0 ? log(kv_len / window) : -20.0F;
  out[i++] = log(pass.walk.mean_blocks);
  out[i++] = static_cast<float>(pass.overlap);
  out[i++] = pass.fp8_cache ? 1.0F : 0.0F;
}

}  // namespace foretoken
