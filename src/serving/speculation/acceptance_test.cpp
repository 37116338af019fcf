#include "serving/speculation/acceptance.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/random.h"

namespace foretoken::acceptance_test {

double power(double base, int64_t exponent) {
  double result = 1;
  for (int64_t i = 0; i < exponent; ++i) result *= base;
  return result;
}

TEST(Acceptance, of_one_rate_yields_what_the_closed_form_says) {
  for (const double rate : {0.0, 0.3, 0.7, 0.95}) {
    for (const int64_t drafts : {0, 1, 3, 8}) {
      const Acceptance acceptance = Acceptance::constant(rate, drafts);
      EXPECT_NEAR(acceptance.expected_tokens(drafts), (1 - power(rate, drafts + 1)) / (1 - rate), 1e-12);
    }
  }
  EXPECT_DOUBLE_EQ(Acceptance::constant(1, 5).expected_tokens(5), 6);
}

TEST(Acceptance, draws_have_the_expected_mean) {
  RandomStream stream(7, "draws");
  const std::vector<Acceptance> kinds = {Acceptance::constant(0.8, 4), Acceptance::constant(0.9, 4, 0.8),
                                         Acceptance::by_request(0.6, 0.3, 4), Acceptance::of_mean_length(2.3, 4),
                                         Acceptance::of_distribution(std::vector<double>{3, 1, 1, 4, 1})};
  for (const Acceptance& acceptance : kinds) {
    for (const int64_t drafts : {1, 4}) {
      constexpr int draws = 200'000;
      double sum = 0;
      for (int i = 0; i < draws; ++i) {
        const double uniform = stream.uniform(), of_request = stream.uniform();
        sum += 1 + static_cast<double>(acceptance.accepted(drafts, uniform, of_request));
      }
      EXPECT_NEAR(sum / draws, acceptance.expected_tokens(drafts), 0.02);
    }
  }
}

TEST(Acceptance, of_a_mean_length_has_that_mean) {
  for (const double tokens : {1.0, 1.84, 3.0, 4.4, 5.0}) {
    EXPECT_DOUBLE_EQ(Acceptance::of_mean_length(tokens, 4).expected_tokens(4), tokens);
  }
}

TEST(Acceptance, of_a_distribution_has_its_mean) {
  const std::vector<double> weights = {2, 3, 5};
  EXPECT_DOUBLE_EQ(Acceptance::of_distribution(weights).expected_tokens(2), 1 + (3 * 1 + 5 * 2) / 10.0);
}

TEST(Acceptance, decay_never_yields_more) {
  EXPECT_LT(Acceptance::constant(0.8, 5, 0.9).expected_tokens(5), Acceptance::constant(0.8, 5).expected_tokens(5));
  EXPECT_DOUBLE_EQ(Acceptance::constant(0.8, 5, 0).expected_tokens(5), 1.8);
}

TEST(Acceptance, requests_that_differ_yield_more_than_their_mean_does) {
  // x^k is convex: lucky requests gain more than unlucky ones lose.
  EXPECT_GT(Acceptance::by_request(0.6, 0.3, 4).expected_tokens(4), Acceptance::constant(0.6, 4).expected_tokens(4));
  EXPECT_DOUBLE_EQ(Acceptance::by_request(0.6, 0.3, 1).expected_tokens(1), 1.6);
  EXPECT_NEAR(Acceptance::by_request(0.6, 1e-4, 4).expected_tokens(4), Acceptance::constant(0.6, 4).expected_tokens(4),
              1e-6);
}

TEST(Acceptance, a_lucky_request_stays_lucky) {
  const Acceptance acceptance = Acceptance::by_request(0.5, 0.5, 8);
  for (const double uniform : {0.1, 0.5, 0.9}) {
    EXPECT_EQ(acceptance.accepted(8, uniform, 0), 0);
    EXPECT_GE(acceptance.accepted(8, uniform, 0.99), acceptance.accepted(8, uniform, 0.5));
  }
}

TEST(Acceptance, refuses_chances_that_rise_or_leave_their_range) {
  EXPECT_NO_THROW(Acceptance({0.8, 0.8, 0.1}, "test"));
  EXPECT_THROW(Acceptance({0.5, 0.6}, "test"), InputError);
  EXPECT_THROW(Acceptance({1.1}, "test"), InputError);
  EXPECT_THROW(Acceptance({-0.1}, "test"), InputError);
}

TEST(Acceptance, of_one_rate_has_the_length_it_was_made_for) {
  for (const double tokens : {1.0, 1.72, 3.12, 4.0}) {
    EXPECT_NEAR(Acceptance::of_rate_with_length(tokens, 3).expected_tokens(3), tokens, 1e-9);
  }
}

TEST(Acceptance, easier_texts_yield_more_and_keep_the_order_of_chances) {
  const Acceptance acceptance({0.9, 0.6, 0.6, 0.1, 0}, "test");
  double before = 0;
  for (const double by : {-1.0, -0.5, 0.0, 0.5, 1.0}) {
    const Acceptance tilted = acceptance.tilted(by);
    EXPECT_NO_THROW(Acceptance(tilted.reached(), "tilted"));
    EXPECT_GT(tilted.expected_tokens(5), before);
    before = tilted.expected_tokens(5);
  }
  EXPECT_DOUBLE_EQ(acceptance.tilted(-1).reached()[0], 0.81) << "right twice";
  EXPECT_DOUBLE_EQ(acceptance.tilted(1).reached()[0], 0.99) << "two tries";
}

TEST(Acceptance, requests_with_texts_of_their_own_keep_the_mean) {
  const Acceptance acceptance = Acceptance::constant(0.7, 4).varying_by_request(1);
  EXPECT_EQ(acceptance.expected_tokens(4), Acceptance::constant(0.7, 4).expected_tokens(4));
  constexpr int points = 400;
  const auto tokens_of = [&](double request) {
    double sum = 0;
    for (int i = 0; i < points; ++i)
      sum += 1 + static_cast<double>(acceptance.accepted(4, (i + 0.5) / points, request));
    return sum / points;
  };
  double mean = 0;
  for (int i = 0; i < points; ++i) mean += tokens_of((i + 0.5) / points) / points;
  EXPECT_NEAR(mean, acceptance.expected_tokens(4), 0.01);
  EXPECT_LT(tokens_of(0), 0.85 * mean);
  EXPECT_GT(tokens_of(0.999), 1.15 * mean);
}

}  // namespace foretoken::acceptance_test
