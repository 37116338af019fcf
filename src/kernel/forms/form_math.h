// Arithmetic that physical forms share: cheap powers that give the same bits on every machine, tile counting, the share
// of traffic that DRAM serves.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <numeric>

#include "kernel/forms/form.h"

namespace foretoken {

inline double as_double(int64_t value) {
  return static_cast<double>(value);
}

// Relative error below 1e-11, a tenth of the cost of portable_log. Only IEEE + - * / and bit moves. x > 0, normal.
inline double quick_log2(double x) {
  const auto bits = std::bit_cast<uint64_t>(x);
  auto exponent = static_cast<int64_t>(bits >> 52U) - 1023;
  auto fraction = std::bit_cast<double>((bits & 0x000fffffffffffffULL) | 0x3ff0000000000000ULL);
  if (fraction > 1.4142135623730951) {
    fraction *= 0.5;
    ++exponent;
  }
  // log m = 2 (s + s^3/3 + ...), s = (m - 1) / (m + 1), |s| <= 0.172
  const double s = (fraction - 1) / (fraction + 1), q = s * s;
  const double series =
      1 + q * (1.0 / 3 + q * (1.0 / 5 + q * (1.0 / 7 + q * (1.0 / 9 + q * (1.0 / 11 + q * (1.0 / 13 + q / 15))))));
  return static_cast<double>(exponent) + 2.8853900817779268 * s * series;
}

// 2^x; 0 below 2^-1000.
inline double quick_exp2(double x) {
  if (x < -1000) return 0;
  const double whole = std::floor(x + 0.5);
  const double y = (std::min(x, 1000.0) - std::min(whole, 1000.0)) * 0.6931471805599453;
  // exp(y) = 1 + y + y^2/2! + ..., |y| <= 0.347
  double series = 1.0 / 39916800;
  for (const double factor :
       {1.0 / 3628800, 1.0 / 362880, 1.0 / 40320, 1.0 / 5040, 1.0 / 720, 1.0 / 120, 1.0 / 24, 1.0 / 6, 0.5, 1.0, 1.0}) {
    series = series * y + factor;
  }
  return series *
         std::bit_cast<double>(static_cast<uint64_t>(1023 + static_cast<int64_t>(std::min(whole, 1000.0))) << 52U);
}

inline constexpr double log2_of_e = 1.4426950408889634;

// (a^p + b^p)^(1/p): the larger one where they differ, up to 2^(1/p) more where they are alike.
inline double soft_maximum(double a, double b, double power) {
  const double large = std::max(a, b), small = std::min(a, b);
  if (small < 1e-4 * large) return large;
  return large * quick_exp2(quick_log2(1 + quick_exp2(power * quick_log2(small / large))) / power);
}

inline double soft_maximum(double a, double b, double c, double power) {
  const double large = std::max({a, b, c});
  if (!(large > 0)) return 0;
  double sum = 0;
  for (const double term : {a, b, c}) {
    if (term >= 1e-4 * large) sum += quick_exp2(power * quick_log2(term / large));
  }
  return large * quick_exp2(quick_log2(sum) / power);
}

inline double ceil_ratio(double a, double b) {
  return std::ceil(a / b);
}

// Share of the traffic that DRAM serves when `bytes` are touched again and again: 0 well inside the cache, 1 well
// beyond. 1 / (1 + (capacity / bytes)^sharpness)
inline double dram_share(double bytes, double capacity, double sharpness) {
  if (!(bytes > 0)) return 0;
  return 1 / (1 + quick_exp2(std::min(sharpness * quick_log2(capacity / bytes), 900.0)));
}

// Seconds to move bytes of which `share` come from DRAM at `dram_rate` and the rest from the cache; the cache is never
// slower than DRAM.
inline double mixed_memory_seconds(double bytes, double share, double dram_rate, double cache_rate) {
  return bytes * (share / dram_rate + (1 - share) / std::max(1.3 * dram_rate, cache_rate));
}

// Clocks of an empty call with `extra_launches` kernels more than usual; negative for a bare call, which keeps at least
// a quarter whatever the two constants are.
inline double floor_clocks(double usual, double launch, double extra_launches) {
  return std::max(0.25 * usual, usual + launch * extra_launches);
}

// sum over i in [0, n) of floor((a i + b) / m), for a, b >= 0, m > 0. Euclid-like, O(log m).
// (AtCoder Library, floor_sum.)
inline int64_t floor_sum(int64_t n, int64_t m, int64_t a, int64_t b) {
  int64_t sum = 0;
  while (n > 0) {
    if (a >= m) {
      sum += (n - 1) * n / 2 * (a / m);
      a %= m;
    }
    if (b >= m) {
      sum += n * (b / m);
      b %= m;
    }
    const int64_t top = a * n + b;
    if (top < m) break;
    n = top / m;
    b = top % m;
    std::swap(m, a);
  }
  return sum;
}

// How the rows of one (sequence, head) fall into tiles, and how many key blocks a tile walks.
struct TileWalk {
  double tiles = 0;
  double mean_blocks = 0;
  double most_blocks = 0;
};

struct TileWalkRequest {
  int64_t q_len = 1, kv_len = 1;
  int64_t rows_per_token = 1;  // query heads packed into the row dimension
  int64_t window = 0;          // 0 = none
  bool causal = true;
  int64_t tile_rows = 64, tile_keys = 64;
};

// Tile i visits ceil(hi / N) - floor(lo / N) blocks: hi is the last key its last token sees, plus one, lo the first key
// its first token sees. Exact, without a loop over all tiles.
inline TileWalk walk_tiles(const TileWalkRequest& r) {
  const int64_t rows = r.q_len * r.rows_per_token;
  const int64_t tiles = (rows + r.tile_rows - 1) / r.tile_rows;
  TileWalk walk{.tiles = static_cast<double>(tiles)};
  if (!r.causal) {
    const int64_t blocks = (r.kv_len + r.tile_keys - 1) / r.tile_keys;
    walk.mean_blocks = walk.most_blocks = static_cast<double>(blocks);
    return walk;
  }
  const int64_t g = r.rows_per_token, before = std::max<int64_t>(0, r.kv_len - r.q_len);
  const int64_t span = g * r.tile_keys;
  // ceil(hi / N) of tile i < tiles - 1 = floor(((i + 1) M - 1 + (before + N) g) / (g N)); the last tile ends at kv_len.
  const int64_t last_blocks = (r.kv_len + r.tile_keys - 1) / r.tile_keys;
  int64_t blocks = floor_sum(tiles - 1, span, r.tile_rows, r.tile_rows - 1 + (before + r.tile_keys) * g) + last_blocks;
  // Tile i < tiles - 1.
  const auto last_block = [&](int64_t i) { return ((i + 1) * r.tile_rows - 1 + (before + r.tile_keys) * g) / span; };
  const auto skipped = [&](int64_t i) {
    return r.window > 0 ? std::max<int64_t>(0, i * r.tile_rows / g + before - r.window + 1) / r.tile_keys : 0;
  };
  int64_t most = last_blocks - skipped(tiles - 1);
  if (r.window > 0) {
    // floor(lo / N) = floor((i M + (before - window + 1) g) / (g N)) from the first tile whose lo is positive.
    const int64_t shift = (before - r.window + 1) * g;
    const int64_t first = shift >= 0 ? 0 : std::min(tiles, (-shift + r.tile_rows - 1) / r.tile_rows);
    blocks -= floor_sum(tiles - first, span, r.tile_rows, first * r.tile_rows + shift);
    // From there on counts repeat with the offset of a tile within a block; before it they grow.
    const int64_t period = span / std::gcd(r.tile_rows, span);
    for (int64_t i = std::max<int64_t>(first - 1, tiles - 1 - period); i < tiles - 1; ++i) {
      if (i >= 0) most = std::max(most, last_block(i) - skipped(i));
    }
    if (first >= 1 && first < tiles) most = std::max(most, last_block(first - 1));
  }
  walk.mean_blocks = static_cast<double>(blocks) / static_cast<double>(tiles);
  walk.most_blocks = static_cast<double>(most);
  return walk;
}

}  // namespace foretoken
