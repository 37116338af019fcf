#include "model/expert_popularity.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <numeric>
#include <queue>
#include <span>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "base/portable_math.h"
#include "base/random.h"

namespace foretoken {
namespace {

// How likely a token chooses each expert: never twice, so what is too much for popular ones falls to the others.
std::vector<double> chosen_by_a_token(const std::vector<double>& shares, int64_t top_k) {
  std::vector<double> chosen(shares.size(), 0.0);
  const auto wanted = std::min(static_cast<double>(top_k), static_cast<double>(shares.size()));
  double sure = 0, rest = 1;  // chosen by every token, and the shares of the others
  for (bool more = true; more;) {
    more = false;
    const double scale = rest > 0 ? (wanted - sure) / rest : 0;
    for (size_t i = 0; i < shares.size(); ++i) {
      if (chosen[i] == 1) continue;
      chosen[i] = std::min(1.0, shares[i] * scale);
      if (chosen[i] < 1) continue;
      sure += 1;
      rest -= shares[i];
      more = true;
    }
  }
  return chosen;
}

// How likely a token comes to one copy of each expert, by rank.
std::vector<std::vector<double>> placed_copies(const ExpertPopularity& popularity, int64_t top_k, int64_t ranks) {
  const std::vector<double> chosen = chosen_by_a_token(popularity.shares, top_k);
  std::vector<int64_t> copies(chosen.size(), 1);
  std::priority_queue<std::pair<double, size_t>> busiest;  // equal ones: the later expert
  for (size_t i = 0; i < copies.size(); ++i) busiest.emplace(chosen[i], i);
  for (int64_t i = 0; i < popularity.redundant; ++i) {
    const size_t expert = busiest.top().second;
    busiest.pop();
    ++copies[expert];
    busiest.emplace(chosen[expert] / static_cast<double>(copies[expert]), expert);
  }
  std::vector<double> all;
  for (size_t i = 0; i < copies.size(); ++i) {
    all.insert(all.end(), static_cast<size_t>(copies[i]), chosen[i] / static_cast<double>(copies[i]));
  }
  std::vector<std::vector<double>> placed(static_cast<size_t>(ranks));
  const size_t room = (all.size() + placed.size() - 1) / placed.size();
  if (popularity.redundant == 0) {  // as they are numbered
    for (size_t i = 0; i < all.size(); ++i) placed[std::min(i / room, placed.size() - 1)].push_back(all[i]);
    return placed;
  }
  std::sort(all.begin(), all.end(), std::greater<>());
  std::priority_queue<std::pair<double, size_t>, std::vector<std::pair<double, size_t>>, std::greater<>> least;
  for (size_t rank = 0; rank < placed.size(); ++rank) least.emplace(0.0, rank);
  for (const double share : all) {
    const auto [load, rank] = least.top();
    least.pop();
    placed[rank].push_back(share);
    if (placed[rank].size() < room) least.emplace(load + share, rank);
  }
  return placed;
}

const std::vector<double>& busiest_rank(const std::vector<std::vector<double>>& placed) {
  const auto sum = [](const std::vector<double>& rank) { return std::accumulate(rank.begin(), rank.end(), 0.0); };
  return *std::max_element(placed.begin(), placed.end(), [&](const auto& a, const auto& b) { return sum(a) < sum(b); });
}

// How likely an expert gets any of so many tokens.
double wakes(double chosen, double tokens) {
  return chosen >= 1 ? std::min(1.0, tokens) : 1 - portable_exp(tokens * portable_log(1 - chosen));
}

constexpr int placements = 64;  // eight were up to 15% off

// Where so many experts are in each placement, one after the other. The same for all loads: drawn once.
const std::vector<uint32_t>& placed_experts(size_t experts) {
  thread_local std::map<size_t, std::vector<uint32_t>> remembered;
  std::vector<uint32_t>& all = remembered[experts];
  if (!all.empty()) return all;
  std::vector<uint32_t> order(experts);
  std::iota(order.begin(), order.end(), 0U);
  RandomStream stream(0, "expert placement");
  for (int round = 0; round < placements; ++round) {
    shuffle(order, stream);
    all.insert(all.end(), order.begin(), order.end());
  }
  return all;
}

// The busiest rank, averaged over placements of the experts.
ExpertLoad scattered_load(const ExpertPopularity& popularity, double tokens, int64_t top_k, int64_t ranks) {
  const std::vector<ExpertLoad> experts = loads_of_experts(popularity, tokens, top_k);
  const auto local = std::max<std::ptrdiff_t>(1, std::ssize(experts) / ranks);
  const int rounds = local == std::ssize(experts) ? 1 : placements;
  const std::span<const uint32_t> placed = placed_experts(experts.size());
  ExpertLoad mean;
  for (int round = 0; round < rounds; ++round) {
    const std::span<const uint32_t> order = placed.subspan(static_cast<size_t>(round) * experts.size(), experts.size());
    ExpertLoad busiest;
    for (auto rank = order.begin(); order.end() - rank >= local; rank += local) {
      const ExpertLoad load = std::accumulate(rank, rank + local, ExpertLoad{}, [&](ExpertLoad sum, uint32_t one) {
        return ExpertLoad{.active_experts = sum.active_experts + experts[one].active_experts,
                          .pairs = sum.pairs + experts[one].pairs};
      });
      if (load.pairs > busiest.pairs) busiest = load;
    }
    mean.active_experts += busiest.active_experts / rounds;
    mean.pairs += busiest.pairs / rounds;
  }
  return mean;
}

// The largest share over the smallest. AIConfigurator draws loads from 1 to 0.8 times the tokens, which describes
// prompts. Experts of decodes, which come from many texts, are not the less even the more of them there are: in steps
// of up to 256 decodes of published runs (InferenceX), about as many experts are read as 20 gives; 10 and 50 were
// farther off.
double widest_span(int64_t prompt_tokens) {
  constexpr double of_decodes = 20, of_a_prompt_token = 0.8;
  const double wanted = of_a_prompt_token * static_cast<double>(prompt_tokens);
  // In steps of 5%, so that steps of different lengths share laws.
  const double step = portable_log(1.05);
  return of_decodes * portable_exp(step * std::ceil(portable_log(std::max(1.0, wanted / of_decodes)) / step));
}

}  // namespace

std::vector<ExpertLoad> loads_of_experts(const ExpertPopularity& popularity, double tokens, int64_t top_k) {
  std::vector<ExpertLoad> loads;
  for (const double chosen : chosen_by_a_token(popularity.shares, top_k)) {
    loads.push_back({.active_experts = wakes(chosen, tokens), .pairs = tokens * chosen});
  }
  return loads;
}

double mean_copies(const ExpertPopularity* popularity) {
  if (popularity == nullptr) return 1;
  return 1 + static_cast<double>(popularity->redundant) / static_cast<double>(popularity->shares.size());
}

ExpertPopularity zipf_popularity(int64_t experts, double exponent) {
  ensure(experts > 0 && experts <= most_experts_of_a_layer && exponent >= 0, "experts share popularity");
  ExpertPopularity popularity{.shares = std::vector<double>(static_cast<size_t>(experts))};
  // Which experts are popular has nothing to do with their numbers: neighbors in rank lie a golden section apart, so
  // that the first ones are not all on one device.
  constexpr double golden_section = 0.6180339887498949;
  int64_t stride = std::max<int64_t>(1, static_cast<int64_t>(golden_section * static_cast<double>(experts)));
  while (std::gcd(stride, experts) != 1) ++stride;
  double sum = 0;
  for (int64_t i = 0; i < experts; ++i) {
    const double share = portable_exp(-exponent * portable_log(static_cast<double>(i + 1)));
    popularity.shares[static_cast<size_t>(i * stride % experts)] = share;
    sum += share;
  }
  for (double& share : popularity.shares) share /= sum;
  return popularity;
}

std::vector<double> power_law_quantiles(size_t count, double exponent, double low, double high) {
  const double power = 1 - exponent;
  const bool logarithmic = std::abs(power) < 1e-9;
  const double first = logarithmic ? portable_log(low) : portable_pow(low, power);
  const double last = logarithmic ? portable_log(high) : portable_pow(high, power);
  std::vector<double> values(count);
  for (size_t i = 0; i < count; ++i) {
    const double u = (static_cast<double>(i) + 0.5) / static_cast<double>(count);
    const double at = first + u * (last - first);
    values[i] = logarithmic ? portable_exp(at) : portable_pow(at, 1 / power);
  }
  return values;
}

std::shared_ptr<const ExpertPopularity> power_law_popularity(int64_t experts, double exponent, int64_t prompt_tokens) {
  ensure(experts > 0 && experts <= most_experts_of_a_layer, "experts share popularity");
  const double span = widest_span(prompt_tokens);
  // Shapes that hold the same law compare equal, whichever thread made them.
  static std::mutex mutex;
  static std::map<std::tuple<int64_t, double, double>, std::shared_ptr<const ExpertPopularity>> remembered;
  const std::lock_guard lock(mutex);
  auto& found = remembered[{experts, exponent, span}];
  if (found != nullptr) return found;
  ExpertPopularity popularity{.shares = power_law_quantiles(static_cast<size_t>(experts), exponent, 1, span),
                              .scattered = true};
  const double sum = std::accumulate(popularity.shares.begin(), popularity.shares.end(), 0.0);
  for (double& share : popularity.shares) share /= sum;
  return found = std::make_shared<const ExpertPopularity>(std::move(popularity));
}

ExpertPopularity read_expert_popularity(const std::filesystem::path& file) {
  return read_expert_popularity(CsvReader(file));
}

ExpertPopularity read_expert_popularity(CsvReader csv) {
  const size_t expert = csv.column("expert"), tokens = csv.column("tokens");
  std::vector<double> counts;
  std::vector<bool> given;
  double sum = 0;
  while (csv.next()) {
    const auto index = static_cast<size_t>(csv.integer(expert, {.least = 0, .most = most_experts_of_a_layer - 1}));
    if (index >= counts.size()) {
      counts.resize(index + 1);
      given.resize(index + 1);
    }
    if (given[index]) csv.fail(expert, "each expert once");
    given[index] = true;
    counts[index] = csv.number(tokens, {.least = 0, .most = 1e15});
    sum += counts[index];
  }
  const auto missing = std::find(given.begin(), given.end(), false);
  if (missing != given.end() || !(sum > 0)) {
    throw InputError({.source = csv.source(),
                      .value = sum > 0 ? "no expert " + std::to_string(missing - given.begin()) : "no tokens",
                      .expected = "a row for each expert from 0 on, and tokens of some"});
  }
  for (double& count : counts) count /= sum;
  return {.shares = std::move(counts)};
}

ExpertLoad popularity_load(const ExpertPopularity& popularity, double tokens, int64_t top_k, int64_t ranks) {
  if (popularity.balancedness) {
    // No rank has more than all there is.
    const double share = std::min(1.0, 1 / (static_cast<double>(ranks) * *popularity.balancedness));
    const double busy = tokens * static_cast<double>(top_k) * share;
    const auto local =
        static_cast<double>(std::ssize(popularity.shares) + popularity.redundant) / static_cast<double>(ranks);
    return {.active_experts = local * (1 - portable_exp(-busy / local)), .pairs = busy};
  }
  if (popularity.scattered) return scattered_load(popularity, tokens, top_k, ranks);
  const std::vector<std::vector<double>> placed = placed_copies(popularity, top_k, ranks);
  ExpertLoad load;
  for (const double chosen : busiest_rank(placed)) {
    load.pairs += tokens * chosen;
    load.active_experts += popularity.takes_turns ? std::min(1.0, tokens * chosen) : wakes(chosen, tokens);
  }
  return load;
}

}  // namespace foretoken
