#include "kernel/forms/form_math.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"

namespace foretoken::form_math_test {

TEST(FormMath, quick_logarithm_is_right_to_eleven_digits) {
  RandomStream random(1, "logarithm");
  for (int i = 0; i < 20000; ++i) {
    const double x = i % 2 == 0 ? std::exp2(random.uniform(-1000, 1000)) : random.uniform(0.5, 2);
    const double expected = std::log2(x);
    ASSERT_NEAR(quick_log2(x), expected, 1e-11 * std::abs(expected)) << x;
  }
  for (int power = -1000; power <= 1000; ++power) EXPECT_EQ(quick_log2(std::ldexp(1.0, power)), power);
}

TEST(FormMath, quick_power_of_two_is_right_to_eleven_digits) {
  RandomStream random(1, "power");
  for (int i = 0; i < 20000; ++i) {
    const double x = random.uniform(-1000, 1000);
    const double expected = std::exp2(x);
    ASSERT_NEAR(quick_exp2(x), expected, 1e-11 * expected) << x;
  }
  for (int power = -1000; power <= 1000; ++power) EXPECT_EQ(quick_exp2(power), std::ldexp(1.0, power));
  EXPECT_EQ(quick_exp2(-1001), 0);
  EXPECT_EQ(quick_exp2(5000), std::ldexp(1.0, 1000));
}

TEST(FormMath, a_soft_maximum_lies_between_the_largest_and_the_sum) {
  RandomStream random(1, "maximum");
  for (int i = 0; i < 20000; ++i) {
    const double a = std::exp2(random.uniform(-30, 0)), b = std::exp2(random.uniform(-30, 0)),
                 c = std::exp2(random.uniform(-30, 0)), power = random.uniform(1, 24);
    const double two = soft_maximum(a, b, power), three = soft_maximum(a, b, c, power);
    const double rounding = 1 + 1e-10;
    ASSERT_GE(two * rounding, std::max(a, b));
    ASSERT_LE(two, (a + b) * rounding);
    // Terms below a ten-thousandth of the largest are left out: at most that much of each is missing.
    ASSERT_NEAR(two, std::pow(std::pow(a, power) + std::pow(b, power), 1 / power), 1.01e-4 * two);
    ASSERT_GE(three * rounding, std::max({a, b, c}));
    ASSERT_NEAR(three, std::pow(std::pow(a, power) + std::pow(b, power) + std::pow(c, power), 1 / power),
                2.02e-4 * three);
    ASSERT_EQ(two, soft_maximum(b, a, power));
  }
  EXPECT_EQ(soft_maximum(0, 0, 0, 2), 0);
  EXPECT_EQ(soft_maximum(3, 0, 2), 3);
  EXPECT_NEAR(soft_maximum(3, 4, 2), 5, 1e-9);
}

TEST(FormMath, the_dram_share_rises_from_nothing_to_all_and_is_a_half_at_the_capacity) {
  constexpr double capacity = 50e6;
  for (const double sharpness : {2.0, 4.0, 24.0}) {
    EXPECT_EQ(dram_share(0, capacity, sharpness), 0);
    EXPECT_NEAR(dram_share(capacity, capacity, sharpness), 0.5, 1e-9);
    double before = 0;
    for (double bytes = 1; bytes < 1e15; bytes *= 1.3) {
      const double share = dram_share(bytes, capacity, sharpness);
      ASSERT_GE(share, before);
      ASSERT_LE(share, 1);
      before = share;
    }
    EXPECT_GT(before, 0.999);
  }
}

TEST(FormMath, more_bytes_take_longer_and_the_cache_is_never_slower_than_dram) {
  double before = 0;
  for (double bytes = 100; bytes < 1e12; bytes *= 1.1) {
    const double share = dram_share(bytes, 50e6, 4);
    const double seconds = mixed_memory_seconds(bytes, share, 3e12, 1e12);  // a cache that claims to be slower
    ASSERT_LE(seconds, bytes / 3e12 * (1 + 1e-12));
    ASSERT_GT(seconds, before);
    before = seconds;
  }
}

TEST(FormMath, a_floor_sum_is_the_sum_of_floors) {
  RandomStream random(1, "floors");
  for (int i = 0; i < 5000; ++i) {
    const auto n = static_cast<int64_t>(random.below(40)), m = static_cast<int64_t>(1 + random.below(50)),
               a = static_cast<int64_t>(random.below(200)), b = static_cast<int64_t>(random.below(200));
    int64_t expected = 0;
    for (int64_t k = 0; k < n; ++k) expected += (a * k + b) / m;
    ASSERT_EQ(floor_sum(n, m, a, b), expected) << n << " " << m << " " << a << " " << b;
  }
}

// Tile by tile: the blocks that hold a key which some row of the tile sees.
TileWalk walk_one_by_one(const TileWalkRequest& r) {
  const int64_t rows = r.q_len * r.rows_per_token, before = std::max<int64_t>(0, r.kv_len - r.q_len);
  TileWalk walk;
  int64_t sum = 0;
  for (int64_t first = 0; first < rows; first += r.tile_rows) {
    const int64_t last = std::min(rows, first + r.tile_rows) - 1;
    int64_t low = 0, high = r.kv_len;  // [low, high)
    if (r.causal) {
      high = before + last / r.rows_per_token + 1;
      if (r.window > 0) low = std::max<int64_t>(0, before + first / r.rows_per_token - r.window + 1);
    }
    const int64_t blocks = (high + r.tile_keys - 1) / r.tile_keys - low / r.tile_keys;
    sum += blocks;
    walk.tiles += 1;
    walk.most_blocks = std::max(walk.most_blocks, static_cast<double>(blocks));
  }
  walk.mean_blocks = static_cast<double>(sum) / walk.tiles;
  return walk;
}

void expect_same_walk(const TileWalkRequest& r) {
  const TileWalk quick = walk_tiles(r), slow = walk_one_by_one(r);
  const auto what = [&] {
    return testing::Message() << "q " << r.q_len << " kv " << r.kv_len << " packed " << r.rows_per_token << " window "
                              << r.window << " causal " << r.causal << " tile " << r.tile_rows << "x" << r.tile_keys;
  };
  ASSERT_EQ(quick.tiles, slow.tiles) << what();
  ASSERT_NEAR(quick.mean_blocks, slow.mean_blocks, 1e-9) << what();
  ASSERT_EQ(quick.most_blocks, slow.most_blocks) << what();
}

TEST(FormMath, tiles_walk_the_blocks_that_counting_one_by_one_finds) {
  RandomStream random(1, "tiles");
  for (int i = 0; i < 30000; ++i) {
    TileWalkRequest r;
    r.q_len = static_cast<int64_t>(1 + random.below(70));
    r.kv_len = r.q_len + static_cast<int64_t>(random.below(3) == 0 ? 0 : random.below(90));
    r.rows_per_token = static_cast<int64_t>(1 + random.below(9));
    r.window = random.below(2) == 0 ? 0 : static_cast<int64_t>(1 + random.below(120));
    r.causal = random.below(4) != 0;
    r.tile_rows = static_cast<int64_t>(1 + random.below(24));
    r.tile_keys = static_cast<int64_t>(1 + random.below(24));
    expect_same_walk(r);
    if (HasFatalFailure()) return;
  }
}

TEST(FormMath, tiles_of_real_kernels_walk_the_blocks_that_counting_one_by_one_finds) {
  RandomStream random(2, "tiles");
  for (int i = 0; i < 3000; ++i) {
    TileWalkRequest r;
    r.q_len = static_cast<int64_t>(1 + random.below(3000));
    r.kv_len = r.q_len + static_cast<int64_t>(random.below(3) == 0 ? 0 : random.below(9000));
    r.rows_per_token = int64_t{1} << random.below(5);
    r.window = random.below(2) == 0 ? 0 : int64_t{1} << (4 + random.below(9));
    r.tile_rows = int64_t{1} << (4 + random.below(4));
    r.tile_keys = int64_t{1} << (5 + random.below(3));
    expect_same_walk(r);
    if (HasFatalFailure()) return;
  }
}

TEST(FormMath, a_million_tokens_are_counted_without_overflow) {
  const TileWalk walk = walk_tiles({.q_len = 1 << 20, .kv_len = 1 << 20, .rows_per_token = 16, .tile_rows = 16});
  EXPECT_EQ(walk.tiles, 1 << 20);
  EXPECT_NEAR(walk.mean_blocks, ((1 << 20) / 64 + 1) / 2.0, 1e-6);
  EXPECT_EQ(walk.most_blocks, (1 << 20) / 64);
}

}  // namespace foretoken::form_math_test
