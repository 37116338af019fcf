#include "serving/load/passages.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/random.h"
#include "base/text.h"
#include "serving/load/changed_source.h"
#include "serving/load/synthetic.h"

namespace foretoken {
namespace {

class PassageSource final : public ChangedSource {
 public:
  PassageSource(std::unique_ptr<RequestSource> inner, const PassageSettings& settings, uint64_t seed)
      : ChangedSource(std::move(inner)),
        settings_(settings),
        popularity_(static_cast<size_t>(settings.corpus), settings.skew),
        random_(seed, "passages") {}

 protected:
  void change(Request& request) override {
    if (request.prefix_block_tokens != 0 && request.prefix_block_tokens != made_up_block_tokens) {
      throw InputError(
          {.field = "rag_passages",
           .value = fmt::format("a load with a block number for every {} tokens", request.prefix_block_tokens),
           .expected = "a load whose prompts have no block numbers"});
    }
    request.prefix_block_tokens = made_up_block_tokens;
    request.input_tokens += settings_.per_request * settings_.tokens;
    const std::vector<int64_t> found = find();
    const int64_t blocks = settings_.per_request * settings_.tokens / made_up_block_tokens;
    for (int64_t block = 0; block < blocks; ++block) {
      // A block belongs to the passage of its last token; what stands before that is told by the block before it.
      const int64_t passage = ((block + 1) * made_up_block_tokens - 1) / settings_.tokens;
      request.prefix_blocks.push_back(first_number + found[static_cast<size_t>(passage)]);
    }
  }

 private:
  static constexpr int64_t first_number = int64_t{1} << 60;  // beyond those of shared prefixes

  // Different ones: where one is found again, the next in popularity takes its place.
  std::vector<int64_t> find() {
    std::vector<int64_t> found;
    while (static_cast<int64_t>(found.size()) < settings_.per_request) {
      auto passage = static_cast<int64_t>(popularity_.draw(random_)) - 1;
      while (std::find(found.begin(), found.end(), passage) != found.end()) passage = (passage + 1) % settings_.corpus;
      found.push_back(passage);
    }
    if (settings_.popular_first) std::sort(found.begin(), found.end());
    return found;
  }

  PassageSettings settings_;
  Zipf popularity_;
  RandomStream random_;
};

}  // namespace

void check_passages(const PassageSettings& settings) {
  const auto check = [](bool holds, const char* field, double value, const std::string& expected) {
    if (!holds) throw InputError({.field = field, .value = number_text(value), .expected = expected});
  };
  const auto within = [&](const char* field, int64_t value, int64_t least, int64_t most) {
    check(value >= least && value <= most, field, static_cast<double>(value),
          fmt::format("a number from {} to {}", least, most));
  };
  within("rag_passages", settings.per_request, 1, most_passages_of_request);
  within("rag_passage_len", settings.tokens, made_up_block_tokens, most_passage_tokens);
  within("rag_corpus", settings.corpus, settings.per_request, most_passages);
  check(settings.skew >= 0 && settings.skew <= 10, "rag_skew", settings.skew, "a number from 0 to 10");
}

std::unique_ptr<RequestSource> with_passages(std::unique_ptr<RequestSource> inner, const PassageSettings& settings,
                                             uint64_t seed) {
  check_passages(settings);
  return std::make_unique<PassageSource>(std::move(inner), settings, seed);
}

}  // namespace foretoken
