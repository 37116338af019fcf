#include "serving/lora/adapter_cache.h"

#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"

namespace foretoken::adapter_cache_test {

AdapterLoading loading(size_t device_slots, size_t host_slots) {
  return {.device_slots = device_slots, .host_slots = host_slots, .from_host = Seconds(1), .from_disk = Seconds(10)};
}

TEST(AdapterCache, an_adapter_comes_from_disk_once_and_stays) {
  AdapterCache cache(loading(2, 4));
  const std::vector<int32_t> one = {7};
  const AdapterLoads first = cache.use(one);
  EXPECT_EQ(first.from_disk, 1);
  EXPECT_EQ(first.from_host, 1);
  EXPECT_EQ(first.time, to_picoseconds(Seconds(11)));
  EXPECT_EQ(cache.use(one).time, 0);
}

TEST(AdapterCache, the_least_recently_used_one_leaves_and_comes_back_from_the_host) {
  AdapterCache cache(loading(2, 3));
  for (const int32_t adapter : {0, 1, 0, 2}) cache.use(std::vector{adapter});
  EXPECT_EQ(cache.use(std::vector{0}).from_host, 0);
  const AdapterLoads back = cache.use(std::vector{1});
  EXPECT_EQ(back.from_host, 1);
  EXPECT_EQ(back.from_disk, 0);
}

TEST(AdapterCache, what_leaves_the_host_leaves_the_device) {
  AdapterCache cache(loading(1, 1));
  cache.use(std::vector{0});
  cache.use(std::vector{1});
  EXPECT_EQ(cache.use(std::vector{0}).from_disk, 1);
}

// LRU has the stack property: what a smaller one finds, a larger one finds too.
TEST(AdapterCache, more_slots_never_load_more) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    RandomStream random(seed, "adapters");
    std::vector<int32_t> used;
    for (int i = 0; i < 500; ++i) used.push_back(static_cast<int32_t>(random.below(12)));
    int64_t before_device = 500, before_host = 500;
    for (size_t slots = 1; slots <= 12; ++slots) {
      AdapterCache cache(loading(slots, 2 * slots));
      int64_t from_host = 0, from_disk = 0;
      for (const int32_t adapter : used) {
        const AdapterLoads loads = cache.use(std::vector{adapter});
        from_host += loads.from_host;
        from_disk += loads.from_disk;
      }
      EXPECT_LE(from_host, before_device);
      EXPECT_LE(from_disk, before_host);
      EXPECT_LE(from_disk, from_host);
      before_device = from_host;
      before_host = from_disk;
    }
    EXPECT_EQ(before_device, 12) << "each once where all fit";
  }
}

}  // namespace foretoken::adapter_cache_test
