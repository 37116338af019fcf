#include <algorithm>
#include <numeric>

#include "plan/accelerator/searchers/list.h"

namespace foretoken {
namespace {

// Small, for budgets of tens to hundreds of designs: in a large population parents are hardly better than chance until
// several hundred designs are known.
constexpr size_t first_generation = 10;  // drawn at random
constexpr size_t population_size = 10;   // the best of all so far; nothing good dies
constexpr int most_attempts = 20;        // at a child that is new
constexpr double crossover_share = 0.9;
constexpr double short_step_share = 0.5;  // of mutations: to a neighbouring value; others to any

class GeneticSearcher final : public DesignSearcher {
 public:
  GeneticSearcher(const ChoiceGrid& grid, uint64_t seed) : fresh_(grid, RandomStream(seed, "genetic designs")) {}

  std::vector<DesignPoint> ask(size_t count) override {
    choose_population();
    std::vector<DesignPoint> points;
    while (points.size() < count) {
      std::optional<DesignPoint> point;
      for (int i = 0; i < most_attempts && !point && told_.size() >= first_generation; ++i) {
        DesignPoint born = child();
        if (fresh_.is_fresh(born)) point = std::move(born);
      }
      if (!point) point = fresh_.draw();
      if (!point) break;
      fresh_.mark(*point);
      points.push_back(*point);
    }
    return points;
  }

  void tell(std::span<const JudgedPoint> judged) override {
    for (const JudgedPoint& own : judged) {
      fresh_.mark(own.point);
      told_.push_back(own);
    }
  }

 private:
  void choose_population() {
    scores_ = single_scores(told_, fresh_.stream().uniform());
    population_.resize(told_.size());
    std::iota(population_.begin(), population_.end(), size_t{0});
    std::stable_sort(population_.begin(), population_.end(),
                     [&](size_t a, size_t b) { return scores_[a] < scores_[b]; });
    population_.resize(std::min(population_.size(), population_size));
  }

  // The better of two.
  const DesignPoint& parent() {
    const size_t a = fresh_.stream().below(population_.size()), b = fresh_.stream().below(population_.size());
    return told_[population_[std::min(a, b)]].point;
  }

  DesignPoint child() {
    RandomStream& stream = fresh_.stream();
    DesignPoint own = parent();
    if (stream.uniform() < crossover_share) {
      const DesignPoint& other = parent();
      for (size_t k = 0; k < own.size(); ++k) {
        if (stream.below(2) == 1) own[k] = other[k];
      }
    }
    for (size_t k = 0; k < own.size(); ++k) {
      if (stream.below(own.size()) != 0) continue;
      const int choices = fresh_.grid().choices[k];
      if (stream.uniform() < short_step_share) {
        own[k] = std::clamp(own[k] + (stream.below(2) == 1 ? 1 : -1), 0, choices - 1);
      } else {
        own[k] = static_cast<int>(stream.below(choices));
      }
    }
    return own;
  }

  FreshPoints fresh_;
  std::vector<JudgedPoint> told_;
  std::vector<double> scores_;      // of told_, for this generation
  std::vector<size_t> population_;  // places in told_, best first
};

}  // namespace

std::unique_ptr<DesignSearcher> make_genetic_searcher(const ChoiceGrid& grid, uint64_t seed) {
  return std::make_unique<GeneticSearcher>(grid, seed);
}

}  // namespace foretoken
