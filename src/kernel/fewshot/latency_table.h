// Measured latencies of the architectures of one space on several devices.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "kernel/fewshot/architecture_space.h"

namespace foretoken {

// Architectures by row, each with the cells that describe it and its features.
struct ArchitectureTable {
  std::vector<std::vector<std::string>> cells;
  std::vector<std::vector<double>> features;
};

struct DeviceLatencies {
  std::string device;
  std::vector<size_t> rows;          // of the architectures; ascending
  std::vector<size_t> ids;           // `arch_id` or `row_id` of each; the number of the row where there is none
  std::vector<double> milliseconds;  // one per row
};

struct LatencyTable {
  ArchitectureTable architectures;
  std::vector<DeviceLatencies> devices;  // in the order of the columns
};

// A CSV (plain or gzip) with the space's columns; every other column but `arch_id` and `depth` is a device, an empty
// cell not measured. A file that names `device` and gives `latency_mean_encoder` and `latency_mean_decoder` by row
// (HAT) has one device for each pair of task and device, with encoder and decoder added.
LatencyTable read_latency_table(const ArchitectureSpace& space, const std::filesystem::path& path);

// Only the architectures of such a file.
ArchitectureTable read_architectures(const ArchitectureSpace& space, const std::filesystem::path& path);

// The family of a device: its name without the batch size (`1080ti_32` -> `1080ti`), and of a pair of task and device
// (`wmt14ende/cpu_xeon`) the device.
std::string device_family(const std::string& device);

}  // namespace foretoken
