#include "compose/dispatch.h"

#include <algorithm>

#include "base/error.h"
#include "compose/launch_order.h"

namespace foretoken {
namespace {

// After each kernel, beside what its measured time holds.
double gap_after_kernel(const StackCosts& costs, Dispatch kind) {
  switch (kind) {
    case Dispatch::fused:
      return 0;
    case Dispatch::graph:
      return costs.graph_gap.value();
    case Dispatch::eager:
    case Dispatch::piecewise:
      return costs.eager_gap.value();
  }
  return 0;
}

DispatchTime time_on_device(const Stack& stack, std::span<const Launch> launches, std::span<const DeviceCall> calls,
                            const DispatchRequest& request) {
  const double extra_gap = gap_after_kernel(stack.costs, request.kind);
  DispatchTime time;
  for (size_t i = 0; i < launches.size(); ++i) {
    const auto count = static_cast<double>(launches[i].count);
    const double busy = calls[i].seconds * request.device_factor * count;
    // A measured time holds the gap to the next kernel of its graph.
    const double own_gap = calls[i].collective ? 0 : std::min(stack.costs.kernel_gap.value() * count, 0.5 * busy);
    (calls[i].collective ? time.communication : time.kernels) += busy - own_gap;
    time.launch_gap += own_gap + extra_gap * count;
  }
  return time;
}

// Host and device run beside each other, or one after the other.
void add_host(bool beside, DispatchTime& time) {
  const double busy = time.kernels + time.communication + time.launch_gap;
  time.host_stall = beside ? std::max(0.0, time.host - busy) : time.host;
  time.seconds = busy + time.host_stall;
}

// Goes through the launches of a step in order and keeps the clocks of host and device.
class LaunchClocks {
 public:
  LaunchClocks(const StackCosts& costs, std::span<const Launch> launches, std::span<const DeviceCall> calls,
               const DispatchRequest& request, double begin)
      : costs_(costs),
        launches_(launches),
        calls_(calls),
        request_(request),
        gap_(gap_after_kernel(costs, request.kind)),
        host_(begin),
        device_(begin),
        idle_for_host_(begin) {}

  // From now on only host() is right: for steps in which the host never waits for the device.
  void leave_out_device() { with_device_ = false; }

  void launch(size_t i, bool first_of_call) {
    const HostCost cost = host_cost(i, first_of_call);
    const double begin = host_;
    host_ += cost.work * request_.host_factor;
    if (!with_device_) return;
    if (request_.timeline && cost.work > 0) request_.timeline->push_back({i, begin, host_ - begin, true});
    const double ready = host_ + cost.latency;
    if (ready > device_) {
      idle_for_host_ += ready - device_;
      device_ = ready;
    }
    const double busy = calls_[i].seconds * request_.device_factor;
    if (request_.timeline) request_.timeline->push_back({i, device_, busy, false});
    device_ += busy + gap_;
    if (launches_[i].waits && request_.kind == Dispatch::eager) {
      host_ = std::max(host_, device_) + costs_.synchronize.value();
    }
  }

  double host() const { return host_; }
  double end() const { return std::max(device_, host_); }
  double idle_for_host() const { return idle_for_host_; }

 private:
  struct HostCost {
    double work = 0;     // of the host, before the launch
    double latency = 0;  // until the device begins
  };

  HostCost host_cost(size_t i, bool first_of_call) {
    const bool is_first = !started_;
    started_ = true;
    const Launch& launch = launches_[i];
    switch (request_.kind) {
      case Dispatch::fused:
        return {};
      case Dispatch::graph:
        return {.latency = is_first ? costs_.graph_start.value() : 0};
      case Dispatch::piecewise: {
        const bool starts_piece = !in_piece_;
        in_piece_ = !calls_[i].attention;
        if (calls_[i].attention) return {.work = launch.host.value(), .latency = costs_.launch.value()};
        if (starts_piece) return {.work = costs_.piece.value(), .latency = costs_.graph_start.value()};
        return {};
      }
      case Dispatch::eager:
        return {.work = launch.host.value() + (first_of_call ? launch.host_before.value() : 0),
                .latency = costs_.launch.value()};
    }
    return {};
  }

  const StackCosts& costs_;
  std::span<const Launch> launches_;
  std::span<const DeviceCall> calls_;
  const DispatchRequest& request_;
  double gap_;
  double host_, device_, idle_for_host_;
  bool in_piece_ = false;  // of a graph in pieces
  bool started_ = false;
  bool with_device_ = true;
};

bool host_waits(std::span<const Launch> launches, Dispatch kind) {
  return kind == Dispatch::eager &&
         std::any_of(launches.begin(), launches.end(), [](const Launch& launch) { return launch.waits; });
}

}  // namespace

DispatchTime dispatch(const Stack& stack, std::span<const Launch> launches, std::span<const DeviceCall> calls,
                      const std::vector<Operator>& operators, const DispatchRequest& request) {
  ensure(launches.size() == calls.size(), "every launch has a time");
  const StackCosts& costs = stack.costs;
  const bool is_fused = request.kind == Dispatch::fused, is_graph = request.kind == Dispatch::graph;
  DispatchTime time = time_on_device(stack, launches, calls, request);
  const double prepared = is_fused ? 0 : costs.step_host.value() * request.host_factor;  // before the first launch
  if (request.timeline == nullptr && (is_fused || is_graph)) {
    if (is_graph) time.launch_gap += costs.graph_start.value() + costs.synchronize.value();
    time.host = prepared;
    add_host(stack.asynchronous, time);
    return time;
  }

  LaunchClocks clocks(costs, launches, calls, request, stack.asynchronous ? 0 : prepared);
  if (stack.asynchronous && !is_fused && request.timeline == nullptr && !host_waits(launches, request.kind)) {
    clocks.leave_out_device();
  }
  each_launch_in_order(launches, operators, [&](size_t i, bool first_of_call) { clocks.launch(i, first_of_call); });
  if (stack.asynchronous && !is_fused) {
    // The host was at work on this step while the device ran the one before: the longer of the two decides.
    time.host = prepared + clocks.host();
    const Seconds start = request.kind == Dispatch::eager ? costs.launch : costs.graph_start;
    time.launch_gap += start.value() + costs.synchronize.value();
    add_host(true, time);
    return time;
  }
  time.host = clocks.host();
  time.seconds = clocks.end() + (is_fused ? 0 : costs.synchronize.value());
  time.host_stall = clocks.idle_for_host() - (is_graph ? costs.graph_start.value() : 0);
  time.launch_gap = time.seconds - time.kernels - time.communication - time.host_stall;
  return time;
}

}  // namespace foretoken
