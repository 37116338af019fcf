// Routers that do not look at the load.
#include "base/random.h"
#include "serving/routers/list.h"

namespace foretoken {
namespace {

class RoundRobin final : public RequestRouter {
 public:
  size_t choose(const Request&, std::span<const ReplicaLoad> replicas) override { return turn_++ % replicas.size(); }

 private:
  size_t turn_ = 0;
};

class RandomRouter final : public RequestRouter {
 public:
  explicit RandomRouter(uint64_t seed) : stream_(seed, "router") {}
  size_t choose(const Request&, std::span<const ReplicaLoad> replicas) override {
    return stream_.below(replicas.size());
  }

 private:
  RandomStream stream_;
};

}  // namespace

std::unique_ptr<RequestRouter> make_round_robin(uint64_t) {
  return std::make_unique<RoundRobin>();
}

std::unique_ptr<RequestRouter> make_random(uint64_t seed) {
  return std::make_unique<RandomRouter>(seed);
}

}  // namespace foretoken
