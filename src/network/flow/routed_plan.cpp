#include "network/flow/routed_plan.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "network/transfer/refusal.h"

namespace foretoken {
namespace {

constexpr Refusal refuse_plan{"transfer plan"};

bool is_size(double value) {
  return std::isfinite(value) && value >= 0;
}

void check_transfer(const Transfer& transfer, int64_t device_count) {
  for (const int32_t device : {transfer.from, transfer.to}) {
    if (device < 0 || device >= device_count) {
      refuse_plan("transfer", fmt::format("device {}", device), fmt::format("a device from 0 to {}", device_count - 1));
    }
  }
  if (!is_size(transfer.bytes)) {
    refuse_plan(fmt::format("transfer from {} to {}", transfer.from, transfer.to),
                fmt::format("{} bytes", transfer.bytes), "a size of at least zero");
  }
}

void check_time(Seconds time, const char* what) {
  if (!is_size(time.value())) refuse_plan(what, fmt::format("{} s", time.value()), "a time of at least zero");
}

}  // namespace

PlanRouter::PlanRouter(const Topology& topology, LinkRouting routing)
    : topology_(topology), router_(topology, routing), bytes_on_(topology.links().size()) {}

RoutedPlan PlanRouter::route(const TransferPlan& plan, uint64_t flow) {
  check_time(plan.start, "start");
  RoutedPlan routed{.start = plan.start};
  routed.stages.reserve(plan.stages.size());
  for (const Stage& stage : plan.stages) routed.stages.push_back(route(stage, flow));
  return routed;
}

RoutedStage PlanRouter::route(const Stage& stage, uint64_t flow) {
  check_time(stage.per_message, "per_message");
  if (stage.messages < 0) refuse_plan("messages", fmt::format("{}", stage.messages), "at least zero");
  RoutedStage routed;
  used_.clear();
  Seconds slowest;
  for (const Transfer& transfer : stage.transfers) {
    check_transfer(transfer, topology_.device_count());
    if (transfer.from == transfer.to) continue;
    route_.clear();
    router_.route(transfer.from, transfer.to, flow, route_);
    Seconds latency;
    for (const RouteLink& step : route_) latency += step.share * topology_.link(step.link).latency;
    slowest = std::max(slowest, latency);
    routed.largest_transfer = std::max(routed.largest_transfer, transfer.bytes);
    if (transfer.bytes > 0) lay(transfer);
  }
  routed.latency = static_cast<double>(stage.messages) * (stage.per_message + slowest);
  std::sort(used_.begin(), used_.end());
  routed.loads.reserve(used_.size());
  for (const LinkIndex link : used_) {
    Carried& carried = bytes_on_[static_cast<size_t>(link)];
    routed.loads.push_back({link, (carried.sum + carried.largest) / routed.largest_transfer});
    carried = {};
  }
  return routed;
}

void PlanRouter::lay(const Transfer& transfer) {
  for (const RouteLink& step : route_) {
    Carried& carried = bytes_on_[static_cast<size_t>(step.link)];
    const double added = transfer.bytes * step.share;
    if (carried.sum == 0 && carried.largest == 0) used_.push_back(step.link);
    if (transfer.in_switch) {
      carried.largest = std::max(carried.largest, added);
    } else {
      carried.sum += added;
    }
  }
}

}  // namespace foretoken
