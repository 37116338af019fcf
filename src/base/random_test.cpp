#include "base/random.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <numeric>

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/statistics.h"

namespace foretoken::random_test {

constexpr int many = 60000;

std::vector<double> draws(int count, const std::function<double()>& draw) {
  std::vector<double> values(count);
  for (double& value : values) value = draw();
  return values;
}

// Sample mean and variance within five standard errors. `kurtosis` is the fourth central moment over the squared
// variance.
void expect_moments(const std::vector<double>& values, double expected_mean, double variance, double kurtosis) {
  const double count = static_cast<double>(values.size());
  const double deviation = standard_deviation(values);
  EXPECT_NEAR(mean(values), expected_mean, 5 * std::sqrt(variance / count));
  EXPECT_NEAR(deviation * deviation, variance, 5 * variance * std::sqrt((kurtosis - 1) / count));
}

// Kolmogorov-Smirnov: the largest gap between the sample's and the exact distribution; 1.95 / sqrt(n) is its 99.9%
// point.
void expect_distribution(std::vector<double> values, const std::function<double(double)>& share_below) {
  std::sort(values.begin(), values.end());
  const double count = static_cast<double>(values.size());
  double gap = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const double share = share_below(values[i]);
    gap = std::max(
        {gap, std::abs(share - static_cast<double>(i) / count), std::abs(share - static_cast<double>(i + 1) / count)});
  }
  EXPECT_LT(gap, 1.95 / std::sqrt(count));
}

double normal_share(double x) {
  return 0.5 * std::erfc(-x / std::sqrt(2.0));
}

// First outputs from state {1, 2, 3, 4} of the authors' C code, as other implementations test against.
TEST(Random, xoshiro_gives_the_published_sequence) {
  Xoshiro256 generator{{1, 2, 3, 4}};
  for (const uint64_t expected : {UINT64_C(11520), UINT64_C(0), UINT64_C(1509978240), UINT64_C(1215971899390074240),
                                  UINT64_C(1216172134540287360), UINT64_C(607988272756665600),
                                  UINT64_C(16172922978634559625), UINT64_C(8476171486693032832)}) {
    EXPECT_EQ(generator.next(), expected);
  }
}

TEST(Random, splitmix_gives_the_published_sequence) {
  uint64_t state = 1234567;
  for (const uint64_t expected : {UINT64_C(6457827717110365317), UINT64_C(3203168211198807973),
                                  UINT64_C(9817491932198370423), UINT64_C(4593380528125082431)}) {
    EXPECT_EQ(splitmix64(state), expected);
  }
}

TEST(Random, fnv_gives_the_published_hashes) {
  EXPECT_EQ(fnv1a(""), UINT64_C(0xcbf29ce484222325));
  EXPECT_EQ(fnv1a("a"), UINT64_C(0xaf63dc4c8601ec8c));
  EXPECT_EQ(fnv1a("foobar"), UINT64_C(0x85944171f73967e8));
}

TEST(Random, the_same_seed_and_name_give_the_same_stream) {
  RandomStream one(7, "arrivals"), other(7, "arrivals");
  for (int i = 0; i < 100; ++i) EXPECT_EQ(one.bits(), other.bits());
}

TEST(Random, a_stream_does_not_see_what_is_drawn_from_another) {
  RandomStream alone(7, "arrivals");
  std::vector<double> expected;
  for (int i = 0; i < 100; ++i) expected.push_back(alone.normal(0, 1));
  RandomStream arrivals(7, "arrivals"), lengths(7, "lengths");
  for (int i = 0; i < 100; ++i) {
    for (uint64_t j = lengths.below(4); j > 0; --j) lengths.gamma(0.5, 1);
    EXPECT_EQ(arrivals.normal(0, 1), expected[i]);
  }
}

TEST(Random, streams_of_other_names_or_seeds_are_uncorrelated) {
  const std::pair<uint64_t, const char*> keys[] = {{0, "a"}, {0, "b"}, {1, "a"}, {1, "b"}, {0, ""}, {UINT64_MAX, "a"}};
  std::vector<std::vector<double>> streams;
  for (const auto& [seed, name] : keys) {
    RandomStream stream(seed, name);
    streams.push_back(draws(20000, [&] { return stream.uniform(); }));
  }
  for (size_t i = 0; i < streams.size(); ++i) {
    for (size_t j = 0; j < i; ++j) EXPECT_LT(std::abs(spearman(streams[i], streams[j])), 5 / std::sqrt(20000.0));
  }
}

