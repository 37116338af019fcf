#include "plan/accelerator/searchers/list.h"

namespace foretoken {
namespace {

class RandomSearcher final : public DesignSearcher {
 public:
  RandomSearcher(const ChoiceGrid& grid, uint64_t seed) : fresh_(grid, RandomStream(seed, "random designs")) {}

  std::vector<DesignPoint> ask(size_t count) override { return fresh_.take_any(count); }

  void tell(std::span<const JudgedPoint> judged) override {
    for (const JudgedPoint& own : judged) fresh_.mark(own.point);
  }

 private:
  FreshPoints fresh_;
};

}  // namespace

std::unique_ptr<DesignSearcher> make_random_searcher(const ChoiceGrid& grid, uint64_t seed) {
  return std::make_unique<RandomSearcher>(grid, seed);
}

}  // namespace foretoken
