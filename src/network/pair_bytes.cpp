#include "network/pair_bytes.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/csv.h"
#include "base/error.h"

namespace foretoken {

double PairBytes::most_sent() const {
  double most = 0;
  for (int64_t from = 0; from < ranks; ++from) {
    double sent = 0;
    for (int64_t to = 0; to < ranks; ++to) sent += from == to ? 0 : between(from, to);
    most = std::max(most, sent);
  }
  return most;
}

PairBytes read_pair_bytes(const std::filesystem::path& path, int64_t ranks) {
  constexpr int64_t most_ranks = 4096;
  constexpr double most_bytes = 1e15;
  if (ranks > most_ranks) {
    throw InputError({.source = path.string(),
                      .value = fmt::format("{} ranks", ranks),
                      .expected = fmt::format("at most {} ranks with bytes of their own for each pair", most_ranks)});
  }
  PairBytes pairs{.ranks = ranks, .bytes = std::vector<double>(ranks * ranks, 0)};
  CsvReader csv(path);
  const size_t from = csv.column("from"), to = csv.column("to"), bytes = csv.column("bytes");
  const Range<int64_t> in_group{.least = 0, .most = ranks - 1};
  while (csv.next()) {
    const int64_t sender = csv.integer(from, in_group), receiver = csv.integer(to, in_group);
    pairs.bytes[sender * ranks + receiver] += csv.number(bytes, {.least = 0, .most = most_bytes});
  }
  return pairs;
}

}  // namespace foretoken
