#include "kernel/benchmark_routing.h"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <numeric>
#include <tuple>
#include <vector>

#include "base/random.h"
#include "model/expert_load.h"
#include "model/expert_popularity.h"

namespace foretoken {
namespace {

constexpr int64_t expert_count_of_deepseek = 256, choices = 8;
constexpr int64_t group_count = 8, kept_groups = 4, group_size = expert_count_of_deepseek / group_count;
constexpr int64_t kept_experts = kept_groups * group_size;
constexpr int64_t tied_choices = choices - kept_groups;  // the first experts, which every token of an even load gets

using Popularity = std::shared_ptr<const ExpertPopularity>;
using Choices = std::array<int64_t, choices>;

bool is_deepseek_v3(const MoeShape& shape) {
  return shape.hidden == 7168 && shape.inter == 2048 && shape.experts == expert_count_of_deepseek &&
         shape.top_k == choices;
}

bool is_timed_by_vllm(std::string_view kernel) {
  constexpr std::string_view names[] = {"triton", "fi_cutlass", "fi_trtllm", "fi_trtllm_mod", "fi_trtllm_mono"};
  return std::find(std::begin(names), std::end(names), kernel) != std::end(names);
}

Popularity even_scores_in_groups() {
  ExpertPopularity popularity{.shares = std::vector<double>(expert_count_of_deepseek, 0.0), .takes_turns = true};
  constexpr double tied_share = 1.0 / choices;
  constexpr double other_share = (1 - tied_choices * tied_share) / (kept_experts - tied_choices);
  for (int64_t i = 0; i < kept_experts; ++i) {
    popularity.shares[static_cast<size_t>(i)] = i < tied_choices ? tied_share : other_share;
  }
  return std::make_shared<const ExpertPopularity>(std::move(popularity));
}

// The groups with the largest sums of their two best scores, and of equal ones the first.
std::array<bool, group_count> groups_that_stay(const Choices& chosen) {
  std::array<int64_t, group_count> scores{};
  for (const int64_t expert : chosen) ++scores[static_cast<size_t>(expert / group_size)];
  std::array<bool, group_count> stays{};
  int64_t left = kept_groups;
  for (const int64_t least : {2, 1, 0}) {
    for (size_t group = 0; group < scores.size() && left > 0; ++group) {
      if (stays[group] || scores[group] < least) continue;
      stays[group] = true;
      --left;
    }
  }
  return stays;
}

// Counts the experts that tokens get, so many of them with the same choices of the benchmark.
void route_tokens(const Choices& chosen, double tokens, std::vector<double>& counts) {
  const std::array<bool, group_count> stays = groups_that_stay(chosen);
  int64_t left = choices;
  const auto is_chosen = [&](int64_t expert) {
    return std::find(chosen.begin(), chosen.end(), expert) != chosen.end();
  };
  for (const int64_t expert : chosen) {
    if (!stays[static_cast<size_t>(expert / group_size)]) continue;
    counts[static_cast<size_t>(expert)] += tokens;
    --left;
  }
  for (int64_t expert = 0; left > 0; ++expert) {
    if (!stays[static_cast<size_t>(expert / group_size)] || is_chosen(expert)) continue;
    counts[static_cast<size_t>(expert)] += tokens;
    --left;
  }
}

// Tokens of each expert where the benchmark wants `counts` for them: experts, the busiest first, fill the first choice
// of all tokens, then the second and so on. Between two ends of such runs all tokens have the same choices.
std::vector<double> route_counts(const std::vector<int64_t>& counts, int64_t tokens) {
  std::vector<size_t> order(counts.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return counts[a] > counts[b]; });
  std::vector<int64_t> ends, starts = {tokens};  // of runs, and of tokens with the same choices
  int64_t sum = 0;
  for (const size_t expert : order) {
    ends.push_back(sum += counts[expert]);
    starts.push_back(sum % tokens);
  }
  std::sort(starts.begin(), starts.end());
  starts.erase(std::unique(starts.begin(), starts.end()), starts.end());
  std::vector<double> routed(counts.size(), 0.0);
  for (size_t i = 0; i + 1 < starts.size(); ++i) {
    Choices chosen{};
    for (int64_t choice = 0; choice < choices; ++choice) {
      const auto run = std::upper_bound(ends.begin(), ends.end(), choice * tokens + starts[i]);
      chosen[static_cast<size_t>(choice)] = static_cast<int64_t>(order[static_cast<size_t>(run - ends.begin())]);
    }
    route_tokens(chosen, static_cast<double>(starts[i + 1] - starts[i]), routed);
  }
  return routed;
}

// The rank that the benchmark loads the most comes first; averaged over placements of the experts, by order of load.
Popularity power_law_in_groups(int64_t tokens, int64_t ranks, double exponent) {
  std::vector<int64_t> counts = power_law_counts(tokens, choices, expert_count_of_deepseek, exponent);
  const auto local = std::max<int64_t>(1, expert_count_of_deepseek / std::max<int64_t>(1, ranks));
  ExpertPopularity popularity{.shares = std::vector<double>(expert_count_of_deepseek, 0.0), .takes_turns = true};
  constexpr int placements = 32;
  const double share_of_one = static_cast<double>(placements * choices * tokens);
  RandomStream stream(0, "expert placement");
  for (int placement = 0; placement < placements; ++placement) {
    shuffle(counts, stream);
    auto busiest = counts.begin();
    int64_t most = -1;
    for (auto rank = counts.begin(); counts.end() - rank >= local; rank += local) {
      const int64_t sum = std::accumulate(rank, rank + local, int64_t{0});
      if (sum > most) busiest = rank;
      most = std::max(most, sum);
    }
    if (busiest != counts.begin()) std::swap_ranges(counts.begin(), counts.begin() + local, busiest);
    std::vector<double> routed = route_counts(counts, tokens);
    std::sort(routed.begin(), routed.begin() + local, std::greater<>());
    for (size_t i = 0; i < routed.size(); ++i) popularity.shares[i] += routed[i] / share_of_one;
  }
  return std::make_shared<const ExpertPopularity>(std::move(popularity));
}

Popularity remembered_power_law(const MoeShape& shape) {
  // A table asks the same thing for every width and dtype. The answer is a function of the question alone.
  constexpr size_t most_remembered = 20'000;
  thread_local std::map<std::tuple<int64_t, int64_t, double>, Popularity> remembered;
  const std::tuple question(shape.tokens, shape.ep, shape.power_law_exponent);
  if (const auto found = remembered.find(question); found != remembered.end()) return found->second;
  if (remembered.size() >= most_remembered) remembered.clear();
  return remembered[question] = power_law_in_groups(shape.tokens, shape.ep, shape.power_law_exponent);
}

}  // namespace

void route_as_benchmarked(MoeShape& shape, std::string_view kernel) {
  if (!is_deepseek_v3(shape) || !is_timed_by_vllm(kernel) || shape.tokens <= 0) return;
  if (shape.routing != Routing::balanced && shape.routing != Routing::power_law) return;
  static const Popularity even = even_scores_in_groups();
  shape.popularity = shape.routing == Routing::balanced ? even : remembered_power_law(shape);
  shape.routing = Routing::measured;
}

}  // namespace foretoken
