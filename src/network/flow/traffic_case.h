// A topology and transfers on it, as a file: what the flow level and the packet level are compared on.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "network/topology/router.h"
#include "network/topology/topology.h"
#include "network/transfer/transfer_plan.h"

namespace foretoken {

struct TimedTransfer {
  Transfer transfer;
  Seconds start;
};

// How bytes are cut into packets, and how many may be on their way.
struct Packets {
  double payload_bytes = 4096;
  double header_bytes = 42;  // of TCP without options, IPv4 and PPP
  double window_bytes = 1 << 20;
};

struct TrafficCase {
  std::string title;
  std::string topology;  // as the user wrote it
  LinkRouting routing = LinkRouting::ecmp;
  Packets packets;
  std::vector<TimedTransfer> transfers;  // transfer i is flow i for ECMP
  std::vector<Seconds> recorded_ends;    // of a packet-level run, by transfer; empty when there was none
};

// InputError with file and path for anything else. docs/network.md describes the format.
TrafficCase read_traffic_case(const std::filesystem::path& path);
TrafficCase parse_traffic_case(std::string_view text, const std::string& source);

// When each transfer ends at flow level. Links carry headers too: their bandwidth counts for the payload's part of a
// packet.
std::vector<Seconds> flow_level_ends(const TrafficCase& traffic, const Topology& topology);

}  // namespace foretoken
