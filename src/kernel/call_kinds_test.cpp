#include "kernel/call_kinds.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

namespace foretoken::call_kinds_test {

TEST(CallKinds, what_is_kept_is_found_by_key_and_variant) {
  CallKinds kinds;
  EXPECT_EQ(kinds.find(7, "fa3"), nullptr);
  const CallKind* kept = kinds.keep({.key = 7, .variant = "fa3", .cross = {1, 2}});
  ASSERT_NE(kept, nullptr);
  EXPECT_EQ(kinds.find(7, "fa3"), kept);
  EXPECT_EQ(kept->cross, (std::vector<double>{1, 2}));
  EXPECT_EQ(kinds.find(8, "fa3"), nullptr);
  EXPECT_EQ(kinds.find(7, "fa2"), nullptr);
  EXPECT_EQ(kinds.find(7, ""), nullptr);
}

TEST(CallKinds, a_new_variant_in_every_call_does_not_fill_the_memory) {
  CallKinds kinds;
  size_t kept = 0;
  for (int i = 0; i < 10'000; ++i) kept += kinds.keep({.key = 1, .variant = std::to_string(i)}) != nullptr ? 1 : 0;
  EXPECT_EQ(kept, 4096U);
  EXPECT_NE(kinds.find(1, "17"), nullptr);
  EXPECT_EQ(kinds.find(1, "9999"), nullptr);
}

TEST(CallKinds, threads_that_add_and_look_at_once_all_find_what_they_added) {
  CallKinds kinds;
  std::vector<int> wrong(4, 0);
  {
    std::vector<std::jthread> threads;
    for (size_t t = 0; t < wrong.size(); ++t) {
      threads.emplace_back([&kinds, &wrong, t] {
        for (uint64_t key = 0; key < 500; ++key) {
          const auto value = static_cast<double>(key);
          if (kinds.find(key, "") == nullptr) kinds.keep({.key = key, .cross = {value}});
          const CallKind* found = kinds.find(key, "");
          if (found == nullptr || found->cross != std::vector<double>{value}) ++wrong[t];
        }
      });
    }
  }
  EXPECT_EQ(wrong, std::vector<int>(4, 0));
}

}  // namespace foretoken::call_kinds_test
