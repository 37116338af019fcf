// What each rank of an all-to-all has for each other, where it differs (all-to-all-v).
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace foretoken {

struct PairBytes {
  int64_t ranks = 0;
  std::vector<double> bytes;  // from `a` to `b` at a * ranks + b

  double between(int64_t from, int64_t to) const { return bytes[from * ranks + to]; }
  double most_sent() const;  // by one rank, to all others
};

// A CSV table with the columns from, to, bytes; pairs that are not named exchange nothing, repeated ones add up.
// InputError for ranks beyond the group, or a group too large to keep every pair.
PairBytes read_pair_bytes(const std::filesystem::path& path, int64_t ranks);

}  // namespace foretoken
