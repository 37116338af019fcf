#include "plan/accelerator/searchers/list.h"

namespace foretoken {
namespace {

class ExhaustiveSearcher final : public DesignSearcher {
 public:
  ExhaustiveSearcher(const ChoiceGrid& grid, uint64_t seed) : fresh_(grid, RandomStream(seed, "all designs")) {}

  std::vector<DesignPoint> ask(size_t count) override {
    std::vector<DesignPoint> points;
    for (; points.size() < count && static_cast<double>(next_) < fresh_.grid().size(); ++next_) {
      DesignPoint point = fresh_.grid().at(next_);
      if (fresh_.take(point)) points.push_back(std::move(point));
    }
    return points;
  }

  void tell(std::span<const JudgedPoint> judged) override {
    for (const JudgedPoint& own : judged) fresh_.mark(own.point);
  }

 private:
  FreshPoints fresh_;
  int64_t next_ = 0;
};

}  // namespace

std::unique_ptr<DesignSearcher> make_exhaustive_searcher(const ChoiceGrid& grid, uint64_t seed) {
  return std::make_unique<ExhaustiveSearcher>(grid, seed);
}

}  // namespace foretoken
