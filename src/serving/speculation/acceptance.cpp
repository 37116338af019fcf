#include "serving/speculation/acceptance.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"

namespace foretoken {
namespace {

// Keeps 0, 1 and the order of chances for any `by` within -1 and 1, and their mean where `by` is 0 in the mean.
double tilted_chance(double chance, double by) {
  return chance + by * chance * (1 - chance);
}

}  // namespace

Acceptance::Acceptance(std::vector<double> reached, const std::string& source) : reached_(std::move(reached)) {
  double before = 1;
  for (size_t i = 0; i < reached_.size(); ++i) {
    if (!(reached_[i] >= 0 && reached_[i] <= before)) {
      throw InputError(
          {.source = source,
           .path = fmt::format("position {}", i + 1),
           .value = number_text(reached_[i]),
           .expected = fmt::format("the probability that all drafts up to this one are accepted, from 0 to {}",
                                   number_text(before))});
    }
    before = reached_[i];
  }
}

Acceptance Acceptance::constant(double rate, int64_t drafts, double decay) {
  ensure(rate >= 0 && rate <= 1 && decay >= 0 && decay <= 1, "a chance is within 0 and 1");
  Acceptance result;
  double reached = 1;
  for (int64_t i = 0; i < drafts; ++i) {
    reached *= rate;
    rate *= decay;
    result.reached_.push_back(reached);
  }
  return result;
}

Acceptance Acceptance::by_request(double rate, double spread, int64_t drafts) {
  ensure(spread >= 0 && rate - spread >= 0 && rate + spread <= 1, "the rate of every request is within 0 and 1");
  if (spread == 0) return constant(rate, drafts);
  Acceptance result;
  result.least_rate_ = rate - spread;
  result.most_rate_ = rate + spread;
  double least = result.least_rate_, most = result.most_rate_;  // to the power of i + 1
  for (int64_t i = 0; i < drafts; ++i) {
    least *= result.least_rate_;
    most *= result.most_rate_;
    result.reached_.push_back((most - least) / (static_cast<double>(i + 2) * 2 * spread));  // mean of rate^(i + 1)
  }
  return result;
}

Acceptance Acceptance::of_mean_length(double tokens, int64_t drafts) {
  ensure(tokens >= 1 && tokens <= static_cast<double>(drafts) + 1, "a verification yields 1 to drafts + 1 tokens");
  Acceptance result;
  for (int64_t i = 0; i < drafts; ++i) {
    result.reached_.push_back(std::clamp(tokens - 1 - static_cast<double>(i), 0.0, 1.0));
  }
  return result;
}

Acceptance Acceptance::of_distribution(std::span<const double> weights) {
  double total = 0;
  for (const double weight : weights) {
    ensure(weight >= 0, "weights are not below zero");
    total += weight;
  }
  ensure(total > 0, "some number of drafts is accepted");
  Acceptance result;
  double rest = total;
  for (size_t i = 0; i + 1 < weights.size(); ++i) {
    rest -= weights[i];
    result.reached_.push_back(std::clamp(rest / total, 0.0, 1.0));
  }
  return result;
}

Acceptance Acceptance::of_rate_with_length(double tokens, int64_t drafts) {
  double low = 0, high = 1;
  for (int i = 0; i < 60; ++i) {
    const double middle = 0.5 * (low + high);
    (constant(middle, drafts).expected_tokens(drafts) < tokens ? low : high) = middle;
  }
  return constant(low, drafts);
}

Acceptance Acceptance::tilted(double by) const {
  ensure(by >= -1 && by <= 1, "a tilt is within -1 and 1");
  Acceptance result;
  for (const double chance : reached_) result.reached_.push_back(tilted_chance(chance, by));
  result.spread_ = spread_;
  return result;
}

Acceptance Acceptance::varying_by_request(double spread) const {
  ensure(spread >= 0 && spread <= 1 && least_rate_ == most_rate_, "one way in which requests differ");
  Acceptance result = *this;
  result.spread_ = spread;
  return result;
}

int64_t Acceptance::accepted(int64_t drafts, double uniform, double of_request) const {
  ensure(drafts <= static_cast<int64_t>(reached_.size()), "the acceptance of each draft is known");
  int64_t count = 0;
  if (most_rate_ > least_rate_) {
    const double rate = least_rate_ + (most_rate_ - least_rate_) * of_request;
    for (double reached = rate; count < drafts && uniform < reached; reached *= rate) ++count;
    return count;
  }
  const double by = (2 * of_request - 1) * spread_;
  while (count < drafts && uniform < tilted_chance(reached_[static_cast<size_t>(count)], by)) ++count;
  return count;
}

double Acceptance::expected_tokens(int64_t drafts) const {
  ensure(drafts <= static_cast<int64_t>(reached_.size()), "the acceptance of each draft is known");
  double tokens = 1;
  for (int64_t i = 0; i < drafts; ++i) tokens += reached_[static_cast<size_t>(i)];
  return tokens;
}

}  // namespace foretoken
