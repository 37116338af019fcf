// Any bytes are either shares of experts that add up to one, or an InputError.
#include <cmath>
#include <numeric>
#include <string>

#include "base/error.h"
#include "fuzz.h"
#include "model/expert_popularity.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace foretoken;
  try {
    const ExpertPopularity popularity = read_expert_popularity(CsvReader::from_text(
        std::string(reinterpret_cast<const char*>(data), size), "input", {.max_row_bytes = 1 << 12}));
    const double sum = std::accumulate(popularity.shares.begin(), popularity.shares.end(), 0.0);
    promise(!popularity.shares.empty() && std::abs(sum - 1) < 1e-6, "shares add up to one");
    const double tokens = 100, pairs = popularity_load(popularity, 100, 1, 1).pairs;
    promise(std::abs(pairs - tokens) < 1e-3, "no routed copy is lost");
  } catch (const InputError&) {
  }
  return 0;
}
