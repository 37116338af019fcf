// What saving a training state costs: how long it stops the job, when it can be used, how long reading it takes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace foretoken {

//   blocking      the job waits until all is in storage
//   asynchronous  the job waits for a copy to host memory; storage is written behind the work
//   in_memory     that copy goes to the host memory of another node, and from there to storage now and then: most
//                 failures lose one node and never touch storage (GEMINI, SOSP 2023)
enum class CheckpointMode : uint8_t { blocking, asynchronous, in_memory };
std::string_view checkpoint_mode_name(CheckpointMode mode);
std::optional<CheckpointMode> checkpoint_mode_from_name(std::string_view name);
std::vector<std::string> checkpoint_mode_names();

struct CheckpointPlan {
  CheckpointMode mode = CheckpointMode::asynchronous;
  double bytes = 0;                        // of all ranks together
  double storage_bytes_per_second = 0;     // of all ranks together, reading or writing
  double host_bytes_per_second = 20e9;     // device to host memory, each device; a PCIe gen 4 x16 link in practice
  double peer_bytes_per_second = 10e9;     // host to the host of another node, each device; in_memory only
  double storage_copy_seconds = 3600;      // between two copies in storage; in_memory only
  double least_interval_seconds = 60;      // of the best one; not below a step
  std::optional<double> interval_seconds;  // nothing = the one with the most goodput
};

// Storage as nodes see it: each node's share of the network, at most what the servers give in total (0 = no limit).
double storage_bytes_per_second(double bytes_per_second_per_node, int64_t nodes, double total_bytes_per_second = 0);

struct CheckpointSeconds {
  double blocking = 0;     // the job stands still
  double lag = 0;          // until it can be used after that
  double reload = 0;       // from where it usually is
  double storage_lag = 0;  // until the copy in storage can be used
  double storage_reload = 0;
};

CheckpointSeconds checkpoint_seconds(const CheckpointPlan& plan, int64_t devices);

}  // namespace foretoken
