// The flags of several models on one device.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "app/cli/flags/replica_flags.h"
#include "app/cli/grammar/options.h"
#include "library/library.h"
#include "serving/colocation/colocation.h"
#include "serving/serving_run.h"

namespace foretoken {

// One --colocate.
struct ColocatedEngineFlags {
  ReplicaFlags replica;
  double load_share = 1;
  double mps_percentage = 100;  // CUDA_MPS_ACTIVE_THREAD_PERCENTAGE
  std::string mig;              // profile; empty = none
  DeviceShare mig_share;        // what it gives
};

// The engines' shares of the device, with what they are worked out from.
struct SharedDevice {
  Colocation colocation;  // uses these
  std::vector<std::unique_ptr<StepDemands>> demands;
};

struct ColocationFlags {
  std::vector<std::string> engines;
  std::string sharing = "mps";
  double switch_us = Colocation::usual_switch_time.value() * 1e6;
  double longest_wait_s = Colocation{}.longest_wait.value();
  int64_t sleep_level = 1;
  double disk_gb_s = 2;

  void declare(Options& options);
  bool given() const { return !engines.empty(); }
  // InputError for flags that this way of sharing does not use, or that go with no --colocate.
  void check_use(const Options& options) const;

  // Every engine as the command says but for its own flags, with its part of the device's memory; none where no
  // --colocate was given. InputError for engines that cannot share a device.
  std::vector<ColocatedEngineFlags> read(const ReplicaFlags& common, const HardwareCatalogue& hardware) const;
  // `groups`: one for each of these, as they were built. InputError where the sharing needs what they do not have.
  SharedDevice device(const std::vector<ColocatedEngineFlags>& flags, const std::vector<ReplicaGroup>& groups) const;
  LoadMaker load(LoadMaker inner, const std::vector<ColocatedEngineFlags>& flags) const;
};

}  // namespace foretoken
