// Measured communication: tables of other people's benchmarks -> calls with their times.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/validation.h"
#include "network/calibration/communication_call.h"
#include "network/calibration/system_library.h"

namespace foretoken {

struct CommunicationRow {
  std::string file;
  size_t row = 0;          // 1-based data row of the file
  std::string system;      // as the table spells it
  std::string group;       // system/collective
  std::string repetition;  // of the same call in one table
  CommunicationCall call;
  std::string device;  // in the catalogue
  double seconds = 0;
  bool is_check_only = false;  // too noisy, or timed in another way: scored, never fitted
};

struct CommunicationRows {
  std::vector<CommunicationRow> rows;  // in the order of files and rows; one row of a table may hold two calls
  std::vector<SkippedRows> skipped;
  std::vector<std::string> notes;
};

// The tables, told by their columns (all in communication_rows.cpp):
//   NCCL, oneCCL, launched one by one: system, ccl, version, collective, dtype, gpus, bytes, latency_us
//   custom all-reduce: system, framework, version, kernel, dtype, gpus, bytes, latency_us
//   DeepEP, low latency: system, version, node_num, sizes of the layer, dispatch_avg_t_us, combine_avg_t_us
//   DeepEP, normal: the same with dispatch_sms, dispatch_transmit_us, dispatch_notify_us and those of combine
//   TensorRT-LLM's MoE all-to-all: system, op_name, kernel_source, moe_dtype, moe_ep_size, sizes, latency_us
//   Vidur's collectives: system, collective, gpus, gpus_per_node_used, bytes, median_us
// `data` is one such file or a folder of them (.csv, .csv.gz). InputError when there is none; other tables in a folder
// are named in the notes.
CommunicationRows read_communication_rows(const std::filesystem::path& data, const SystemLibrary& systems);

}  // namespace foretoken
