// Kernels in the order of a step on two resources, the host that launches and the device that runs -> wall time, and
// where it goes.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "compose/lowering.h"
#include "compose/stack.h"
#include "model/step.h"

namespace foretoken {

// A kernel as the device sees it.
struct DeviceCall {
  double seconds = 0;  // one call, back to back with others
  bool collective = false;
  bool attention = false;  // piecewise graphs are cut around it
};

// Whether a step is bound by its host: the device idles more than half as long as it works.
inline bool is_host_bound(double idle, double busy) {
  return idle > 0.5 * busy;
}

// Where a step's wall time goes; the parts sum to `seconds`.
struct DispatchTime {
  double seconds = 0;
  double kernels = 0;               // device busy with kernels
  double communication = 0;         // device busy with collectives, and with nothing else
  double hidden_communication = 0;  // beside kernels, in steps of two batches; not a part of the sum
  double hidden_attention = 0;      // in memory that computes, beside the device; not a part of the sum
  double launch_gap = 0;  // device idle between kernels whose launches were already queued, start and end of the step
  double host_stall = 0;  // device idle because the host had not launched yet
  double host = 0;        // host busy; not a part of the sum
  // Also where the host is busy to the end and the device waits for it.
  bool host_bound() const {
    return is_host_bound(launch_gap + host_stall, kernels + communication) ||
           (host_stall > 0 && host >= 0.99 * seconds);
  }
};

struct TimelineEvent {
  size_t launch = 0;  // in the list
  double start = 0, seconds = 0;
  bool on_host = false;
};

struct DispatchRequest {
  Dispatch kind = Dispatch::fused;
  double host_factor = 1;                          // times the stack's host times
  double device_factor = 1;                        // times the kernels
  StepPhase phase = StepPhase::decode;             // of the step, for its interval
  std::vector<TimelineEvent>* timeline = nullptr;  // filled where given
};

// `launches` in order of first use, with `calls` beside them; `operators` is what they were lowered from; they run in
// the order of launch_order.h. Each launch waits for the one before it on the device, and for the host; the host waits
// for the end of launches whose result it reads, unless a graph holds them.
DispatchTime dispatch(const Stack& stack, std::span<const Launch> launches, std::span<const DeviceCall> calls,
                      const std::vector<Operator>& operators, const DispatchRequest& request);

}  // namespace foretoken
