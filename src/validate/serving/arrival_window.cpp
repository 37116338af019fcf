#include "validate/serving/arrival_window.h"

#include <algorithm>

namespace foretoken {

void ArrivalWindow::request_ended(const RequestRecord& record) {
  first_arrival_ = std::min(first_arrival_.value_or(record.arrival), record.arrival);
  last_arrival_ = std::max(last_arrival_, record.arrival);
  if (record.outcome != RequestOutcome::completed) return;
  const double served = to_seconds(record.last_token - record.scheduled).value();
  const auto tokens = static_cast<double>(record.output_tokens);
  ended_.push_back({record.last_token, tokens});
  served_seconds_ += served;
  served_token_seconds_ += served * tokens;
  tokens_ += tokens;
}

std::optional<ArrivalWindow::Rates> ArrivalWindow::rates() const {
  if (ended_.empty() || tokens_ <= 0) return std::nullopt;
  const double arriving = to_seconds(last_arrival_ - *first_arrival_).value();
  const double of_requests = arriving - served_seconds_ / static_cast<double>(ended_.size());
  const double of_tokens = arriving - served_token_seconds_ / tokens_;
  if (arriving <= 0 || std::min(of_requests, of_tokens) < arriving / 2) return std::nullopt;
  Rates sums;
  for (const Ended& one : ended_) {
    if (one.when > last_arrival_) continue;
    sums.requests += 1;
    sums.output_tokens += one.output_tokens;
  }
  return Rates{.requests = std::min(sums.requests / of_requests, static_cast<double>(ended_.size()) / arriving),
               .output_tokens = std::min(sums.output_tokens / of_tokens, tokens_ / arriving)};
}

}  // namespace foretoken
