#include "model/expert_popularity.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <queue>
#include <utility>

#include "base/error.h"
#include "base/portable_math.h"

namespace foretoken {
namespace {

constexpr int64_t most_experts = 1 << 16;

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

}  // namespace

ExpertPopularity zipf_popularity(int64_t experts, double exponent) {
  ensure(experts > 0 && experts <= most_experts && exponent >= 0, "experts share popularity");
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

ExpertPopularity read_expert_popularity(const std::filesystem::path& file) {
  return read_expert_popularity(CsvReader(file));
}

ExpertPopularity read_expert_popularity(CsvReader csv) {
  const size_t expert = csv.column("expert"), tokens = csv.column("tokens");
  std::vector<double> counts;
  std::vector<bool> given;
  double sum = 0;
  while (csv.next()) {
    const auto index = static_cast<size_t>(csv.integer(expert, {.least = 0, .most = most_experts - 1}));
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

ExpertLoad popularity_load(const ExpertPopularity& popularity, int64_t tokens, int64_t top_k, int64_t ranks) {
  const auto all = static_cast<double>(tokens);
  if (popularity.balancedness) {
    // No rank has more than all there is.
    const double share = std::min(1.0, 1 / (static_cast<double>(ranks) * *popularity.balancedness));
    const double busy = all * static_cast<double>(top_k) * share;
    const auto local =
        static_cast<double>(std::ssize(popularity.shares) + popularity.redundant) / static_cast<double>(ranks);
    return {.active_experts = local * (1 - portable_exp(-busy / local)), .pairs = busy};
  }
  const std::vector<std::vector<double>> placed = placed_copies(popularity, top_k, ranks);
  ExpertLoad load;
  for (const double chosen : busiest_rank(placed)) {
    load.pairs += all * chosen;
    if (chosen >= 1 || popularity.takes_turns) {
      load.active_experts += std::min(1.0, all * chosen);
    } else {
      load.active_experts += 1 - portable_exp(all * portable_log(1 - chosen));
    }
  }
  return load;
}

}  // namespace foretoken
