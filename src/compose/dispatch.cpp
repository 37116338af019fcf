#include "compose/dispatch.h"

#include <algorithm>

#include "base/error.h"
#include "compose/launch_order.h"

namespace foretoken {
DispatchTime dispatch(const Stack& stack, std::span<const Launch> launches, std::span<const DeviceCall> calls,
                      const std::vector<Operator>& operators, const DispatchRequest& request) {
  ensure(launches.size() == calls.size(), "every launch has a time");
  const StackCosts& costs = stack.costs;
  double extra_gap = 0;
  if (request.kind == Dispatch::graph) extra_gap = costs.graph_gap.value();
  if (request.kind == Dispatch::eager || request.kind == Dispatch::piecewise) extra_gap = costs.eager_gap.value();
  DispatchTime time;
  for (size_t i = 0; i < launches.size(); ++i) {
    const auto count = static_cast<double>(launches[i].count);
    const double busy = calls[i].seconds * request.device_factor * count;
    // A measured time holds the gap to the next kernel of its graph.
    const double own_gap = calls[i].collective ? 0 : std::min(costs.kernel_gap.value() * count, 0.5 * busy);
    (calls[i].collective ? time.communication : time.kernels) += busy - own_gap;
    time.launch_gap += own_gap + extra_gap * count;
  }
  const bool recorded = request.timeline != nullptr;
  if (!recorded && (request.kind == Dispatch::fused || request.kind == Dispatch::graph)) {
    if (request.kind == Dispatch::graph) {
      time.launch_gap += costs.graph_start.value() + costs.synchronize.value();
      time.host = costs.step_host.value() * request.host_factor;
    }
    const double busy = time.kernels + time.communication + time.launch_gap;
    time.host_stall = stack.asynchronous ? std::max(0.0, time.host - busy) : time.host;
    time.seconds = busy + time.host_stall;
    return time;
  }

  const double prepared =
      request.kind == Dispatch::fused ? 0 : costs.step_host.value() * request.host_factor;  // before the first launch
  double host = stack.asynchronous ? 0 : prepared;
  double device = host;
  double idle_for_host = host;
  bool in_piece = false;
  bool started = false;
  each_launch_in_order(launches, operators, [&](size_t i, bool first_of_call) {
    const Launch& launch = launches[i];
    double work = 0, latency = 0;
    switch (request.kind) {
      case Dispatch::fused:
        break;
      case Dispatch::graph:
        latency = started ? 0 : costs.graph_start.value();
        break;
      case Dispatch::piecewise:
        if (calls[i].attention) {
          work = launch.host.value();
          latency = costs.launch.value();
        } else if (!in_piece) {
          work = costs.piece.value();
          latency = costs.graph_start.value();
        }
        in_piece = !calls[i].attention;
        break;
      case Dispatch::eager:
        work = launch.host.value() + (first_of_call ? launch.host_before.value() : 0);
        latency = costs.launch.value();
        break;
    }
    started = true;
    const double begin = host;
    host += work * request.host_factor;
    if (recorded && work > 0) request.timeline->push_back({i, begin, host - begin, true});
    const double ready = host + latency;
    if (ready > device) {
      idle_for_host += ready - device;
      device = ready;
    }
    const double busy = calls[i].seconds * request.device_factor;
    if (recorded) request.timeline->push_back({i, device, busy, false});
    device += busy + extra_gap;
    if (launch.waits && request.kind == Dispatch::eager) host = std::max(host, device) + costs.synchronize.value();
  });
  if (stack.asynchronous && request.kind != Dispatch::fused) {
    // The host was at work on this step while the device ran the one before: the longer of the two decides.
    time.host = prepared + host;
    const Seconds start = request.kind == Dispatch::eager ? costs.launch : costs.graph_start;
    time.launch_gap += start.value() + costs.synchronize.value();
    const double busy = time.kernels + time.communication + time.launch_gap;
    time.host_stall = std::max(0.0, time.host - busy);
    time.seconds = busy + time.host_stall;
    return time;
  }
  time.host = host;
  time.seconds = std::max(device, host) + (request.kind == Dispatch::fused ? 0 : costs.synchronize.value());
  const double start = request.kind == Dispatch::graph ? costs.graph_start.value() : 0;
  time.host_stall = idle_for_host - start;
  time.launch_gap = time.seconds - time.kernels - time.communication - time.host_stall;
  return time;
}

}  // namespace foretoken
