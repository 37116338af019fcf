#include "serving/load/closed_loop.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace foretoken {
namespace {

class ClosedLoop : public RequestSource {
 public:
  ClosedLoop(std::unique_ptr<RequestSource> inner, int64_t limit) : inner_(std::move(inner)), limit_(limit) {
    ensure(limit >= 1, "a closed loop has at least one request in flight");
  }

  std::optional<Picoseconds> next_arrival() override {
    if (in_flight_ >= limit_) return std::nullopt;
    const std::optional<Picoseconds> arrival = inner_->next_arrival();
    return arrival ? std::optional(std::max(*arrival, last_end_)) : std::nullopt;
  }

  Request next() override {
    ensure(in_flight_ < limit_, "a closed loop sends only below its limit");
    Request request = inner_->next();
    request.arrival = std::max(request.arrival, last_end_);
    ++in_flight_;
    return request;
  }

  void ended(int64_t id, Picoseconds when) override {
    one_less(when);
    inner_->ended(id, when);
  }

  void rejected(int64_t id, Picoseconds when) override {
    one_less(when);
    inner_->rejected(id, when);
  }

 private:
  void one_less(Picoseconds when) {
    ensure(in_flight_ > 0, "no more requests end than were sent");
    --in_flight_;
    last_end_ = std::max(last_end_, when);
  }

  std::unique_ptr<RequestSource> inner_;
  int64_t limit_ = 1;
  int64_t in_flight_ = 0;
  Picoseconds last_end_ = 0;
};

}  // namespace

std::unique_ptr<RequestSource> closed_loop(std::unique_ptr<RequestSource> inner, int64_t limit) {
  return std::make_unique<ClosedLoop>(std::move(inner), limit);
}

}  // namespace foretoken
