#include "serving/load/lengths.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/portable_math.h"
#include "base/random.h"

namespace foretoken {
namespace {

// Inputs and outputs come from streams of their own: another output range leaves the prompts as they are.
constexpr const char* input_stream = "input lengths";
constexpr const char* output_stream = "output lengths";

class UniformLengths : public LengthSource {
 public:
  UniformLengths(LengthRange input, LengthRange output, uint64_t seed)
      : input_(input), output_(output), inputs_(seed, input_stream), outputs_(seed, output_stream) {
    ensure(input.least <= input.most && output.least <= output.most, "a range of lengths has its lower end first");
  }
  RequestLengths next() override {
    return {.input_tokens = draw(input_, inputs_), .output_tokens = draw(output_, outputs_)};
  }

 private:
  static int64_t draw(LengthRange range, RandomStream& stream) {
    return range.least + static_cast<int64_t>(stream.below(static_cast<uint64_t>(range.most - range.least + 1)));
  }
  LengthRange input_, output_;
  RandomStream inputs_, outputs_;
};

class LognormalLengths : public LengthSource {
 public:
  LognormalLengths(const LognormalLength& input, const LognormalLength& output, uint64_t seed)
      : input_(input), output_(output), inputs_(seed, input_stream), outputs_(seed, output_stream) {}
  RequestLengths next() override {
    return {.input_tokens = draw_length(input_, inputs_), .output_tokens = draw_length(output_, outputs_)};
  }

 private:
  LognormalLength input_, output_;
  RandomStream inputs_, outputs_;
};

class ObservedLengths : public LengthSource {
 public:
  ObservedLengths(std::vector<RequestLengths> observed, uint64_t seed)
      : observed_(std::move(observed)), random_(seed, "observed lengths") {
    ensure(!observed_.empty(), "lengths are drawn from at least one observed pair");
  }
  RequestLengths next() override { return observed_[random_.below(observed_.size())]; }

 private:
  std::vector<RequestLengths> observed_;
  RandomStream random_;
};

}  // namespace

LengthRange range_around(int64_t nominal, double ratio, int64_t least) {
  const auto tokens = static_cast<double>(nominal);
  const auto low = static_cast<int64_t>(std::floor(tokens * (1 - ratio)));
  const auto high = static_cast<int64_t>(std::ceil(tokens * (1 + ratio)));
  return {.least = std::max(least, low), .most = std::max(least, high)};
}

int64_t draw_length(const LognormalLength& length, RandomStream& stream) {
  const double mu = portable_log(length.mean) - length.sigma * length.sigma / 2;
  const double tokens = stream.lognormal(mu, length.sigma);
  return std::llround(std::clamp(tokens, 1.0, static_cast<double>(length.most)));
}

std::unique_ptr<LengthSource> uniform_lengths(LengthRange input, LengthRange output, uint64_t seed) {
  return std::make_unique<UniformLengths>(input, output, seed);
}

std::unique_ptr<LengthSource> lognormal_lengths(const LognormalLength& input, const LognormalLength& output,
                                                uint64_t seed) {
  return std::make_unique<LognormalLengths>(input, output, seed);
}

std::unique_ptr<LengthSource> observed_lengths(std::vector<RequestLengths> observed, uint64_t seed) {
  return std::make_unique<ObservedLengths>(std::move(observed), seed);
}

}  // namespace foretoken
