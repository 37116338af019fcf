#include "serving/load/synthetic.h"

#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/random.h"
#include "serving/load/listed_source.h"

namespace foretoken {
namespace {

// Of more requests, random draws are as even.
constexpr int64_t most_shuffled = 10'000'000;

class SyntheticLoad : public ListedSource {
 public:
  SyntheticLoad(const ArrivalSettings& arrivals, std::unique_ptr<LengthSource> lengths, const PrefixSettings& prefix,
                uint64_t seed)
      : arrivals_(arrivals, seed),
        lengths_(std::move(lengths)),
        prefix_(prefix),
        prefixes_(seed, "prefixes"),
        left_(arrivals.count) {
    check_prefixes(prefix);
    if (prefix.equally_often && left_ <= most_shuffled) shuffle_prefixes();
  }

  std::optional<Request> read() override {
    if (left_ == 0) return std::nullopt;
    --left_;
    const RequestLengths lengths = lengths_->next();
    Request request{.id = next_id_++,
                    .arrival = arrivals_.next(),
                    .input_tokens = prefix_.tokens + lengths.input_tokens,
                    .output_tokens = lengths.output_tokens,
                    .thinking_tokens = lengths.thinking_tokens};
    if (prefix_.tokens > 0) add_prefix(request);
    return request;
  }

 private:
  void add_prefix(Request& request) {
    const int64_t blocks = prefix_.tokens / made_up_block_tokens;
    const int64_t first = prefix_of(request.id) * blocks;
    request.prefix_block_tokens = made_up_block_tokens;
    for (int64_t block = 0; block < blocks; ++block) request.prefix_blocks.push_back(first + block);
  }

  int64_t prefix_of(int64_t request) {
    if (!order_.empty()) return order_[static_cast<size_t>(request)];
    return static_cast<int64_t>(prefixes_.below(static_cast<uint64_t>(prefix_.count)));
  }

  void shuffle_prefixes() {
    order_.resize(static_cast<size_t>(left_));
    for (int64_t i = 0; i < left_; ++i) order_[static_cast<size_t>(i)] = static_cast<int32_t>(i % prefix_.count);
    shuffle(order_, prefixes_);
  }

  Arrivals arrivals_;
  std::unique_ptr<LengthSource> lengths_;
  PrefixSettings prefix_;
  RandomStream prefixes_;
  std::vector<int32_t> order_;  // prefixes of all requests, where each is used equally often
  int64_t left_ = 0;
  int64_t next_id_ = 0;
};

}  // namespace

void check_prefixes(const PrefixSettings& prefix) {
  if (prefix.tokens < 0 || prefix.tokens > most_prefix_tokens) {
    throw InputError({.field = "random_prefix_len",
                      .value = std::to_string(prefix.tokens),
                      .expected = fmt::format("a number of tokens from 0 to {}", most_prefix_tokens)});
  }
  if (prefix.count < 1 || prefix.count > most_prefixes) {
    throw InputError({.field = "prefix_repetition_num_prefixes",
                      .value = std::to_string(prefix.count),
                      .expected = fmt::format("a number from 1 to {}", most_prefixes)});
  }
}

std::unique_ptr<RequestSource> synthetic_load(const ArrivalSettings& arrivals, std::unique_ptr<LengthSource> lengths,
                                              const PrefixSettings& prefix, uint64_t seed) {
  return std::make_unique<SyntheticLoad>(arrivals, std::move(lengths), prefix, seed);
}

}  // namespace foretoken
