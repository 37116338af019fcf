// How a router spreads tokens over experts: how many experts of a rank wake up, and how many (token, expert) pairs it
// gets.
#include "model/expert_load.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <numeric>
#include <unordered_map>
#include <vector>

#include "base/portable_math.h"
#include "base/random.h"
#include "model/expert_popularity.h"
#include "model/work.h"

namespace foretoken {
namespace {

// Token t sends its i-th copy to expert (t + i ceil(E/top_k)) mod E; fewer tokens than that stride are spread over it.
// Counted for the rank that holds experts 0 .. E/ep.
ExpertLoad balanced_load(int64_t tokens, int64_t top_k, int64_t experts, int64_t local) {
  const int64_t stride = (experts + top_k - 1) / top_k;
  ExpertLoad load;
  if (tokens >= stride) {  // every expert is hit
    for (int64_t slot = 0; slot < top_k; ++slot) {
      const int64_t start = slot * stride % experts;
      // Of start .. start + tokens - 1, those below `local` modulo `experts`.
      const auto below = [&](int64_t end) { return end / experts * local + std::min(end % experts, local); };
      load.pairs += static_cast<double>(below(start + tokens) - below(start));
    }
    load.active_experts = static_cast<double>(local);
    return load;
  }
  std::vector<bool> hit(static_cast<size_t>(local), false);
  for (int64_t slot = 0; slot < top_k; ++slot) {
    for (int64_t token = 0; token < tokens; ++token) {
      const int64_t expert = (token * stride / tokens + slot * stride) % experts;
      if (expert >= local) continue;
      load.pairs += 1;
      if (!hit[static_cast<size_t>(expert)]) load.active_experts += 1;
      hit[static_cast<size_t>(expert)] = true;
    }
  }
  return load;
}

// Expected largest of 2^i normal variates, in deviations.
constexpr double largest_normal[] = {0, 0.5642, 1.0294, 1.4236, 1.7660, 2.0697, 2.3437, 2.5946, 2.8269};

// Each token chooses top_k of the experts, all equally likely: some get none while others get several. Of several ranks
// the most loaded one counts, since the others wait for it.
ExpertLoad random_load(double tokens, double top_k, double experts, double local) {
  const double missed = portable_exp(tokens * portable_log(std::max(1 - top_k / experts, 1e-300)));
  const double share = local / experts, mean = tokens * top_k * share;
  const double doublings =
      std::min(portable_log(experts / local) / portable_log(2.0), static_cast<double>(std::size(largest_normal) - 1));
  const auto below = std::min(static_cast<size_t>(doublings), std::size(largest_normal) - 2);
  const double largest = largest_normal[below] +
                         (doublings - static_cast<double>(below)) * (largest_normal[below + 1] - largest_normal[below]);
  const double pairs = mean + largest * std::sqrt(mean * (1 - share));
  return {.active_experts = local * (1 - missed), .pairs = std::min(pairs, tokens * std::min(top_k, local))};
}

}  // namespace

std::vector<int64_t> power_law_counts(int64_t tokens, int64_t top_k, int64_t experts, double exponent) {
  const auto size = static_cast<size_t>(experts);
  const int64_t pairs = tokens * top_k;
  const bool dense = pairs > experts;
  const double low = dense ? 1 : 0.01;
  const double high = dense ? std::max(1.001, 0.8 * static_cast<double>(tokens)) : 2;
  std::vector<double> share = power_law_quantiles(size, exponent, low, high);
  const double scale = static_cast<double>(pairs) / std::accumulate(share.begin(), share.end(), 0.0);
  std::vector<int64_t> counts(size);
  std::vector<size_t> order(size);
  int64_t left = pairs;
  for (size_t i = 0; i < size; ++i) {
    share[i] *= scale;
    counts[i] = std::min(tokens, static_cast<int64_t>(share[i] + 1e-9));
    share[i] -= static_cast<double>(counts[i]);
    left -= counts[i];
    order[i] = i;
  }
  // Largest fractions first; among equals the larger load. Rounding down leaves less than one pair per expert, so that
  // without the cap only the first `left` matter.
  const auto before = [&](size_t a, size_t b) { return share[a] != share[b] ? share[a] > share[b] : a > b; };
  if (left < experts) {
    std::nth_element(order.begin(), order.begin() + left, order.end(), before);
  } else {
    std::sort(order.begin(), order.end(), before);
  }
  while (left > 0) {  // more than a round only where the cap took from the largest
    const auto open = experts - std::count(counts.begin(), counts.end(), tokens);
    if (open == 0) break;  // every expert has every token
    const int64_t each = std::max<int64_t>(1, left / open);
    for (const size_t i : order) {
      const int64_t more = std::min({each, left, tokens - counts[i]});
      counts[i] += more;
      left -= more;
    }
  }
  return counts;
}

namespace {

// The most loaded of ep ranks, averaged over placements of the experts: eight of them were up to 15% off.
ExpertLoad power_law_load(int64_t tokens, int64_t top_k, int64_t experts, int64_t local, double exponent) {
  std::vector<int64_t> counts = power_law_counts(tokens, top_k, experts, exponent);
  constexpr int placements = 64;
  const int rounds = local == experts ? 1 : placements;
  RandomStream stream(0, "expert placement");
  double pairs = 0, active = 0;
  for (int round = 0; round < rounds; ++round) {
    shuffle(counts, stream);
    int64_t most = -1, most_active = 0;
    for (auto rank = counts.begin(); counts.end() - rank >= local; rank += local) {
      const int64_t sum = std::accumulate(rank, rank + local, int64_t{0});
      if (sum <= most) continue;
      most = sum;
      most_active = local - std::count(rank, rank + local, 0);
    }
    pairs += static_cast<double>(most);
    active += static_cast<double>(most_active);
  }
  return {.active_experts = active / rounds, .pairs = pairs / rounds};
}

struct Question {
  int64_t tokens = 0, top_k = 0, experts = 0, local = 0;
  double exponent = 0;
  std::shared_ptr<const ExpertPopularity> popularity = nullptr;  // of scattered experts
  bool operator==(const Question&) const = default;
};

struct QuestionHash {
  size_t operator()(const Question& question) const {
    uint64_t hash = std::hash<double>()(question.exponent) ^
                    std::hash<std::shared_ptr<const ExpertPopularity>>()(question.popularity);
    for (const int64_t part : {question.tokens, question.top_k, question.experts, question.local}) {
      hash = (hash ^ static_cast<uint64_t>(part)) * 0x9E3779B97F4A7C15u;
      hash ^= hash >> 32;
    }
    return hash;
  }
};

// Ranks differ by the popularity of their experts and, in every step, by chance: both shift the busiest one, and being
// independent they add up like deviations.
ExpertLoad scattered_load_and_chance(const Question& question) {
  const int64_t ranks = std::max<int64_t>(1, question.experts / question.local);
  const auto tokens = static_cast<double>(question.tokens), top_k = static_cast<double>(question.top_k);
  const auto experts = static_cast<double>(question.experts), local = static_cast<double>(question.local);
  const ExpertLoad load = popularity_load(*question.popularity, tokens, question.top_k, ranks);
  const double mean = tokens * top_k * local / experts;
  const double popular = load.pairs - mean, chance = random_load(tokens, top_k, experts, local).pairs - mean;
  const double pairs = std::min(mean + std::sqrt(popular * popular + chance * chance), tokens * std::min(top_k, local));
  // The rank that got more by chance has more experts at work, too: as many as if more tokens had come.
  const double as_if = tokens * pairs / load.pairs;
  return {.active_experts = popularity_load(*question.popularity, as_if, question.top_k, ranks).active_experts,
          .pairs = pairs};
}

ExpertLoad solve(const Question& question) {
  const auto& [tokens, top_k, experts, local, exponent, popularity] = question;
  if (popularity != nullptr) return scattered_load_and_chance(question);
  return exponent > 0 ? power_law_load(tokens, top_k, experts, local, exponent)
                      : balanced_load(tokens, top_k, experts, local);
}

}  // namespace

ExpertLoad expert_load(const MoeShape& shape) {
  const int64_t experts = std::max<int64_t>(1, shape.experts);
  Question question{.tokens = shape.tokens,
                    .top_k = std::min(shape.top_k, experts),
                    .experts = experts,
                    .local = std::max<int64_t>(1, experts / std::max<int64_t>(1, shape.ep)),
                    .exponent = shape.routing == Routing::power_law ? shape.power_law_exponent : 0};
  if (question.tokens <= 0 || question.top_k <= 0) return {};
  if (shape.routing == Routing::measured && shape.popularity->scattered) {
    question.popularity = shape.popularity;
  } else if (shape.routing == Routing::measured) {
    ExpertLoad load = popularity_load(*shape.popularity, static_cast<double>(question.tokens), question.top_k,
                                      std::max<int64_t>(1, shape.ep));
    const ExpertLoad chance = random_load(static_cast<double>(question.tokens), static_cast<double>(question.top_k),
                                          static_cast<double>(experts), static_cast<double>(question.local));
    load.pairs = std::max(load.pairs, chance.pairs);  // even alike experts are not alike in every step
    return load;
  }
  if (shape.routing == Routing::random) {
    return random_load(static_cast<double>(question.tokens), static_cast<double>(question.top_k),
                       static_cast<double>(experts), static_cast<double>(question.local));
  }
  constexpr int64_t most_tokens = int64_t{1} << 40;
  if (experts > most_experts_of_a_layer ||
      question.tokens > most_tokens) {  // beyond any real layer: an even spread will do
    const auto local = static_cast<double>(question.local);
    const double pairs = static_cast<double>(question.tokens) * static_cast<double>(question.top_k) * local /
                         static_cast<double>(experts);
    return {.active_experts = std::min(local, pairs), .pairs = pairs};
  }

  const bool is_quick =
      question.popularity == nullptr && question.exponent <= 0 && question.tokens * question.top_k >= experts;
  if (is_quick) return solve(question);
  // A table of measurements asks the same thing for every width and dtype: remember answers. The answer is a function
  // of the question alone, so it does not matter what is remembered.
  constexpr size_t most_remembered = 20'000;
  thread_local std::unordered_map<Question, ExpertLoad, QuestionHash> remembered;
  if (const auto found = remembered.find(question); found != remembered.end()) return found->second;
  if (remembered.size() >= most_remembered) remembered.clear();
  return remembered[question] = solve(question);
}

}  // namespace foretoken
