// The hardware library for people and for programs: lists, and one entry with the source of every number.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "hardware/catalogue.h"

namespace foretoken {

std::string device_list_text(const std::vector<Device>& devices);
Json device_list_json(const std::vector<Device>& devices);

std::string device_text(const Device& device);
Json device_json(const Device& device);

std::string node_text(const Node& node);
Json node_json(const Node& node);

std::string cluster_text(const Cluster& cluster);
Json cluster_json(const Cluster& cluster);

}  // namespace foretoken
