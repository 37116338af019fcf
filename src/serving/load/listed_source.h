// A source whose requests do not depend on how the run goes: the next one is read ahead.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "base/error.h"
#include "serving/requests/request.h"

namespace foretoken {

class ListedSource : public RequestSource {
 public:
  std::optional<Picoseconds> next_arrival() final {
    if (!ahead_) ahead_ = read();
    return ahead_ ? std::optional(ahead_->arrival) : std::nullopt;
  }

  Request next() final {
    ensure(next_arrival().has_value(), "a request is taken only where one is known");
    Request request = std::move(*ahead_);
    ahead_.reset();
    return request;
  }

 protected:
  // In order of arrival; nothing at the end, and from then on.
  virtual std::optional<Request> read() = 0;

 private:
  std::optional<Request> ahead_;
};

// Requests that are all known, in order of arrival.
class ReplayedRequests final : public ListedSource {
 public:
  explicit ReplayedRequests(std::vector<Request> requests) : requests_(std::move(requests)) {}

 protected:
  std::optional<Request> read() override {
    if (next_ == requests_.size()) return std::nullopt;
    return std::move(requests_[next_++]);
  }

 private:
  std::vector<Request> requests_;
  size_t next_ = 0;
};

}  // namespace foretoken
