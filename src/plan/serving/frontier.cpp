#include "plan/serving/frontier.h"

#include <algorithm>

namespace foretoken {
namespace {

// Of what the frontier is about: lower is better; nothing where it is not known.
std::optional<double> measured_by(const ServingQuestion& question, FrontierMeasure measure, const PlanPoint& point,
                                  const PlanRun& run) {
  switch (measure) {
    case FrontierMeasure::work:
      return -run.output_tokens_per_s / static_cast<double>(point.layout.devices());
    case FrontierMeasure::cost:
      return usd_per_million_tokens(question, point.layout, run);
    case FrontierMeasure::energy:
      return run.joules_per_token.value > 0 ? std::optional(run.joules_per_token.value) : std::nullopt;
  }
  return std::nullopt;
}

void mark_best(const ServingQuestion& question, std::span<const PlanPoint> points, FrontierMeasure measure,
               std::vector<FrontierRun>& runs) {
  const auto value = [&](const FrontierRun& one) {
    const PlanPoint& point = points[one.point];
    return measured_by(question, measure, point, point.runs[one.run]);
  };
  std::vector<size_t> order;
  for (size_t i = 0; i < runs.size(); ++i) {
    if (value(runs[i])) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return runs[a].tokens_per_s_of_user != runs[b].tokens_per_s_of_user
               ? runs[a].tokens_per_s_of_user > runs[b].tokens_per_s_of_user
               : value(runs[a]) < value(runs[b]);
  });
  std::optional<double> best;
  for (const size_t i : order) {
    const double own = *value(runs[i]);
    if (best && own >= *best) continue;
    best = own;
    runs[i].best_in[static_cast<size_t>(measure)] = true;
  }
}

}  // namespace

std::vector<FrontierRun> frontier_of(const ServingQuestion& question, std::span<const PlanPoint> points) {
  std::vector<FrontierRun> all;
  for (size_t i = 0; i < points.size(); ++i) {
    const PlanPoint& point = points[i];
    for (size_t j = 0; j < point.runs.size(); ++j) {
      const PlanRun& run = point.runs[j];
      if (!run.attained || run.tokens_per_s_of_user == 0) continue;
      all.push_back({.point = i,
                     .run = j,
                     .tokens_per_s_of_user = run.tokens_per_s_of_user,
                     .tokens_per_s_of_device = run.output_tokens_per_s / static_cast<double>(point.layout.devices())});
    }
  }
  for (const FrontierMeasure measure : {FrontierMeasure::work, FrontierMeasure::cost, FrontierMeasure::energy}) {
    mark_best(question, points, measure, all);
  }
  std::erase_if(all, [](const FrontierRun& one) {
    return std::find(one.best_in.begin(), one.best_in.end(), true) == one.best_in.end();
  });
  std::stable_sort(all.begin(), all.end(), [](const FrontierRun& a, const FrontierRun& b) {
    return a.tokens_per_s_of_user > b.tokens_per_s_of_user;
  });
  return all;
}

}  // namespace foretoken
