#include "base/hashed_index.h"

#include <map>

#include <gtest/gtest.h>

#include "base/random.h"

namespace foretoken {
namespace {

TEST(HashedIndex, holds_what_a_map_holds_after_any_puts_and_erasures) {
  HashedIndex index;
  std::map<uint64_t, int32_t> expected;
  uint64_t state = 7;
  for (int32_t i = 0; i < 20'000; ++i) {
    // Few keys, some of them neighbours, so that many are put again, erased again and probed for.
    const uint64_t drawn = splitmix64(state);
    const uint64_t key = drawn % 3 == 0 ? drawn / 3 % 50 : (drawn / 3 % 400) << 40;
    if (drawn >> 62 == 0) {
      index.erase(key);
      expected.erase(key);
    } else {
      const auto [place, is_new] = expected.try_emplace(key, i);
      EXPECT_EQ(index.put(key, i), std::pair(place->second, is_new));
    }
    ASSERT_EQ(index.size(), expected.size());
    const uint64_t asked = (splitmix64(state) % 400) << 40;
    const auto found = expected.find(asked);
    const int32_t* place = index.find(asked);
    ASSERT_EQ(place != nullptr, found != expected.end());
    if (place != nullptr) {
      EXPECT_EQ(*place, found->second);
    }
  }
  for (const auto& [key, place] : expected) {
    ASSERT_TRUE(index.contains(key));
    EXPECT_EQ(*index.find(key), place);
  }
}

TEST(HashedIndex, a_place_can_be_changed_where_it_is) {
  HashedIndex index;
  index.put(5, 1);
  *index.find(5) = 2;
  EXPECT_EQ(*index.find(5), 2);
}

}  // namespace
}  // namespace foretoken