TEST(Random, uniform_fills_its_interval_evenly_and_leaves_out_the_end) {
  RandomStream stream(1, "uniform");
  const std::vector<double> values = draws(many, [&] { return stream.uniform(); });
  EXPECT_GE(*std::min_element(values.begin(), values.end()), 0);
  EXPECT_LT(*std::max_element(values.begin(), values.end()), 1);
  expect_moments(values, 0.5, 1.0 / 12, 1.8);
  expect_distribution(values, [](double x) { return x; });
  expect_distribution(draws(many, [&] { return stream.uniform(-3, 5); }), [](double x) { return (x + 3) / 8; });
  const double next = std::nextafter(1.0, 2.0);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(stream.uniform(1.0, next), 1.0);
  EXPECT_EQ(stream.uniform(2, 2), 2);
}

TEST(Random, below_gives_every_number_equally_often) {
  RandomStream stream(1, "below");
  for (const uint64_t count : {1, 2, 3, 10, 1000}) {
    std::vector<double> seen(count);
    for (int i = 0; i < many; ++i) ++seen.at(stream.below(count));
    // Chi-squared with count - 1 degrees of freedom: mean count - 1, variance 2 (count - 1).
    const double expected = static_cast<double>(many) / static_cast<double>(count),
                 freedom = static_cast<double>(count - 1);
    double chi_squared = 0;
    for (const double times : seen) chi_squared += (times - expected) * (times - expected) / expected;
    EXPECT_NEAR(chi_squared, freedom, 6 * std::sqrt(2 * freedom)) << count;
  }
}

TEST(Random, below_has_no_bias_where_a_remainder_would_show_one) {
  // bits() % (3 * 2^62) would give the first third twice as often as each of the others.
  RandomStream stream(2, "below");
  const uint64_t count = UINT64_C(3) << 62;
  int first_third = 0;
  for (int i = 0; i < many; ++i) first_third += stream.below(count) < count / 3 ? 1 : 0;
  EXPECT_NEAR(first_third, many / 3.0, 5 * std::sqrt(many * 2.0 / 9));
}

TEST(Random, exponential_has_its_mean_and_shape) {
  RandomStream stream(1, "exponential");
  const std::vector<double> values = draws(many, [&] { return stream.exponential(2.5); });
  expect_moments(values, 2.5, 6.25, 9);
  expect_distribution(values, [](double x) { return 1 - std::exp(-x / 2.5); });
}

TEST(Random, normal_has_its_mean_and_shape) {
  RandomStream stream(1, "normal");
  const std::vector<double> values = draws(many, [&] { return stream.normal(-4, 3); });
  expect_moments(values, -4, 9, 3);
  expect_distribution(values, [](double x) { return normal_share((x + 4) / 3); });
  EXPECT_EQ(stream.normal(5, 0), 5);
}

TEST(Random, lognormal_is_the_exponential_of_a_normal) {
  RandomStream stream(1, "lognormal");
  const std::vector<double> values = draws(many, [&] { return stream.lognormal(1, 0.5); });
  expect_distribution(values, [](double x) { return normal_share((std::log(x) - 1) / 0.5); });
  EXPECT_NEAR(mean(values), std::exp(1.125), 5 * std::exp(1.125) * std::sqrt((std::exp(0.25) - 1) / many));
}

TEST(Random, gamma_has_its_mean_and_shape) {
  for (const double shape : {0.1, 0.5, 1.0, 2.0, 3.5, 50.0}) {
    RandomStream stream(1, "gamma");
    const std::vector<double> values = draws(many, [&] { return stream.gamma(shape, 2); });
    expect_moments(values, 2 * shape, 4 * shape, 3 + 6 / shape);
  }
  // Two shapes with a closed form: 1 is exponential, 1/2 is half a squared normal.
  RandomStream stream(2, "gamma");
  expect_distribution(draws(many, [&] { return stream.gamma(1, 3); }), [](double x) { return 1 - std::exp(-x / 3); });
  expect_distribution(draws(many, [&] { return stream.gamma(0.5, 1); }),
                      [](double x) { return std::erf(std::sqrt(x)); });
  expect_distribution(draws(many, [&] { return stream.gamma(2, 1); }),
                      [](double x) { return 1 - (1 + x) * std::exp(-x); });
}

