#include "network/replay/network.h"

#include <queue>
#include <vector>

#include "base/error.h"

namespace foretoken {
namespace {

class UndisturbedNetwork : public ReplayNetwork {
 public:
  explicit UndisturbedNetwork(std::function<Seconds(const NetworkCall&)> seconds) : seconds_(std::move(seconds)) {}

  void start(uint32_t number, const NetworkCall& call, Picoseconds at) override {
    ensure(at >= now_, "time never goes back");
    running_.push({.end = later(at, to_picoseconds(seconds_(call))), .order = started_++, .number = number});
  }

  std::span<const uint32_t> advance(Picoseconds limit) override {
    ended_.clear();
    if (running_.empty() || running_.top().end > limit) {
      if (limit != end_of_time) now_ = limit;
      return {};
    }
    now_ = running_.top().end;
    for (; !running_.empty() && running_.top().end == now_; running_.pop()) ended_.push_back(running_.top().number);
    return ended_;
  }

  Picoseconds now() const override { return now_; }

 private:
  struct Running {
    Picoseconds end = 0;
    uint64_t order = 0;
    uint32_t number = 0;
    bool operator<(const Running& other) const {  // the queue has its largest on top
      return end != other.end ? end > other.end : order > other.order;
    }
  };

  std::function<Seconds(const NetworkCall&)> seconds_;
  std::priority_queue<Running> running_;
  std::vector<uint32_t> ended_;
  uint64_t started_ = 0;
  Picoseconds now_ = 0;
};

}  // namespace

std::unique_ptr<ReplayNetwork> undisturbed_network(std::function<Seconds(const NetworkCall&)> seconds) {
  return std::make_unique<UndisturbedNetwork>(std::move(seconds));
}

}  // namespace foretoken
