// Many transfer plans at once on one topology: max-min fair sharing of links, events only where rates change.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/simulated_time.h"
#include "network/topology/router.h"
#include "network/topology/topology.h"
#include "network/transfer/transfer_plan.h"

namespace foretoken {

using PlanNumber = int32_t;  // of a prepared plan
using JobNumber = int64_t;   // of one run of a plan; counts up from 0 in the order of start()

struct FlowOptions {
  LinkRouting routing = LinkRouting::ecmp;
  bool record_link_use = false;
};

// From `time` on, `link` carries `rate`, until its next entry.
struct LinkUse {
  Picoseconds time = 0;
  LinkIndex link = 0;
  BytesPerSecond rate;
};

// The fluid model. A stage first waits for its latency, messages x (per_message + the slowest path's latency), then
// moves all its bytes at rates in proportion to each other. Rates are those of progressive filling: the largest
// transfer of every running stage speeds up alike until a link on the stage's way is full. (Bertsekas and Gallager,
// "Data Networks", 2nd edition, 6.5.2.) A stage with several transfers on a link counts there as often.
//
// Drive it like this, with any clock of your own beside it:
//
//   simulator.start(plan, 0);
//   while (true) {
//     const std::span<const JobNumber> done = simulator.advance(my_next_event);
//     if (done.empty() && my_next_event == end_of_time) break;
//     ... simulator.now() is the moment of these completions, or my_next_event; start() more at now() or later ...
//   }
class FlowSimulator {
 public:
  // The topology must outlive the simulator.
  explicit FlowSimulator(const Topology& topology, FlowOptions options = {});
  ~FlowSimulator();
  FlowSimulator(FlowSimulator&&) noexcept;
  FlowSimulator& operator=(FlowSimulator&&) noexcept;

  // Routes a plan once, to be run any number of times. InputError for a transfer of devices that are not there, without
  // a path between them, or with a size that is no size.
  PlanNumber prepare(const TransferPlan& plan);

  // Runs it from time `at` on, which must not lie before now().
  JobNumber start(PlanNumber plan, Picoseconds at);
  JobNumber start(const TransferPlan& plan, Picoseconds at);  // prepares it for this one run

  // Moves on to the next moment at which jobs end, and returns them in the order they were started; or to `limit` if
  // none ends up to then, and returns nothing. Without a limit, nothing also means that no job is left, and time stays.
  // The span is good until the next call.
  std::span<const JobNumber> advance(Picoseconds limit = end_of_time);

  // When anything changes next, at the latest when the next job ends; end_of_time while no job is left.
  Picoseconds next_event();
  Picoseconds now() const;
  int64_t jobs_left() const;

  // Every change of a link's rate so far, by time; only with record_link_use.
  std::span<const LinkUse> link_use() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace foretoken
