#include "network/algorithms/common.h"

#include <fmt/format.h>

#include "base/error.h"

namespace foretoken {

void check_pairs_fit(std::string_view algorithm, int64_t members) {
  constexpr int64_t most_members = 4096;
  if (members <= most_members) return;
  throw InputError({.source = "collective",
                    .path = std::string(algorithm),
                    .value = fmt::format("{} ranks", members),
                    .expected = fmt::format("at most {} ranks where each sends to each on real links; the closed form "
                                            "of a cluster has no limit",
                                            most_members)});
}

}  // namespace foretoken
