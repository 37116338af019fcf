// How long prompts and outputs are.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace foretoken {

class RandomStream;

struct RequestLengths {
  int64_t input_tokens = 1;
  int64_t output_tokens = 1;
  int64_t thinking_tokens = 0;  // of the output, before the answer
};

struct LengthRange {
  int64_t least = 1, most = 1;  // both may occur
};

// vllm bench serve, --random-range-ratio: every whole number from floor(nominal (1 - ratio)) to ceil(nominal (1 +
// ratio)), at least `least`.
LengthRange range_around(int64_t nominal, double ratio, int64_t least);

// exp(N(mu, sigma)) with the given mean: mu = log(mean) - sigma^2 / 2. Rounded, at least 1, at most `most`.
struct LognormalLength {
  double mean = 1;
  double sigma = 1;
  int64_t most = 1'000'000;
};

int64_t draw_length(const LognormalLength& length, RandomStream& stream);

// Endless; one draw at a time.
class LengthSource {
 public:
  virtual ~LengthSource() = default;
  virtual RequestLengths next() = 0;
};

std::unique_ptr<LengthSource> uniform_lengths(LengthRange input, LengthRange output, uint64_t seed);
std::unique_ptr<LengthSource> lognormal_lengths(const LognormalLength& input, const LognormalLength& output,
                                                uint64_t seed);
// Pairs as they were observed, each equally likely. At least one.
std::unique_ptr<LengthSource> observed_lengths(std::vector<RequestLengths> observed, uint64_t seed);

}  // namespace foretoken
