#include "base/random.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/error.h"
#include "base/portable_math.h"

namespace foretoken {

uint64_t Xoshiro256::next() {
  const uint64_t result = std::rotl(state[1] * 5, 7) * 9;
  const uint64_t shifted = state[1] << 17;
  state[2] ^= state[0];
  state[3] ^= state[1];
  state[1] ^= state[2];
  state[0] ^= state[3];
  state[2] ^= shifted;
  state[3] = std::rotl(state[3], 45);
  return result;
}

uint64_t splitmix64(uint64_t& state) {
  state += 0x9e3779b97f4a7c15;
  uint64_t mixed = state;
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
  return mixed ^ (mixed >> 31);
}

uint64_t fnv1a(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

RandomStream::RandomStream(uint64_t seed, std::string_view name) {
  // Seed and name are each spread over all bits before they meet, so that neighbours of one never cancel the other.
  uint64_t from_seed = seed;
  uint64_t state = splitmix64(from_seed) ^ fnv1a(name);
  // Four outputs of a bijection of a counter: at most one of them is zero.
  for (uint64_t& word : generator_.state) word = splitmix64(state);
}

double RandomStream::uniform() {
  return static_cast<double>(bits() >> 11) * 0x1p-53;
}

double RandomStream::uniform(double least, double most) {
  ensure(least <= most, "a uniform range has its lower end first");
  const double value = least + (most - least) * uniform();
  return value < most ? value : least;  // the sum may round up to the open end
}

uint64_t RandomStream::below(uint64_t count) {
  ensure(count > 0, "a number below zero items cannot be drawn");
  // Of the 2^64 values the first 2^64 mod count are refused; the rest is a whole multiple of count.
  // Those are fewer than count, so a division tells them only among the smallest values.
  for (;;) {
    if (const uint64_t value = bits(); value >= count || value >= (0 - count) % count) return value % count;
  }
}

double RandomStream::exponential(double mean) {
  ensure(mean >= 0, "an exponential distribution has a mean of at least zero");
  return mean * -portable_log(1 - uniform());
}

// The polar method. G. Marsaglia, T. Bray, "A convenient method for generating normal variables", SIAM Review 6 (1964).
// Its second value is not kept, so that a draw depends on nothing but the generator.
double RandomStream::standard_normal() {
  for (;;) {
    const double x = uniform(-1, 1);
    const double y = uniform(-1, 1);
    const double square = x * x + y * y;
    if (square > 0 && square < 1) return x * std::sqrt(-2 * portable_log(square) / square);
  }
}

double RandomStream::normal(double mean, double deviation) {
  ensure(deviation >= 0, "a normal distribution has a deviation of at least zero");
  return mean + deviation * standard_normal();
}

double RandomStream::lognormal(double mu, double sigma) {
  return portable_exp(normal(mu, sigma));
}

// G. Marsaglia, W. W. Tsang, "A simple method for generating gamma variables", ACM TOMS 26 (2000); section 6 for shapes
// below 1.
double RandomStream::gamma(double shape, double scale) {
  ensure(shape > 0 && scale >= 0, "a gamma distribution has a shape above zero and a scale of at least zero");
  if (shape < 1) {
    const double boost = portable_pow(1 - uniform(), 1 / shape);
    return gamma(shape + 1, scale) * boost;
  }
  const double d = shape - 1.0 / 3;
  const double c = 1 / std::sqrt(9 * d);
  for (;;) {
    const double x = standard_normal();
    const double root = 1 + c * x;
    if (root <= 0) continue;
    const double v = root * root * root;
    const double u = 1 - uniform();
    const bool surely = u < 1 - 0.0331 * (x * x) * (x * x);
    if (surely || portable_log(u) < 0.5 * x * x + d * (1 - v + portable_log(v))) return d * v * scale;
  }
}

WeightedIndex::WeightedIndex(std::span<const double> weights) {
  double sum = 0;
  running_sums_.reserve(weights.size());
  for (const double weight : weights) {
    ensure(weight >= 0 && std::isfinite(weight), "a weight is a finite number of at least zero");
    running_sums_.push_back(sum += weight);
  }
  ensure(sum > 0 && std::isfinite(sum), "weights have a finite sum above zero");
}

size_t WeightedIndex::draw(RandomStream& stream) const {
  // The first sum above the mark: an index of weight zero repeats the sum before it and is never the first.
  const double mark = stream.uniform() * running_sums_.back();
  const auto found = std::upper_bound(running_sums_.begin(), running_sums_.end(), mark);
  ensure(found != running_sums_.end(), "a share of the sum lies below the sum");
  return static_cast<size_t>(found - running_sums_.begin());
}

namespace {

std::vector<double> zipf_weights(size_t count, double exponent) {
  constexpr size_t most = 100'000'000;
  ensure(count > 0 && count <= most, "a Zipf table has between 1 and 100 million ranks");
  ensure(exponent >= 0 && std::isfinite(exponent), "a Zipf exponent is a finite number of at least zero");
  std::vector<double> weights(count);
  for (size_t i = 0; i < count; ++i) weights[i] = portable_pow(static_cast<double>(i + 1), -exponent);
  return weights;
}

}  // namespace

Zipf::Zipf(size_t count, double exponent) : index_(zipf_weights(count, exponent)) {}

Empirical::Empirical(std::vector<double> values) : values_(std::move(values)) {
  ensure(!values_.empty(), "an empirical distribution has at least one value");
}

Empirical::Empirical(std::vector<double> values, std::span<const double> weights) : Empirical(std::move(values)) {
  ensure(values_.size() == weights.size(), "each value of an empirical distribution has a weight");
  index_.emplace_back(weights);
}

double Empirical::draw(RandomStream& stream) const {
  return values_[index_.empty() ? stream.below(values_.size()) : index_.front().draw(stream)];
}

}  // namespace foretoken
