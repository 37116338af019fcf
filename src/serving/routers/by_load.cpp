// Routers that compare loads.
#include <algorithm>

#include "base/random.h"
#include "serving/routers/list.h"

namespace foretoken {
namespace {

using Cost = int64_t (*)(const ReplicaLoad&);

// Running requests decide between equally long queues.
int64_t queue_length(const ReplicaLoad& load) {
  return (load.waiting << 32) + load.running;
}

int64_t waiting_requests(const ReplicaLoad& load) {
  return load.waiting;
}

// vLLM, v1/engine/core_client.py: get_core_engine_for_request.
int64_t data_parallel_score(const ReplicaLoad& load) {
  return 4 * load.waiting + load.running;
}

class LeastLoaded final : public RequestRouter {
 public:
  explicit LeastLoaded(Cost cost) : cost_(cost) {}
  size_t choose(const Request&, std::span<const ReplicaLoad> replicas) override {
    return least_loaded(replicas, cost_);
  }

 private:
  Cost cost_;
};

class PowerOfTwo final : public RequestRouter {
 public:
  explicit PowerOfTwo(uint64_t seed) : stream_(seed, "router") {}
  size_t choose(const Request&, std::span<const ReplicaLoad> replicas) override {
    if (replicas.size() == 1) return 0;
    const size_t one = stream_.below(replicas.size());
    const size_t step = 1 + stream_.below(replicas.size() - 1);
    const size_t other = (one + step) % replicas.size();
    return outstanding_requests(replicas[other]) < outstanding_requests(replicas[one]) ? other : one;
  }

 private:
  RandomStream stream_;
};

}  // namespace

size_t least_loaded(std::span<const ReplicaLoad> replicas, Cost cost) {
  const auto least = std::min_element(replicas.begin(), replicas.end(),
                                      [&](const ReplicaLoad& a, const ReplicaLoad& b) { return cost(a) < cost(b); });
  return static_cast<size_t>(least - replicas.begin());
}

int64_t outstanding_requests(const ReplicaLoad& load) {
  return load.outstanding;
}

std::unique_ptr<RequestRouter> make_least_outstanding(uint64_t) {
  return std::make_unique<LeastLoaded>(outstanding_requests);
}

std::unique_ptr<RequestRouter> make_join_shortest_queue(uint64_t) {
  return std::make_unique<LeastLoaded>(queue_length);
}

std::unique_ptr<RequestRouter> make_vidur_lor(uint64_t) {
  return std::make_unique<LeastLoaded>(waiting_requests);
}

std::unique_ptr<RequestRouter> make_data_parallel(uint64_t) {
  return std::make_unique<LeastLoaded>(data_parallel_score);
}

std::unique_ptr<RequestRouter> make_power_of_two(uint64_t seed) {
  return std::make_unique<PowerOfTwo>(seed);
}

}  // namespace foretoken
