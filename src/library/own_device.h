// A sweep of tools/profile_cuda.py -> a device of the user's own, which every command finds by its name.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "hardware/device.h"
#include "kernel/fit/fit_calibrations.h"
#include "library/library.h"

namespace foretoken {

struct OwnDeviceRequest {
  std::filesystem::path sweep;  // meta.json and CSV files of the script
  std::string name;             // what users will type
  // The device of the library whose sheet gives what a driver cannot tell; empty = the one that the driver's name
  // means, else the nearest of its generation.
  std::string like;
  std::function<void(const std::string&)> progress;
};

struct OwnDevice {
  Device device;
  std::string sheet_of;  // the device of the library that lent the rest of its facts
  std::filesystem::path file;
  CalibrationSummary fit;
  bool has_power = false;  // sustained rows were measured and fitted
  bool replaced = false;   // one of that name
};

// The facts of the device as the driver told them to the script, the rest from the sheet of another device and marked
// as assumed. InputError for a generation that foretoken does not know where no `like` is given.
Device described_by_sweep(const HardwareCatalogue& hardware, const OwnDeviceRequest& request, std::string& sheet_of);

// Fits the sweep on top of the library's calibrations and puts device, calibrations and rows into library.own(). Takes
// nothing away before all is there. InputError for a name that ships, and a sweep that cannot be read.
OwnDevice install_own_device(const Library& library, const OwnDeviceRequest& request);

}  // namespace foretoken
