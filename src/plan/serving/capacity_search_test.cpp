#include "plan/serving/capacity_search.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/random.h"

namespace foretoken::capacity_search_test {

TEST(CapacitySearch, finds_the_rate_at_which_a_limit_breaks_from_any_start) {
  RandomStream stream(1, "capacity");
  for (int i = 0; i < 200; ++i) {
    const double limit = 0.01 + 100 * stream.uniform();
    const CapacitySearch search{.start = 200 * stream.uniform(), .tolerance = 0.02};
    const double found = highest_rate(search, [&](double rate) { return rate <= limit; });
    EXPECT_LE(found, limit);
    EXPECT_GE(found, limit / 1.02);
  }
}

// Guesses may be wrong in any way: they cost trials, not the answer.
TEST(CapacitySearch, guesses_change_the_number_of_trials_and_not_the_answer) {
  RandomStream stream(2, "capacity");
  int good = 0, bad = 0, none = 0;
  for (int i = 0; i < 200; ++i) {
    const double limit = 1 + 9 * stream.uniform(), start = 1 + 9 * stream.uniform();
    const auto search_with = [&](int& trials, const std::function<std::optional<double>(double)>& guess) {
      const CapacitySearch search{.start = start, .tolerance = 0.02};
      const double found = highest_rate(search, [&](double rate) {
        ++trials;
        return TriedRate{.holds = rate <= limit, .reach = guess(rate)};
      });
      EXPECT_LE(found, limit);
      EXPECT_GE(found, limit / 1.02);
    };
    search_with(none, [](double) { return std::nullopt; });
    search_with(bad, [&](double) { return 0.5 + stream.uniform(); });
    search_with(good, [&](double rate) { return limit / rate * (0.97 + 0.06 * stream.uniform()); });
  }
  EXPECT_LT(good, none * 0.6);
  EXPECT_LT(bad, none * 1.5);
}

// What is used rises with some power of the rate, which nobody is told.
TEST(CapacitySearch, trials_that_tell_what_is_used_of_a_limit_are_fewer_and_as_near_to_the_answer) {
  RandomStream stream(3, "capacity");
  int told = 0, not_told = 0, searches = 0;
  for (int i = 0; i < 200; ++i) {
    const double limit = 1 + 9 * stream.uniform(), power = 0.5 + 31.5 * stream.uniform();
    const CapacitySearch search{
        .start = limit * (0.85 + 0.3 * stream.uniform()), .tolerance = 0.02, .first_step = 1.03};
    const auto searched = [&](int& trials, bool tells) {
      const double found = highest_rate(search, [&](double rate) {
        ++trials;
        const double used = std::pow(rate / limit, power);
        return TriedRate{.holds = used <= 1, .used = tells ? std::optional(used) : std::nullopt};
      });
      EXPECT_LE(found, limit);
      EXPECT_GE(found, limit / 1.021);
    };
    searched(told, true);
    searched(not_told, false);
    ++searches;
  }
  EXPECT_LT(told, 3 * searches);
  EXPECT_LT(told, 0.6 * not_told);
}

TEST(CapacitySearch, a_higher_limit_never_has_a_lower_rate) {
  double before = 0;
  for (double limit = 0.5; limit < 50; limit *= 1.3) {
    const double found = highest_rate({.start = 5}, [&](double rate) { return rate <= limit; });
    EXPECT_GE(found, before);
    before = found;
  }
}

TEST(CapacitySearch, stays_between_the_lowest_and_the_highest_rate) {
  std::vector<double> tried;
  const auto note = [&](bool answer) {
    return [&tried, answer](double rate) {
      tried.push_back(rate);
      return answer;
    };
  };
  const CapacitySearch search{.start = 10, .lowest = 1, .highest = 40};
  EXPECT_EQ(highest_rate(search, note(false)), 0);
  EXPECT_EQ(highest_rate(search, note(true)), 40);
  for (const double rate : tried) {
    EXPECT_GE(rate, 1);
    EXPECT_LE(rate, 40);
  }
}

}  // namespace foretoken::capacity_search_test
