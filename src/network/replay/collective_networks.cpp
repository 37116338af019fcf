#include "network/replay/collective_networks.h"

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "network/calibration/stack_collectives.h"
#include "network/flow/flow_simulator.h"

namespace foretoken {
namespace {

// What is worked out for a call, once: a trace repeats the same few calls.
template <class Value>
class PerCall {
 public:
  template <class Make>
  const Value& get(const NetworkCall& call, const Make& make) {
    const auto [place, is_new] = values_.try_emplace(
        Key(call.kind, call.bytes, call.root, call.kernel, std::vector<int32_t>(call.ranks.begin(), call.ranks.end())));
    if (is_new) place->second = make();
    return place->second;
  }

 private:
  using Key = std::tuple<CollectiveKind, double, int64_t, int8_t, std::vector<int32_t>>;
  std::map<Key, Value> values_;
};

CollectiveRequest request_for(const NetworkCall& call) {
  return {.kind = call.kind,
          .bytes = call.bytes,
          .group = ProcessGroup::of(std::vector<int32_t>(call.ranks.begin(), call.ranks.end())),
          .root = call.root,
          .kernel = call.kernel < 0 ? "" : engine_kernels[static_cast<size_t>(call.kernel)]};
}

class FlowNetwork : public ReplayNetwork {
 public:
  FlowNetwork(const CollectiveModel& model, FlowOptions options)
      : model_(model), simulator_(model.topology(), options) {}

  void start(uint32_t number, const NetworkCall& call, Picoseconds at) override {
    const PlanNumber plan = plans_.get(call, [&] { return simulator_.prepare(model_.plan(request_for(call))); });
    simulator_.start(plan, at);
    numbers_.push_back(number);  // jobs count up from 0
  }

  std::span<const uint32_t> advance(Picoseconds limit) override {
    ended_.clear();
    for (const JobNumber job : simulator_.advance(limit)) ended_.push_back(numbers_[static_cast<size_t>(job)]);
    return ended_;
  }

  Picoseconds now() const override { return simulator_.now(); }
  std::span<const LinkUse> link_use() const override { return simulator_.link_use(); }

 private:
  const CollectiveModel& model_;
  FlowSimulator simulator_;
  PerCall<PlanNumber> plans_;
  std::vector<uint32_t> numbers_;  // by job
  std::vector<uint32_t> ended_;
};

}  // namespace

std::unique_ptr<ReplayNetwork> estimated_network(const CollectiveModel& model) {
  return undisturbed_network([&model, times = PerCall<Seconds>()](const NetworkCall& call) mutable {
    return times.get(call, [&] { return Seconds(model.estimate(request_for(call)).seconds.value); });
  });
}

std::unique_ptr<ReplayNetwork> flow_network(const CollectiveModel& model, FlowOptions options) {
  return std::make_unique<FlowNetwork>(model, options);
}

std::function<double(const NetworkCall&)> nccl_busy_share(const Device& device) {
  return [traits = system_traits(device, std::nullopt)](const NetworkCall& call) {
    const CommunicationCall nccl{.law = "nccl",
                                 .operation = std::string(collective_kind_name(call.kind)),
                                 .ranks = static_cast<int64_t>(call.ranks.size()),
                                 .bytes = call.bytes};
    return 1 - 1 / overlap_slowdown(nccl, traits);
  };
}

}  // namespace foretoken
