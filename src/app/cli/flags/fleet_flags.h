// The flags of a fleet: autoscaling and cold starts, failures, admission, regions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/cli/flags/replica_flags.h"
#include "app/cli/grammar/options.h"
#include "serving/fleet/cold_start.h"
#include "serving/fleet/fleet.h"
#include "serving/fleet/replica_capacity.h"
#include "serving/serving_run.h"

namespace foretoken {

struct FleetFlags {
  AutoscalerSettings scaling;
  int64_t max_replicas = 0;  // 0 = as many as at the start
  std::string scale_metric = "outstanding";
  double scale_target = 0;  // 0 = usual
  double scale_tpot_ms = 0, replica_rate = 0;
  double cold_start_s = -1;  // below 0 = from its parts
  double provisioning_s = ColdStart().provisioning.value(), engine_start_s = ColdStart().engine_start.value();
  double storage_gb_s = ColdStart().storage.value() / 1e9;
  FailureSettings failures;
  std::vector<std::string> drain_at;
  int64_t admission_limit = 0;
  double admission_ttft_ms = 0;
  std::vector<std::string> admission_shares;
  std::vector<std::string> region_settings;
  std::string region_policy = "nearest";
  int64_t spill_limit = 4;
  double round_trip_ms = 100;
  DailyShares day;

  void declare(Options& options);
  bool given() const;
  // InputError for flags whose feature was not asked for; `options` as given to declare, after parsing.
  void check_use(const Options& options) const;

  // What they ask for, by the flags that do.
  void add_parts(RunParts& parts) const;

  // The fleet of these replicas: `count` of a group becomes the places that there are. Of equal replicas, or of
  // separate prefill and decode workers (`pools`).
  FleetConfig fleet(std::vector<ReplicaGroup>& groups, bool pools) const;
  // The same load from several regions, where they are given.
  LoadMaker from_regions(LoadMaker load) const;

 private:
  struct RegionFlags {
    Region region;
    int64_t replicas = 1;
  };
  std::vector<RegionFlags> regions() const;
  FleetPool pool(const ReplicaGroup& group, int64_t replicas, ReplicaWork work) const;
  void check_groups(const std::vector<ReplicaGroup>& groups, bool pools) const;
  Picoseconds cold_start(const ReplicaGroup& group) const;
  ReplicaCapacity capacity(const ReplicaGroup& group, ReplicaWork work) const;
  AdmissionSettings admission() const;
};

}  // namespace foretoken
