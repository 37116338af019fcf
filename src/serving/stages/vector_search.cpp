#include "serving/stages/vector_search.h"

#include <algorithm>

namespace foretoken {
namespace {

class SearchStage final : public StageTimes {
 public:
  explicit SearchStage(const VectorSearch& search) : search_(search) {}
  Estimate batch_seconds(std::span<const Request> batch) override {
    return search_seconds(search_, static_cast<int64_t>(batch.size()));
  }

 private:
  VectorSearch search_;
};

}  // namespace

double VectorSearch::bytes_per_question() const {
  return vectors * code_bytes * probed_share / static_cast<double>(shards);
}

Estimate search_seconds(const VectorSearch& search, int64_t questions) {
  const double bytes = search.bytes_per_question();
  const int64_t rounds = (questions + search.cores - 1) / search.cores;  // of one question for each core
  const double by_cores = static_cast<double>(rounds) * bytes / search.core_bytes_per_s;
  const double by_memory =
      static_cast<double>(questions) * bytes / (search.memory_bytes_per_s * search.memory_utilisation);
  const double seconds = std::max(by_cores, by_memory);
  return {.value = seconds,
          .low = seconds * search.memory_utilisation,
          .high = seconds / search.memory_utilisation,
          .kind = Confidence::roofline};
}

std::unique_ptr<StageTimes> search_stage(const VectorSearch& search) {
  return std::make_unique<SearchStage>(search);
}

}  // namespace foretoken