TEST(Random, zipf_falls_with_the_given_power) {
  for (const double exponent : {0.0, 0.7, 1.0, 1.5, 3.0}) {
    RandomStream stream(1, "zipf");
    const Zipf zipf(50, exponent);
    std::vector<double> seen(51);
    for (int i = 0; i < many; ++i) ++seen.at(zipf.draw(stream));
    EXPECT_EQ(seen[0], 0);
    double sum = 0;
    for (int rank = 1; rank <= 50; ++rank) sum += std::pow(rank, -exponent);
    for (int rank = 1; rank <= 50; ++rank) {
      const double share = std::pow(rank, -exponent) / sum;
      EXPECT_NEAR(seen[rank], many * share, 5 * std::sqrt(many * share) + 1) << exponent << " " << rank;
    }
  }
  RandomStream stream(2, "zipf");
  EXPECT_EQ(Zipf(1, 1).draw(stream), 1u);
}

TEST(Random, empirical_draws_each_value_by_its_weight) {
  RandomStream stream(1, "empirical");
  const Empirical even({1, 2, 4});
  std::vector<double> values = draws(many, [&] { return even.draw(stream); });
  EXPECT_NEAR(static_cast<double>(std::count(values.begin(), values.end(), 4.0)), many / 3.0,
              5 * std::sqrt(many * 2.0 / 9));
  const double weights[] = {0, 3, 0, 1, 0};
  const Empirical weighted({10, 20, 30, 40, 50}, weights);
  values = draws(many, [&] { return weighted.draw(stream); });
  const auto of_20 = std::count(values.begin(), values.end(), 20.0),
             of_40 = std::count(values.begin(), values.end(), 40.0);
  EXPECT_EQ(of_20 + of_40, many);  // never a value of weight zero
  EXPECT_NEAR(static_cast<double>(of_20), many * 0.75, 5 * std::sqrt(many * 0.75 * 0.25));
}

TEST(Random, impossible_parameters_are_our_own_defects) {
  RandomStream stream(1, "defects");
  EXPECT_THROW(stream.uniform(2, 1), InternalError);
  EXPECT_THROW(stream.below(0), InternalError);
  EXPECT_THROW(stream.exponential(-1), InternalError);
  EXPECT_THROW(stream.exponential(std::nan("")), InternalError);
  EXPECT_THROW(stream.normal(0, -1), InternalError);
  EXPECT_THROW(stream.gamma(0, 1), InternalError);
  EXPECT_THROW(Zipf(0, 1), InternalError);
  EXPECT_THROW(Zipf(10, -1), InternalError);
  EXPECT_THROW(Empirical({}), InternalError);
  const double zeros[] = {0, 0}, negative[] = {2, -1};
  EXPECT_THROW(WeightedIndex{zeros}, InternalError);
  EXPECT_THROW(WeightedIndex{negative}, InternalError);
  EXPECT_THROW((Empirical({1, 2, 3}, zeros)), InternalError);
}

// Every machine must give these bits. Each line is a hash of ten thousand draws.
TEST(Random, known_answers) {
  const auto hash = [](const std::function<double(RandomStream&)>& draw) {
    RandomStream stream(42, "known answers");
    uint64_t result = 0;
    for (int i = 0; i < 10000; ++i) result = result * 31 + std::bit_cast<uint64_t>(draw(stream));
    return result;
  };
  const Zipf zipf(1000, 1.1);
  const double weights[] = {1, 2, 0.5};
  const Empirical empirical({1.5, 2.5, 3.5}, weights);
  RandomStream stream(42, "known answers");
  EXPECT_EQ(stream.bits(), UINT64_C(9229559650056656114));
  EXPECT_EQ(hash([](RandomStream& s) { return s.uniform(); }), UINT64_C(4991182307196375336));
  EXPECT_EQ(hash([](RandomStream& s) { return static_cast<double>(s.below(1'000'003)); }),
            UINT64_C(14221476408932171776));
  EXPECT_EQ(hash([](RandomStream& s) { return s.exponential(3); }), UINT64_C(13227178888994389745));
  EXPECT_EQ(hash([](RandomStream& s) { return s.normal(1, 2); }), UINT64_C(10081895468443006528));
  EXPECT_EQ(hash([](RandomStream& s) { return s.lognormal(0, 2); }), UINT64_C(8389157760641137763));
  EXPECT_EQ(hash([](RandomStream& s) { return s.gamma(2.5, 1); }), UINT64_C(4341855129434963470));
  EXPECT_EQ(hash([](RandomStream& s) { return s.gamma(0.3, 1); }), UINT64_C(8258337419356416564));
  EXPECT_EQ(hash([&](RandomStream& s) { return static_cast<double>(zipf.draw(s)); }), UINT64_C(3062491727077048320));
  EXPECT_EQ(hash([&](RandomStream& s) { return empirical.draw(s); }), UINT64_C(16024933374091067392));
}

}  // namespace foretoken::random_test
