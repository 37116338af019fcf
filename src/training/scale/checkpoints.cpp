#include "training/scale/checkpoints.h"

#include <algorithm>
#include <array>

#include "base/error.h"

namespace foretoken {
namespace {

constexpr std::array checkpoint_modes{CheckpointMode::blocking, CheckpointMode::asynchronous,
                                      CheckpointMode::in_memory};

}  // namespace

std::string_view checkpoint_mode_name(CheckpointMode mode) {
  switch (mode) {
    case CheckpointMode::blocking:
      return "blocking";
    case CheckpointMode::asynchronous:
      return "asynchronous";
    case CheckpointMode::in_memory:
      return "in-memory";
  }
  ensure(false, "every mode has a name");
  return "";
}

std::optional<CheckpointMode> checkpoint_mode_from_name(std::string_view name) {
  for (const CheckpointMode mode : checkpoint_modes) {
    if (checkpoint_mode_name(mode) == name) return mode;
  }
  return std::nullopt;
}

std::vector<std::string> checkpoint_mode_names() {
  std::vector<std::string> names;
  for (const CheckpointMode mode : checkpoint_modes) names.emplace_back(checkpoint_mode_name(mode));
  return names;
}

double storage_bytes_per_second(double bytes_per_second_per_node, int64_t nodes, double total_bytes_per_second) {
  const double of_nodes = bytes_per_second_per_node * static_cast<double>(nodes);
  return total_bytes_per_second > 0 ? std::min(of_nodes, total_bytes_per_second) : of_nodes;
}

CheckpointSeconds checkpoint_seconds(const CheckpointPlan& plan, int64_t devices) {
  ensure(devices > 0 && plan.storage_bytes_per_second > 0 && plan.host_bytes_per_second > 0,
         "checkpoints go somewhere");
  const double storage = plan.bytes / plan.storage_bytes_per_second;
  const double bytes_of_device = plan.bytes / static_cast<double>(devices);
  const double to_host = bytes_of_device / plan.host_bytes_per_second;
  switch (plan.mode) {
    case CheckpointMode::blocking:
      return {.blocking = storage, .lag = 0, .reload = storage, .storage_lag = 0, .storage_reload = storage};
    case CheckpointMode::asynchronous:
      return {.blocking = to_host, .lag = storage, .reload = storage, .storage_lag = 0, .storage_reload = storage};
    case CheckpointMode::in_memory: {
      ensure(plan.peer_bytes_per_second > 0, "copies go to another node");
      // One node asks its peer for what it lost; all others have theirs at hand.
      const double to_peer = bytes_of_device / plan.peer_bytes_per_second;
      return {.blocking = to_host,
              .lag = to_peer,
              .reload = to_peer + to_host,
              .storage_lag = storage,
              .storage_reload = storage};
    }
  }
  ensure(false, "every mode has its times");
  return {};
}

}  // namespace foretoken
