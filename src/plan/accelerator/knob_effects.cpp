#include "plan/accelerator/knob_effects.h"

#include <algorithm>

#include "base/portable_math.h"

namespace foretoken {
namespace {

constexpr int backfitting_rounds = 50;

}  // namespace

std::vector<KnobEffect> knob_effects(const DesignObjective& objective, std::span<const EvaluatedDesign> designs,
                                     std::span<const int> choices) {
  std::vector<const EvaluatedDesign*> usable;
  std::vector<double> rest;  // what the terms so far leave of the logarithms
  double mean = 0;
  for (const EvaluatedDesign& own : designs) {
    if (!own.costs.is_usable()) continue;
    usable.push_back(&own);
    rest.push_back(portable_log(objective.value(own.costs.run)));
    mean += rest.back();
  }
  if (usable.empty()) return {};
  mean /= static_cast<double>(usable.size());
  for (double& own : rest) own -= mean;

  std::vector<std::vector<double>> terms;
  for (const int count : choices) terms.emplace_back(count, 0.0);
  std::vector<std::vector<size_t>> seen;
  for (size_t k = 0; k < choices.size(); ++k) {
    seen.emplace_back(choices[k], 0);
    for (const EvaluatedDesign* own : usable) ++seen[k][own->point[k]];
  }
  for (int round = 0; round < backfitting_rounds; ++round) {
    for (size_t k = 0; k < choices.size(); ++k) {
      std::vector<double> sums(choices[k], 0.0);
      for (size_t i = 0; i < usable.size(); ++i) {
        const int value = usable[i]->point[k];
        sums[value] += rest[i] + terms[k][value];
      }
      for (int value = 0; value < choices[k]; ++value) {
        sums[value] /= static_cast<double>(seen[k][value] + 1);
      }
      for (size_t i = 0; i < usable.size(); ++i) {
        const int value = usable[i]->point[k];
        rest[i] += terms[k][value] - sums[value];
      }
      terms[k] = std::move(sums);
    }
  }

  std::vector<KnobEffect> effects;
  for (size_t k = 0; k < choices.size(); ++k) {
    KnobEffect effect{.knob = k, .seen = seen[k]};
    double least = 0, most = 0;
    bool any = false;
    for (int value = 0; value < choices[k]; ++value) {
      effect.factors.push_back(portable_exp(terms[k][value]));
      if (seen[k][value] == 0) continue;
      if (!any || terms[k][value] < least) {
        least = terms[k][value];
        effect.best = value;
      }
      most = any ? std::max(most, terms[k][value]) : terms[k][value];
      any = true;
    }
    effect.ratio = portable_exp(most - least);
    effects.push_back(std::move(effect));
  }
  std::stable_sort(effects.begin(), effects.end(),
                   [](const KnobEffect& a, const KnobEffect& b) { return a.ratio > b.ratio; });
  return effects;
}

}  // namespace foretoken
