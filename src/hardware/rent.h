// What lenders ask for a device: data/prices/rent.json.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "hardware/device.h"

namespace foretoken {

// USD for one device and hour, by the device's name.
using Rents = std::map<std::string, Fact<double>>;

// InputError, with the path inside the file, for anything but {"about"?, "usd_per_hour": {NAME: {"value", "source"}}}.
Rents read_rents(const std::filesystem::path& path);
Rents parse_rents(std::string_view text, const std::string& source);

// Nothing for a device that nobody is known to lend.
MaybeFact<double> find_rent(const Rents& rents, const std::string& device);

}  // namespace foretoken
