// What Google published about its workloads on TPU v1 (data/accelerators/published/tpu_v1.json), to compare with.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "accelerator/systolic/weight_fed.h"

namespace foretoken {

struct TpuV1Workload {
  std::string name;
  std::vector<WeightFedPart> parts;
  WeightFedShares counters;
  double tops = 0;  // the printed row, which for some workloads disagrees with the counters
  // Operations that the counters stand for: useful share x peak / cycles per row, in 10^12 per second.
  double counted_tops = 0;
  double authors_model_error_percent = 0;
  bool weight_bound = false;
};

struct TpuV1Throughput {
  std::string workload;
  double batch = 0;
  double host_share = 0;  // time with the host, over time on the chip
  double inferences_per_second = 0;
};

struct TpuV1Tiles {
  int64_t matrix_rows = 0;
  int64_t matrix_columns = 0;
  int64_t array_side = 0;
  int64_t tiles = 0;
  double microseconds = 0;
};

struct TpuV1Figures {
  std::vector<TpuV1Workload> workloads;
  std::vector<TpuV1Throughput> throughput;
  std::vector<TpuV1Tiles> tiles;
};

// `chip`: whose peak the counters are a share of.
TpuV1Figures read_tpu_v1_figures(const std::filesystem::path& path, const SystolicChip& chip);

}  // namespace foretoken
