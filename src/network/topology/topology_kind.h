// A kind of topology: what users type, and the function that builds it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "network/topology/topology.h"

namespace foretoken {

// One dimension as a user describes it: kind:SIZES@BANDWIDTH,LATENCY,name=value.
struct TopologyPart {
  std::string text;  // as typed, for complaints
  std::vector<int64_t> sizes;
  BytesPerSecond bandwidth;                              // of each link, one direction
  Seconds latency;                                       // of each link
  std::vector<std::pair<std::string, double>> settings;  // in base units

  double setting(std::string_view name, double otherwise) const;
  int64_t size(size_t index, int64_t otherwise = 1) const;
};

enum class SettingUnit { rate, time, number };

struct TopologySetting {
  std::string_view name;
  SettingUnit unit;
  std::string_view summary;  // with what holds when it is not given
};

struct TopologyKind {
  std::string_view name;
  std::string_view sizes;  // "DEVICES_PER_LEAF x LEAVES"
  size_t least_sizes = 1, most_sizes = 1;
  std::string_view summary;
  std::span<const TopologySetting> settings;
  NetworkGraph (*make)(const TopologyPart& part);
};

// Every kind; listed in kinds/list.cpp.
std::span<const TopologyKind> topology_kinds();
const TopologyKind& topology_kind(std::string_view name);  // InputError with the nearest name

// InputError when a part would have more links than we care to keep in memory.
void check_link_count(const TopologyPart& part, double links);
inline constexpr double most_topology_links = 1 << 26;
inline constexpr int64_t most_topology_devices = 1 << 22;

// A whole number among a part's settings; InputError for less than `least` or a fraction.
int64_t whole_setting(const TopologyPart& part, std::string_view name, int64_t otherwise, int64_t least = 1);

}  // namespace foretoken
