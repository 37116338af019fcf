// The flags of what a serving run draws, costs and emits.
#pragma once

#include <vector>

#include "app/cli/flags/replica_flags.h"
#include "app/cli/grammar/options.h"
#include "library/library.h"
#include "report/parts/energy_report.h"

namespace foretoken {

struct EnergyFlags {
  bool energy = false;
  FacilityRates rates;
  double gpu_price = -1, host_watts = -1;  // below 0 = by the device

  void declare(Options& options);
  // Asked for, by its name or by a flag that only matters with it; caps count too.
  bool wanted(const Options& options) const;
  EnergyReport report(const EnergyMeter& meter, const std::vector<ReplicaGroup>& groups, const ServingRun& run,
                      const Library& library) const;

 private:
  MeteredBoards boards_of(const ReplicaGroup& group, const Library& library) const;
};

// Meters replicas of these groups in their order; they must outlive it.
EnergyMeter energy_meter(const std::vector<ReplicaGroup>& groups);

}  // namespace foretoken
