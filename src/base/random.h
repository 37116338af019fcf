// Named random streams with our own distributions: the same seed and name give the same bits on every machine.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace foretoken {

// xoshiro256** 1.0. D. Blackman, S. Vigna, "Scrambled linear pseudorandom number generators", ACM TOMS 47 (2021).
struct Xoshiro256 {
  std::array<uint64_t, 4> state{};  // must not be all zero
  uint64_t next();
};

// SplitMix64. G. Steele, D. Lea, C. Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
uint64_t splitmix64(uint64_t& state);

// 64-bit FNV-1a. G. Fowler, L. C. Noll, K.-P. Vo (1991); constants as in the IETF draft draft-eastlake-fnv.
uint64_t fnv1a(std::string_view text);

// Streams of different names (or seeds) are independent: what is drawn from one never shifts another.
class RandomStream {
 public:
  RandomStream(uint64_t seed, std::string_view name);

  uint64_t bits() { return generator_.next(); }
  double uniform();                              // [0, 1), 53 bits
  double uniform(double least, double most);     // [least, most)
  uint64_t below(uint64_t count);                // 0 .. count - 1, each equally likely; count > 0
  double exponential(double mean);               // mean >= 0
  double normal(double mean, double deviation);  // deviation >= 0
  double lognormal(double mu, double sigma);     // exp of normal(mu, sigma)
  double gamma(double shape, double scale);      // mean shape * scale; shape > 0, scale >= 0

 private:
  double standard_normal();
  Xoshiro256 generator_;
};

// Every order is equally likely. R. Durstenfeld, "Algorithm 235: Random permutation", CACM 7 (1964).
template <class Item>
void shuffle(std::vector<Item>& items, RandomStream& stream) {
  for (size_t left = items.size(); left > 1; --left) std::swap(items[left - 1], items[stream.below(left)]);
}

// Index i with probability weights[i] / sum. At least one weight above zero, none below.
class WeightedIndex {
 public:
  explicit WeightedIndex(std::span<const double> weights);
  size_t draw(RandomStream& stream) const;

 private:
  std::vector<double> running_sums_;
};

// Rank 1 .. count with probability proportional to rank^-exponent; exponent >= 0. Keeps 8 bytes per rank.
class Zipf {
 public:
  Zipf(size_t count, double exponent);
  size_t draw(RandomStream& stream) const { return 1 + index_.draw(stream); }

 private:
  WeightedIndex index_;
};

// One of the given values: each equally likely, or by weight.
class Empirical {
 public:
  explicit Empirical(std::vector<double> values);
  Empirical(std::vector<double> values, std::span<const double> weights);
  double draw(RandomStream& stream) const;

 private:
  std::vector<double> values_;
  std::vector<WeightedIndex> index_;  // empty when all are equally likely
};

}  // namespace foretoken
