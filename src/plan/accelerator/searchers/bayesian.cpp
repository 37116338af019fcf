#include <algorithm>
#include <limits>
#include <numeric>

#include "plan/accelerator/gaussian_process.h"
#include "plan/accelerator/searchers/list.h"

namespace foretoken {
namespace {

constexpr size_t random_candidates = 300;
constexpr size_t climbed_points = 8;  // the best, all of whose neighbours are candidates
constexpr size_t most_known = 256;    // points that the process is given: the best half and the latest half
constexpr double value_noise = 1e-3;  // mappings are searched, not proven: their values jitter
constexpr double first_length = 0.6;

class BayesianSearcher final : public DesignSearcher {
 public:
  BayesianSearcher(const ChoiceGrid& grid, uint64_t seed)
      : fresh_(grid, RandomStream(seed, "bayesian designs")), lengths_(grid.choices.size(), first_length) {}

  std::vector<DesignPoint> ask(size_t count) override {
    if (told_.size() < first_points()) return fresh_.take_any(std::min(count, first_points() - told_.size()));
    std::vector<double> scores = single_scores(told_, fresh_.stream().uniform());
    const std::vector<size_t> ranking = best_first(scores);
    if (scores[ranking.front()] == std::numeric_limits<double>::infinity()) return fresh_.take_any(count);
    cap_unusable(scores, ranking);

    std::vector<std::vector<double>> points;
    std::vector<double> values;
    for (const size_t i : chosen(ranking)) {
      points.push_back(coordinates(told_[i].point));
      values.push_back(scores[i]);
    }
    GaussianProcess process = with_better_lengths(points, values, lengths_, value_noise);
    lengths_.assign(process.lengths().begin(), process.lengths().end());

    std::set<DesignPoint> candidates = candidates_near(ranking);
    std::vector<DesignPoint> asked;
    while (asked.size() < count && !candidates.empty()) {
      const auto best = most_promising(candidates, process, scores[ranking.front()]);
      process = process.believing(coordinates(*best));
      fresh_.mark(*best);
      asked.push_back(*best);
      candidates.erase(best);
    }
    return asked;
  }

  void tell(std::span<const JudgedPoint> judged) override {
    for (const JudgedPoint& own : judged) {
      fresh_.mark(own.point);
      told_.push_back(own);
    }
  }

 private:
  size_t first_points() const { return 4 + 2 * lengths_.size(); }

  static std::vector<size_t> best_first(const std::vector<double>& scores) {
    std::vector<size_t> ranking(scores.size());
    std::iota(ranking.begin(), ranking.end(), size_t{0});
    std::stable_sort(ranking.begin(), ranking.end(), [&](size_t a, size_t b) { return scores[a] < scores[b]; });
    return ranking;
  }

  // What cannot be used counts as the worst that can: the process knows no infinity.
  static void cap_unusable(std::vector<double>& scores, const std::vector<size_t>& ranking) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    double worst = scores[ranking.front()];
    for (const double score : scores) {
      if (score < infinity) worst = std::max(worst, score);
    }
    for (double& score : scores) score = std::min(score, worst);
  }

  std::vector<size_t> chosen(const std::vector<size_t>& ranking) const {
    if (ranking.size() <= most_known) return ranking;
    std::vector<size_t> all(ranking.begin(), ranking.begin() + most_known / 2);
    for (size_t i = ranking.size(); i-- > 0 && all.size() < most_known;) {
      if (std::find(all.begin(), all.begin() + most_known / 2, i) == all.begin() + most_known / 2) all.push_back(i);
    }
    return all;
  }

  // Each knob from 0 to 1, its values evenly apart: they are mostly powers.
  std::vector<double> coordinates(const DesignPoint& point) const {
    std::vector<double> place;
    for (size_t k = 0; k < point.size(); ++k) {
      place.push_back(static_cast<double>(point[k]) / std::max(1, fresh_.grid().choices[k] - 1));
    }
    return place;
  }

  std::set<DesignPoint> candidates_near(const std::vector<size_t>& ranking) {
    std::set<DesignPoint> candidates;
    for (size_t i = 0; i < random_candidates; ++i) {
      auto point = fresh_.draw();
      if (!point) break;
      candidates.insert(std::move(*point));
    }
    for (size_t i = 0; i < std::min(climbed_points, ranking.size()); ++i) {
      DesignPoint near = told_[ranking[i]].point;
      for (size_t k = 0; k < near.size(); ++k) {
        const int own = near[k];
        for (int other = 0; other < fresh_.grid().choices[k]; ++other) {
          near[k] = other;
          if (fresh_.is_fresh(near)) candidates.insert(near);
        }
        near[k] = own;
      }
    }
    return candidates;
  }

  std::set<DesignPoint>::const_iterator most_promising(const std::set<DesignPoint>& candidates,
                                                       const GaussianProcess& process, double best) const {
    auto found = candidates.begin();
    double most = -1;
    for (auto at = candidates.begin(); at != candidates.end(); ++at) {
      const double gain = expected_improvement(process.guess(coordinates(*at)), best);
      if (gain <= most) continue;
      most = gain;
      found = at;
    }
    return found;
  }

  FreshPoints fresh_;
  std::vector<JudgedPoint> told_;
  std::vector<double> lengths_;  // of the process, from round to round
};

}  // namespace

std::unique_ptr<DesignSearcher> make_bayesian_searcher(const ChoiceGrid& grid, uint64_t seed) {
  return std::make_unique<BayesianSearcher>(grid, seed);
}

}  // namespace foretoken
