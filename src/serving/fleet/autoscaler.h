// How many replicas a pool should have. One kind per file in autoscalers/.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace foretoken {

// What is known of a pool when it is looked at.
struct FleetView {
  double now_s = 0;
  int64_t serving = 0;
  int64_t starting = 0;
  int64_t outstanding = 0;  // requests that have not ended, those that no replica has yet included
  double kv_use = 0;        // shares of the KV cache in use, summed over the serving replicas
  // Since the last look:
  double interval_s = 0;
  int64_t arrived = 0;
  int64_t input_tokens = 0, output_tokens = 0;  // of those that arrived

  int64_t active() const { return serving + starting; }
  double rate() const { return interval_s > 0 ? static_cast<double>(arrived) / interval_s : 0; }
};

// Requests/s that one replica serves of prompts and outputs of these mean lengths.
using ReplicaCapacity = std::function<double(double input_tokens, double output_tokens)>;

// Kubernetes' defaults where it has them (Horizontal Pod Autoscaling: tolerance 0.1, scale-down stabilization 300 s,
// sync period 15 s).
struct AutoscalerSettings {
  std::string kind = "none";
  int64_t least = 1;  // replicas of each pool; the most are its members
  double interval_s = 15;
  double cold_start_s = 0;  // of the pool: how far ahead a forecast must look, beside the interval
  // reactive
  bool by_kv_use = false;        // else by outstanding requests
  double target = 32;            // of a replica: requests, or share of its KV cache
  double tolerance = 0.1;        // of the target, within which nothing changes
  double stabilization_s = 300;  // the most that was wanted in this time: replicas go late
  // predictive, seasonal, planner
  double utilization = 0.8;       // of a replica's capacity that is planned for
  double period_s = 86400;        // seasonal
  ReplicaCapacity capacity = {};  // of the pool's replicas
};

class Autoscaler {
 public:
  virtual ~Autoscaler() = default;
  // Called every interval. Replicas that should serve or start; the caller keeps to its limits.
  virtual int64_t wanted(const FleetView& view) = 0;
};

struct AutoscalerKind {
  std::string_view name;  // what users type
  std::string_view summary;
  bool needs_capacity;
  std::unique_ptr<Autoscaler> (*make)(const AutoscalerSettings&);  // nothing for "none": it is never asked
};
std::span<const AutoscalerKind> autoscaler_kinds();
std::vector<std::string> autoscaler_names();
const AutoscalerKind& autoscaler_kind(std::string_view name);  // InputError suggests the nearest

}  // namespace foretoken
