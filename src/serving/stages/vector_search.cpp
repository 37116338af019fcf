#include "serving/stages/vector_search.h"

#include <algorithm>

namespace foretoken {
namespace {

class SearchStage final : public StageTimes {
 public:
  explicit SearchStage(const VectorSearch& search) : search_(search) {}
  Estimate batch_seconds(std::span<const Request> batch) override {
    return scaled(search_seconds(search_), static_cast<double>(batch.size()));
  }

 private:
  VectorSearch search_;
};

}  // namespace

double VectorSearch::bytes_per_question() const {
  return vectors * code_bytes * probed_share / static_cast<double>(shards);
}

int64_t VectorSearch::questions_at_once() const {
  const auto fed = static_cast<int64_t>(memory_bytes_per_s * memory_utilisation / core_bytes_per_s);
  return std::clamp<int64_t>(fed, 1, cores);
}

Estimate search_seconds(const VectorSearch& search) {
  const double memory = search.memory_bytes_per_s * search.memory_utilisation;
  const double seconds = search.bytes_per_question() / std::min(search.core_bytes_per_s, memory);
  return {.value = seconds,
          .low = seconds * search.memory_utilisation,
          .high = seconds / search.memory_utilisation,
          .kind = Confidence::roofline};
}

std::unique_ptr<StageTimes> search_stage(const VectorSearch& search) {
  return std::make_unique<SearchStage>(search);
}

}  // namespace foretoken
