#include "network/transfer/protocol.h"

#include "base/error.h"

namespace foretoken {
namespace {

struct StepLatencies {
  double ll, ll128, simple;  // microseconds
  double of(Protocol protocol) const {
    return protocol == Protocol::ll ? ll : protocol == Protocol::ll128 ? ll128 : simple;
  }
};

struct StepConstants {
  StepLatencies base, nvlink, pcie, network;
};

constexpr StepConstants ring_steps{
    .base = {6.6, 14.0, 8.4}, .nvlink = {0.6, 1.9, 3.4}, .pcie = {1.0, 2.5, 5.7}, .network = {2.7, 4.0, 14.0}};
constexpr StepConstants tree_steps{
    .base = {6.8, 14.0, 8.4}, .nvlink = {0.6, 1.25, 4.0}, .pcie = {1.0, 1.9, 4.0}, .network = {5.0, 8.5, 14.0}};
// 25 us for the whole all-reduce, which is two messages here.
constexpr StepConstants in_switch_steps{.base = {0, 0, 0}, .nvlink = {0, 0, 12.5}, .pcie = {}, .network = {0, 0, 18}};

const StepConstants& constants_of(StepKind step) {
  switch (step) {
    case StepKind::ring:
      return ring_steps;
    case StepKind::tree:
      return tree_steps;
    case StepKind::in_switch:
      return in_switch_steps;
  }
  throw InternalError("every kind of step has its constants");
}

double wire_factor(Protocol protocol) {
  switch (protocol) {
    case Protocol::ll:
      return 2;
    case Protocol::ll128:
      return 128.0 / 120;
    case Protocol::simple:
    case Protocol::ideal:
      return 1;
  }
  throw InternalError("every protocol has a wire factor");
}

}  // namespace

std::string_view protocol_name(Protocol protocol) {
  return protocol_names[static_cast<size_t>(protocol)];
}

MessageCosts message_costs(Protocol protocol, StepKind step, bool nvlink) {
  if (protocol == Protocol::ideal) return {};
  constexpr double usable_nvlink = 20.0 / 25, in_switch_efficiency = 0.85;
  const StepConstants& constants = constants_of(step);
  const double wire = wire_factor(protocol);
  const double near_rate = !nvlink                       ? 1
                           : step == StepKind::in_switch ? usable_nvlink * in_switch_efficiency
                                                         : usable_nvlink;
  return {.start = microseconds(constants.base.of(protocol)),
          .near_message = microseconds((nvlink ? constants.nvlink : constants.pcie).of(protocol)),
          .far_message = microseconds(constants.network.of(protocol)),
          .near_wire = wire / near_rate,
          .far_wire = wire};
}

}  // namespace foretoken
