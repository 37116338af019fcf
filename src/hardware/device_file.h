// A device's JSON file -> Device, and back to rows for people. data/hardware/README.md lists the keys.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "hardware/device.h"

namespace foretoken {

// Finds the device that another is declared to be like, by its name in the library. Empty: none may be declared.
using DeviceFinder = std::function<Device(const std::string& name)>;

// InputError for an unknown key, a number out of plausible bounds or without source, a wrong type, a GPU whose
// instruction set is not known and which is not declared to be like one.
Device read_device_file(const std::filesystem::path& path, const DeviceFinder& find = {});
Device parse_device(std::string_view text, const std::string& source, const DeviceFinder& find = {});

// The file that reads as this device; without its `accelerator`.
std::string device_file_text(const Device& device);

// One number or word of a device as its file has it.
struct DeviceFact {
  std::string key;   // memory_bandwidth_gb_per_s, dense_peak_tflops.fp8
  std::string unit;  // GB/s
  double value = 0;  // in that unit
  std::string word;  // hbm3, yes, no: instead of a number
  std::string source;
  bool assumed = false;
  std::string note;
};

// Every fact that is known, in the order of the file format.
std::vector<DeviceFact> device_facts(const Device& device);

// Keys of the numbers that nobody published; peaks left out, since a device need not have every type.
std::vector<std::string> unknown_device_facts(const Device& device);

}  // namespace foretoken
