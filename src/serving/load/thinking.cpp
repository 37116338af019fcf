#include "serving/load/thinking.h"

#include <utility>

#include "base/random.h"

namespace foretoken {
namespace {

class ThinkingLengths final : public LengthSource {
 public:
  ThinkingLengths(std::unique_ptr<LengthSource> inner, const ThinkingSettings& settings, uint64_t seed)
      : inner_(std::move(inner)), settings_(settings), random_(seed, "thinking") {}

  RequestLengths next() override {
    RequestLengths lengths = inner_->next();
    if (random_.uniform() >= settings_.share) return lengths;
    const bool hard = random_.uniform() < settings_.hard_share;
    lengths.thinking_tokens = draw_length(hard ? settings_.hard : settings_.usual, random_);
    lengths.output_tokens += lengths.thinking_tokens;
    return lengths;
  }

 private:
  std::unique_ptr<LengthSource> inner_;
  ThinkingSettings settings_;
  RandomStream random_;
};

}  // namespace

std::unique_ptr<LengthSource> with_thinking(std::unique_ptr<LengthSource> inner, const ThinkingSettings& settings,
                                            uint64_t seed) {
  return std::make_unique<ThinkingLengths>(std::move(inner), settings, seed);
}

}  // namespace foretoken
