#include "serving/load/frontend.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "base/error.h"

namespace foretoken {
namespace {

class Frontend : public RequestSource {
 public:
  Frontend(std::unique_ptr<RequestSource> clients, const FrontCosts& costs)
      : clients_(std::move(clients)), costs_(costs), latency_(to_picoseconds(costs.latency)) {}

  std::optional<Picoseconds> next_arrival() override {
    // Whatever is sent before the first on its way gets through must be taken now: clients may send at other times
    // once they hear of it.
    for (auto sent = clients_->next_arrival(); sent && (on_the_way_.empty() || *sent <= on_the_way_.front().through);
         sent = clients_->next_arrival()) {
      Request request = clients_->next();
      const Seconds work = costs_.request + costs_.token * static_cast<double>(request.input_tokens);
      free_ = later(std::max(free_, request.arrival), to_picoseconds(work));
      on_the_way_.push_back({.request = std::move(request), .through = later(free_, latency_)});
    }
    return on_the_way_.empty() ? std::nullopt : std::optional(on_the_way_.front().through);
  }

  Request next() override {
    ensure(next_arrival().has_value(), "a request is taken only where one is known");
    Request request = std::move(on_the_way_.front().request);
    on_the_way_.pop_front();
    return request;
  }

  void ended(int64_t id, Picoseconds when) override { clients_->ended(id, when); }
  void rejected(int64_t id, Picoseconds when) override { clients_->rejected(id, when); }

 private:
  struct Sent {
    Request request;
    Picoseconds through = 0;
  };
  std::unique_ptr<RequestSource> clients_;
  FrontCosts costs_;
  Picoseconds latency_;
  Picoseconds free_ = 0;  // when the process that reads requests is
  std::deque<Sent> on_the_way_;
};

}  // namespace

std::unique_ptr<RequestSource> through_frontend(std::unique_ptr<RequestSource> clients, const FrontCosts& costs) {
  const bool takes_time = costs.latency.value() + costs.request.value() + costs.token.value() > 0;
  return takes_time ? std::make_unique<Frontend>(std::move(clients), costs) : std::move(clients);
}

}  // namespace foretoken
